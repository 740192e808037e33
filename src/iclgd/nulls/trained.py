"""Nulls that are trained: the learner on demonstrations from which the task cannot be learned, or another one."""

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

from pydantic import Field

from iclgd.bench import WRONG, Bench, Run
from iclgd.errors import Refusal
from iclgd.learners import Learner
from iclgd.learners.prompted import InContext
from iclgd.metrics.compared import Compared
from iclgd.models.traces import Trace
from iclgd.nulls import Null
from iclgd.prompts import Prompts
from iclgd.spec import EpisodeSpec
from iclgd.tasks.episodes import Episode
from iclgd.tasks.text import Example

MOST_OTHER_DEMOS = 64
OTHER_DRAW = 2**31  # added to a seed: other demonstrations than any study draws by itself


@dataclass(frozen=True)
class WrongLabels(Null):
    """The learner on the same demonstrations, every label wrong.

    Under a loss over all tokens the label is one token in many: the weight update hardly changes, and the record has
    its cosine to the one with right labels.
    """

    title: ClassVar[str] = "trained on wrong labels"
    drawn: ClassVar[bool] = False
    trains: ClassVar[bool] = True

    def trained_on(self, bench: Bench, contrast: bool) -> dict[str, Prompts]:
        return {WRONG: bench.wrong}

    def trace(self, bench: Bench, label: str, learner: Learner, run: Run) -> Trace | None:
        return bench.learned_wrong(label, learner).trace


@dataclass(frozen=True)
class ShuffledLabels(Null):
    """The learner on the same demonstrations, their labels permuted: about half of them stay right."""

    title: ClassVar[str] = "trained on shuffled labels"
    drawn: ClassVar[bool] = False
    trains: ClassVar[bool] = True

    def trained_on(self, bench: Bench, contrast: bool) -> dict[str, Prompts]:
        return {self.title: bench.tokens(bench.episode.with_shuffled_labels(bench.seed))}

    def trace(self, bench: Bench, label: str, learner: Learner, run: Run) -> Trace | None:
        (ran,) = _learned(self, bench, label, learner, contrast=False)
        return ran.trace


@dataclass(frozen=True)
class TwoWrongs(Null):
    """Two wrong labelings against each other: a contrast of labels in which neither is right. A control, no null."""

    title: ClassVar[str] = "two wrong labelings (a control)"
    control: ClassVar[bool] = True  # if reading were training it would be 1: as alike as labels can be
    drawn: ClassVar[bool] = False
    trains: ClassVar[bool] = True
    only: ClassVar[tuple[str, ...]] = ("no update",)  # it has a contrast only

    def trace(self, bench: Bench, label: str, learner: Learner, run: Run) -> None:
        return None

    def trained_on(self, bench: Bench, contrast: bool) -> dict[str, Prompts]:
        if not contrast:
            return {}
        return {f"{WRONG} {i}": bench.tokens(one) for i, one in enumerate(self.labelings(bench.episode), 1)}

    def contrast(self, bench: Bench, label: str, learner: Learner, right: Trace, wrong: Trace) -> Compared | None:
        read = [bench.read(f"icl, {what}", InContext(), ids) for what, ids in self.trained_on(bench, True).items()]
        one, two = (run.trace for run in _learned(self, bench, label, learner, contrast=True))
        if one is None or two is None:
            return None
        return Compared(bench.zero, read[0], one, bench.prompts, icl_wrong=read[1], tuned_wrong=two)

    def labelings(self, episode: Episode) -> tuple[Episode, Episode]:
        """Every class takes the next one's word, or the one's after that."""
        classes = len(episode.task.labels)
        if classes < 3:
            raise Refusal("two wrong labelings that differ everywhere need three classes.")
        made = (
            replace(episode, demos=tuple(Example(d.fields, (d.label + by) % classes) for d in episode.demos))
            for by in (1, 2)
        )
        return next(made), next(made)


@dataclass(frozen=True)
class OtherDemos(Null):
    """The learner on other demonstrations of the same task; the contrast of these."""

    title: ClassVar[str] = "trained on other demonstrations"
    drawn: ClassVar[bool] = False
    trains: ClassVar[bool] = True

    def others(self, episode: Episode, seed: int) -> Episode:
        """Another draw from the same task: part of a cell's identity."""
        if episode.redraw is None:
            raise Refusal("an episode file has no other demonstrations to draw.")
        return episode.redraw((seed + OTHER_DRAW) % 2**32)

    def demos(self, bench: Bench) -> Episode:
        return self.others(bench.episode, bench.seed)

    def trained_on(self, bench: Bench, contrast: bool) -> dict[str, Prompts]:
        others = self.demos(bench)
        wrong = {f"{self.title}, {WRONG}": others.with_wrong_labels(bench.seed)} if contrast else {}
        return {what: bench.tokens(episode) for what, episode in ({self.title: others} | wrong).items()}

    def trace(self, bench: Bench, label: str, learner: Learner, run: Run) -> Trace | None:
        (ran,) = _learned(self, bench, label, learner, contrast=False)
        return ran.trace

    def contrast(self, bench: Bench, label: str, learner: Learner, right: Trace, wrong: Trace) -> Compared | None:
        one, two = (run.trace for run in _learned(self, bench, label, learner, contrast=True))
        return None if one is None or two is None else bench.compared(one, wrong=two)


@dataclass(frozen=True)
class OtherTask(Null):
    """The learner on another task's demonstrations; a task never stands in for itself."""

    task: Annotated[str, Field(min_length=1)] = "continents"
    title: ClassVar[str] = "trained on another task"
    drawn: ClassVar[bool] = False
    trains: ClassVar[bool] = True

    def source(self, task: str, k: int, seed: int) -> tuple[str, EpisodeSpec]:
        """Which task stands in for ``task``, and what is drawn from it: part of a cell's identity."""
        stand_in = "continents" if task == "sentiment" else "sentiment"  # by default two others, never the same twice
        name = stand_in if task == self.task else self.task
        return name, EpisodeSpec(k=min(k, MOST_OTHER_DEMOS), seed=seed, queries=1)

    def trained_on(self, bench: Bench, contrast: bool) -> dict[str, Prompts]:
        drawn = bench.draw(*self.source(bench.episode.task.name, len(bench.episode.demos), bench.seed))
        return {f"{self.title} ({drawn.task.name})": bench.tokens(drawn)}

    def trace(self, bench: Bench, label: str, learner: Learner, run: Run) -> Trace | None:
        (ran,) = _learned(self, bench, label, learner, contrast=False)
        return ran.trace


def _learned(null: Null, bench: Bench, label: str, learner: Learner, contrast: bool) -> list[Run]:
    """What the learner does after each of a null's demonstrations."""
    return [bench.learned(label, learner, demos, what) for what, demos in null.trained_on(bench, contrast).items()]
