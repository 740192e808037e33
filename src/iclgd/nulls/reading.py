"""Nulls on the side of reading: what is left of its update when nothing, or something wrong, can be learned from it."""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from iclgd.bench import Bench, Run
from iclgd.errors import Refusal
from iclgd.learners import Learner
from iclgd.learners.prompted import InContext
from iclgd.models.traces import Trace
from iclgd.nulls import Null
from iclgd.prompts import Demo, Prompts


@dataclass(frozen=True)
class Filler(Null):
    """As many tokens as the demonstrations have, their own in random order: position is left, and which words."""

    title: ClassVar[str] = "reading filler of the same length"
    drawn: ClassVar[bool] = False
    side: ClassVar[Literal["learner", "reading"]] = "reading"
    trains: ClassVar[bool] = True  # one more trace of every query

    def trace(self, bench: Bench, label: str, learner: Learner, run: Run) -> Trace:
        trace = bench.learned("filler", InContext(), replace(bench.prompts, demos=self.demos(bench))).trace
        assert trace is not None  # reading does not diverge
        return trace

    def demos(self, bench: Bench) -> tuple[Demo, ...]:
        return filler(bench.prompts, bench.seed)


def filler(prompts: Prompts, seed: int) -> tuple[Demo, ...]:
    """Each demonstration's length kept; its tokens, label words among them, from anywhere in the context."""
    if not prompts.demos:
        raise Refusal("there are no demonstrations to replace.")
    tokens = np.array([token for demo in prompts.demos for token in demo.ids])
    mixed = np.random.RandomState(seed).permutation(tokens)
    cuts = np.cumsum([len(demo.ids) for demo in prompts.demos])[:-1]
    return tuple(Demo(tuple(map(int, part)), ()) for part in np.split(mixed, cuts))


@dataclass(frozen=True)
class ReadWrongLabels(Null):
    """Reading the same demonstrations, every label wrong."""

    title: ClassVar[str] = "reading wrong labels"
    drawn: ClassVar[bool] = False
    side: ClassVar[Literal["learner", "reading"]] = "reading"
    trains: ClassVar[bool] = True

    def trace(self, bench: Bench, label: str, learner: Learner, run: Run) -> Trace:
        return bench.icl_wrong
