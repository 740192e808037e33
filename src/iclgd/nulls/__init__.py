"""Nulls: what a likeness gives when there is nothing to find, or something else than what is claimed.

A null is a frozen dataclass whose fields are its options. ``trace`` gives a trace to put in the learner's place, or in
reading's; ``contrast``, where a null has it, gives what stands in the place of the contrast of right and wrong labels.
"""

from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

from iclgd.registry import Registry

if TYPE_CHECKING:
    from iclgd.bench import Bench, Run
    from iclgd.learners import Learner
    from iclgd.models.traces import Trace
    from iclgd.prompts import Prompts


class Null(Protocol):
    """``title`` is how tables spell it; ``trains``: it takes training of its own; ``only``: the metrics it is for.

    ``side`` says in whose place its trace is put: the learner's, or reading's. ``drawn``: it has a line in the figures.
    A ``control`` is no null: it is large where the claim is true. ``version`` rises when its numbers would change.
    """

    title: ClassVar[str] = ""
    trains: ClassVar[bool] = False
    side: ClassVar[Literal["learner", "reading"]] = "learner"
    only: ClassVar[tuple[str, ...]] = ()
    drawn: ClassVar[bool] = True
    control: ClassVar[bool] = False
    version: ClassVar[int] = 1

    def trained_on(self, bench: "Bench", contrast: bool) -> "dict[str, Prompts]":
        """The demonstrations that the learner is trained on for it, by name, so that all can be trained at once.

        With ``contrast``, those of the contrast of labels too. `Bench.learned` is asked for them by these names.
        """
        return {}

    def trace(self, bench: "Bench", label: str, learner: "Learner", run: "Run") -> "Trace | None":
        """The null's trace; none where it diverged. A Refusal where this episode cannot have it."""
        ...


NULLS: Registry[Any] = Registry("null", "iclgd known", "iclgd.nulls", needs="trace")  # of classes
for _name, _class, _summary in (
    ("random", "untrained:RandomDirections", "updates as long as the learner's, in random directions"),
    ("uniform", "untrained:Uniform", "numbers from [0, 1), which the papers' code took for a random update"),
    ("other-query", "untrained:OtherQuery", "the learner's update for another query"),
    ("weight-noise", "untrained:WeightNoise", "random weight changes, as large as the learner's in every layer"),
    ("filler", "reading:Filler", "reading as many tokens from which nothing can be learned"),
    ("read-wrong-labels", "reading:ReadWrongLabels", "reading the same demonstrations, every label wrong"),
    ("wrong-labels", "trained:WrongLabels", "the learner on the same demonstrations, every label wrong"),
    ("shuffled-labels", "trained:ShuffledLabels", "the learner on the same demonstrations, their labels permuted"),
    ("two-wrongs", "trained:TwoWrongs", "two different wrong labelings against each other, from three classes on"),
    ("other-demos", "trained:OtherDemos", "the learner on other demonstrations of the same task"),
    ("other-task", "trained:OtherTask", "the learner on another task's demonstrations"),
):
    NULLS.add(_name, f"iclgd.nulls.{_class}", _summary)
