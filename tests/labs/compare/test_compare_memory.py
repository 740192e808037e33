"""What a comparison holds in memory: traces that somebody will still ask for, and no others."""

import weakref

import numpy as np
import pytest

from iclgd.labs.compare import run
from iclgd.models.traces import Kept
from iclgd.results import Result
from little import little_cell, little_tools

RATES = (0.01, 0.02, 0.03)
NULLS = ("random", "wrong-labels", "shuffled-labels", "other-demos", "filler")


def cells(task, versus=False):
    """The prompted learners, three rates with nulls that train, and perhaps the first beside another learner."""
    learned = [little_cell(task, f"gd:rate={rate}", nulls=NULLS, contrast=True) for rate in RATES]
    pair = [little_cell(task, "gd:rate=0.01", versus="lcgd:rate=0.01", nulls=())] if versus else []
    return [little_cell(task), *learned, *pair]


@pytest.fixture
def alive(monkeypatch):
    """How many of the traces that were made are still held."""
    made, make = list[weakref.ref](), Kept.trace

    def watched(kept, lowered):
        trace = make(kept, lowered)
        made.append(weakref.ref(trace))
        return trace

    monkeypatch.setattr(Kept, "trace", watched)
    return lambda: sum(one() is not None for one in made)


def results_of(subject, task, versus=False) -> list[Result]:
    return list(run.together(cells(task, versus), little_tools(subject)))


def test_a_learners_traces_are_gone_when_its_cell_is_done(subject, task, alive):
    """What is read stays (zero-shot, icl, wrong labels, filler), and what a pair asks for."""
    assert [alive() for _ in run.together(cells(task), little_tools(subject))] == [2, 4, 4, 0]
    assert [alive() for _ in run.together(cells(task, versus=True), little_tools(subject))] == [2, 5, 5, 5, 0]


def test_a_cell_that_runs_alone_leaves_the_trace_that_others_may_ask_for(subject, task):
    tools = little_tools(subject)
    cell = little_cell(task, "gd:rate=0.01", nulls=("wrong-labels",), contrast=True)
    run.run(cell, tools)
    bench = run.bench_of(cell.spec, tools)
    assert not bench.lacks("gd 0.01", "")
    assert bench.lacks("gd 0.01", "wrong labels")


def test_what_is_forgotten_changes_no_number(subject, task, monkeypatch):
    forgetting = results_of(subject, task, versus=True)
    monkeypatch.setattr(run, "forget", lambda *_what: None)
    keeping = results_of(subject, task, versus=True)
    for one, other in zip(forgetting, keeping, strict=True):
        assert [array.labels for array in one.arrays] == [array.labels for array in other.arrays]
        for mine, theirs in zip(one.arrays, other.arrays, strict=True):
            np.testing.assert_array_equal(mine.values, theirs.values)
