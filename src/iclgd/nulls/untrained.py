"""Nulls that need no training: random directions, the papers' uniform numbers, another query's update."""

from dataclasses import dataclass, replace
from typing import ClassVar

import torch

from iclgd.bench import Bench
from iclgd.learners import Learner
from iclgd.metrics.nulls import isotropic, isotropic_maps, other_query, other_query_maps, uniform
from iclgd.models.traces import Trace
from iclgd.nulls import Null
from iclgd.prompts import POSITIONS


@dataclass(frozen=True)
class RandomDirections(Null):
    """Updates as long as the learner's, in random directions."""

    title: ClassVar[str] = "random directions"

    def trace(self, bench: Bench, learner: Learner, tuned: Trace) -> Trace:
        zero = bench.zero
        maps = [
            isotropic_maps(zero.logits[:, :, i], tuned.logits[:, :, i], zero.keys[:, i], bench.seed)
            for i in range(len(POSITIONS))
        ]
        return replace(tuned, outputs=isotropic(zero.outputs, tuned.outputs, bench.seed), logits=torch.stack(maps, 2))


@dataclass(frozen=True)
class Uniform(Null):
    """What the papers' code took for a random update: numbers from [0, 1)."""

    title: ClassVar[str] = "uniform [0,1), as the papers' code"
    only: ClassVar[tuple[str, ...]] = ("SimAOU",)
    drawn: ClassVar[bool] = False

    def trace(self, bench: Bench, learner: Learner, tuned: Trace) -> Trace:
        return replace(tuned, outputs=uniform(bench.zero.outputs, bench.seed))


@dataclass(frozen=True)
class OtherQuery(Null):
    """The learner's update for another query."""

    title: ClassVar[str] = "another query's update"

    def trace(self, bench: Bench, learner: Learner, tuned: Trace) -> Trace:
        zero = bench.zero
        maps = [
            other_query_maps(zero.logits[:, :, i], tuned.logits[:, :, i], zero.keys[:, i], bench.seed)
            for i in range(len(POSITIONS))
        ]
        return replace(tuned, outputs=other_query(zero.outputs, tuned.outputs, bench.seed), logits=torch.stack(maps, 2))
