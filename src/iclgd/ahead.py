"""Trainings that cells will ask their benches for, done before, many at once, as far as memory holds what they give."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from iclgd.bench import OWN, Bench, trains_together
from iclgd.learners import Learner
from iclgd.learners.descent import GradientDescent
from iclgd.learners.together import Job, train_together, trained_bytes
from iclgd.models.budget import free_memory
from iclgd.prompts import Prompts

AHEAD = 0.25  # of the free memory may hold trained weights that wait for their turn


@dataclass(frozen=True)
class Wanted:
    """A training that a cell will ask its bench for, under these names."""

    bench: Bench
    label: str
    learner: Learner
    demos: Prompts
    what: str = OWN
    floor: bool = False  # its noise floor will be asked for, too

    @property
    def key(self) -> tuple[str, str]:
        return self.label, self.what


def train_ahead(wanted: Sequence[Wanted]) -> None:
    """Train at once what benches of one subject will be asked for; `Bench.learned` then only traces."""
    todo: dict[tuple[int, str, str], Wanted] = {}
    for one in wanted:
        if not trains_together(one.learner):
            continue
        if one.floor:
            one.bench.awaits_floor(one.label, one.learner, one.demos, one.what)
        if one.bench.lacks(*one.key):
            todo.setdefault((id(one.bench), *one.key), one)
    if not todo:
        return
    bench = next(iter(todo.values())).bench
    bench.progress(f"training {len(todo)} at once" if len(todo) > 1 else "training", 0)
    jobs = [Job(one.learner, one.demos, vectors=one.what == OWN) for one in todo.values()]  # type: ignore[arg-type]  # all descend
    for one, trained in zip(
        todo.values(), train_together(bench.subject, jobs, lambda what: bench.progress(what, 0)), strict=True
    ):
        one.bench.take(*one.key, trained)


def portions(wanted: Sequence[tuple[Bench, Sequence[Wanted]]]) -> Iterator[range]:
    """Cells in a row, all of a bench together, as many benches at once as memory holds trained weights of."""
    begin, taken, room = 0, 0.0, math.inf
    for _, cells in groupby(range(len(wanted)), key=lambda i: id(wanted[i][0])):
        its = list(cells)
        bench = wanted[its[0]][0]
        learners = {one.key: one.learner for i in its for one in wanted[i][1]}.values()
        parts = [learner.trains for learner in learners if isinstance(learner, GradientDescent)]
        size = sum(trained_bytes(bench.subject, part) for part in parts)
        if its[0] > begin and taken + size > room:
            yield range(begin, its[0])
            begin, taken = its[0], 0.0
        if its[0] == begin:
            room = AHEAD * free if (free := free_memory(bench.subject.device)) is not None else math.inf
        taken += size
    yield range(begin, len(wanted))


def forget(wanted: Sequence[tuple[Bench, Sequence[Wanted]]], done: int) -> None:
    """What a cell had trained goes as soon as no later cell asks for it, and an episode with its last cell.

    A trace of every query and the weights behind it are there for each rate, draw of labels and null otherwise. A cell
    that runs alone may be followed by others of its episode, which may ask for a learner's own trace.
    """
    bench, cell = wanted[done]
    later = [its for other, its in wanted[done + 1 :] if other is bench]
    if len(wanted) > 1 and not later:
        bench.clear()
        return
    asked = {one.key for its in later for one in its}
    bench.forget(one.key for one in cell if one.key not in asked and (later or one.what != OWN))
