"""Nulls: what a likeness gives when there is nothing to find. Each gives a trace to put in the learner's place.

A null is a frozen dataclass, a `Null`, whose fields are its options, with the method ``trace``.
"""

from typing import TYPE_CHECKING, Any, ClassVar

from iclgd.registry import Registry

if TYPE_CHECKING:
    from iclgd.bench import Bench
    from iclgd.learners import Learner
    from iclgd.models.traces import Trace


class Null:
    """``title`` is how tables spell it; ``trains``: it takes training of its own; ``only``: the metrics it is for.

    ``drawn``: it has a line in the figures, too.
    """

    title: ClassVar[str] = ""
    trains: ClassVar[bool] = False
    only: ClassVar[tuple[str, ...]] = ()
    drawn: ClassVar[bool] = True

    def trace(self, bench: "Bench", learner: "Learner", tuned: "Trace") -> "Trace | None":
        """The null's trace; none where it diverged. A Refusal where this episode cannot have it."""
        raise NotImplementedError


NULLS: Registry[Any] = Registry("null", "iclgd known", "iclgd.nulls")  # of classes
for _name, _class, _summary in (
    ("random", "untrained:RandomDirections", "updates as long as the learner's, in random directions"),
    ("uniform", "untrained:Uniform", "numbers from [0, 1), which the papers' code took for a random update"),
    ("other-query", "untrained:OtherQuery", "the learner's update for another query"),
    ("shuffled-labels", "trained:ShuffledLabels", "the learner on the same demonstrations, their labels permuted"),
    ("other-task", "trained:OtherTask", "the learner on another task's demonstrations"),
):
    NULLS.add(_name, f"iclgd.nulls.{_class}", _summary)
