"""Nulls that are trained: the learner on demonstrations from which the task cannot be learned, or another one."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import Field

from iclgd.bench import Bench
from iclgd.learners import Learner
from iclgd.models.traces import Trace
from iclgd.nulls import Null
from iclgd.spec import EpisodeSpec

MOST_OTHER_DEMOS = 64


@dataclass(frozen=True)
class ShuffledLabels(Null):
    """The learner on the same demonstrations, their labels permuted."""

    title: ClassVar[str] = "trained on shuffled labels"
    trains: ClassVar[bool] = True
    drawn: ClassVar[bool] = False

    def trace(self, bench: Bench, learner: Learner, tuned: Trace) -> Trace | None:
        demos = bench.tokens(bench.episode.with_shuffled_labels(bench.seed))
        return bench.run(self.title, learner, demos).trace


@dataclass(frozen=True)
class OtherTask(Null):
    """The learner on another task's demonstrations."""

    task: Annotated[str, Field(min_length=1)] = "continents"
    title: ClassVar[str] = "trained on another task"
    trains: ClassVar[bool] = True
    drawn: ClassVar[bool] = False

    def source(self, task: str, k: int, seed: int) -> tuple[str, EpisodeSpec]:
        """Which task stands in for ``task`` (never itself), and what is drawn from it: part of a cell's identity."""
        name = "sentiment" if task == self.task == "continents" else self.task
        return name, EpisodeSpec(k=min(k, MOST_OTHER_DEMOS), seed=seed, queries=1)

    def trace(self, bench: Bench, learner: Learner, tuned: Trace) -> Trace | None:
        drawn = bench.draw(*self.source(bench.episode.task.name, len(bench.episode.demos), bench.seed))
        return bench.run(self.title, learner, bench.tokens(drawn)).trace
