"""Nulls that learn nothing: random directions, the papers' uniform numbers, another query's update, weight noise."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import torch
from torch import Tensor

from iclgd.bench import Bench, Run
from iclgd.errors import Refusal
from iclgd.learners import Learner
from iclgd.learners.together import Trained
from iclgd.metrics.compared import Compared
from iclgd.metrics.nulls import isotropic, isotropic_maps, other_query, other_query_maps, uniform
from iclgd.models.changes import Change
from iclgd.models.layout import Slot
from iclgd.models.own import OwnLogits
from iclgd.models.traces import Trace
from iclgd.noise import normal
from iclgd.nulls import Null
from iclgd.prompts import POSITIONS


@dataclass(frozen=True)
class RandomDirections(Null):
    """Updates as long as the learner's, in random directions."""

    title: ClassVar[str] = "random directions"
    version: ClassVar[int] = 2

    def trace(self, bench: Bench, label: str, learner: Learner, run: Run) -> Trace | None:
        return None if run.trace is None else self._from(bench.zero, run.trace, bench.seed)

    def contrast(self, bench: Bench, label: str, learner: Learner, right: Trace, wrong: Trace) -> Compared:
        return bench.compared(self._from(wrong, right, bench.seed), wrong=wrong)

    def _from(self, start: Trace, end: Trace, seed: int) -> Trace:
        """From ``start`` as far as ``end`` lies, in random directions."""
        outputs, blocks = (isotropic(getattr(start, n), getattr(end, n), seed) for n in ("outputs", "blocks"))
        return replace(end, outputs=outputs, blocks=blocks, own=_random_maps(start, end, seed))


@dataclass(frozen=True)
class Uniform(Null):
    """What the papers' code took for a random update: numbers from [0, 1)."""

    title: ClassVar[str] = "uniform [0,1), as the papers' code"
    drawn: ClassVar[bool] = False
    only: ClassVar[tuple[str, ...]] = ("SimAOU",)
    version: ClassVar[int] = 2

    def trace(self, bench: Bench, label: str, learner: Learner, run: Run) -> Trace | None:
        return None if run.trace is None else replace(run.trace, outputs=uniform(bench.zero.outputs, bench.seed))


@dataclass(frozen=True)
class OtherQuery(Null):
    """The learner's update for another query, and its contrast for another query."""

    title: ClassVar[str] = "another query's update"

    def trace(self, bench: Bench, label: str, learner: Learner, run: Run) -> Trace | None:
        return None if run.trace is None else self._of(bench, run.trace)

    def contrast(self, bench: Bench, label: str, learner: Learner, right: Trace, wrong: Trace) -> Compared:
        return bench.compared(self._of(bench, right), wrong=self._of(bench, wrong))

    def _of(self, bench: Bench, tuned: Trace) -> Trace:
        zero = bench.zero
        maps = _others_maps(zero, tuned, bench.seed)
        outputs, blocks = (other_query(getattr(zero, n), getattr(tuned, n), bench.seed) for n in ("outputs", "blocks"))
        return replace(tuned, outputs=outputs, blocks=blocks, own=maps)


def _random_maps(start: Trace, end: Trace, seed: int) -> OwnLogits:
    """Attention logits of random updates, each query's drawn by its place among all of them."""
    found = replace(start.own, entries=torch.empty_like(start.own.entries, dtype=torch.float64))
    for i in range(len(POSITIONS)):
        for some in found.some_queries():
            zero, tuned = (trace.own.padded(i, queries=some) for trace in (start, end))
            found.put(isotropic_maps(zero, tuned, start.keys[some, i], seed, some.start), i, queries=some)
    return found


def _others_maps(start: Trace, end: Trace, seed: int) -> OwnLogits:
    """Attention logits of other queries' updates."""
    found = replace(start.own, entries=torch.empty_like(start.own.entries, dtype=torch.float64))
    for i in range(len(POSITIONS)):
        for some in found.some_layers():
            zero, tuned = (trace.own.padded(i, some) for trace in (start, end))
            found.put(other_query_maps(zero, tuned, start.keys[:, i], seed), i, some)
    return found


@dataclass(frozen=True)
class WeightNoise(Null):
    """Gaussian changes of the trained weights, each parameter's as long as the learner's."""

    title: ClassVar[str] = "weight noise of the same size"
    drawn: ClassVar[bool] = False
    trains: ClassVar[bool] = True  # one more trace of every query
    version: ClassVar[int] = 2

    def trace(self, bench: Bench, label: str, learner: Learner, run: Run) -> Trace | None:
        part = getattr(learner, "trains", None)
        if part is None or not run.change:
            raise Refusal("the learner does not say which weights it changes.")
        weights = self.weights(bench.subject.layout.slots(part), run.change, bench.seed)
        made = Trained(bench.subject, part, bench.prompts.bos, run.training, weights)  # type: ignore[arg-type]  # handed on
        with made.installed() as predictor:
            return predictor.trace(bench.prompts, bench.batch, partial(bench.progress, "weight noise"))

    def weights(self, slots: Sequence[Slot], change: Change, seed: int) -> list[Tensor]:
        """In float32 or better, as the learner's own are: in bfloat16 changes as small as its would be rounded away."""
        found = []
        for place, (slot, (_, added)) in enumerate(zip(slots, change, strict=True)):
            own = slot.parameter.detach()
            noise = slot.restrict(normal(own.shape, seed * len(slots) + place, own.device).float())
            scaled = noise * (added.norm().to(own.device) / noise.norm())
            found.append(own.to(torch.promote_types(own.dtype, torch.float32)) + scaled)
        return found
