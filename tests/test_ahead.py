"""Trainings ahead of their cells: as many as memory holds, and no bench is cut in two."""

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iclgd import ahead
from iclgd.ahead import Wanted, portions
from iclgd.bench import Bench
from iclgd.learners.descent import GradientDescent
from iclgd.learners.prompted import InContext
from iclgd.learners.together import trained_bytes
from iclgd.prompts import Prompts
from tiny import tiny_subject

SIZE = 1000
PROMPTS = object.__new__(Prompts)  # nobody looks inside


@pytest.fixture(autouse=True)
def sizes(monkeypatch):
    """Every finetuning takes as much; there is room for three of them."""
    monkeypatch.setattr(ahead, "trained_bytes", lambda _subject, _part: SIZE)
    monkeypatch.setattr(ahead, "free_memory", lambda _device: 3 * SIZE / ahead.AHEAD)


def cells(*counts: list[int]) -> list[Any]:
    """Benches, each with cells that want so many trainings."""
    found = []
    for bench_counts in counts:
        bench: Any = object.__new__(Bench)
        bench.subject = SimpleNamespace(device="anywhere")
        for cell, count in enumerate(bench_counts):
            found.append((bench, [Wanted(bench, f"{cell} {i}", GradientDescent(0.1), PROMPTS) for i in range(count)]))
    return found


def test_benches_are_taken_together_as_long_as_there_is_room():
    assert list(portions(cells([1, 1], [1], [1, 1]))) == [range(0, 3), range(3, 5)]


def test_a_new_portion_begins_with_all_the_room():
    assert list(portions(cells([2], [2], [1]))) == [range(0, 1), range(1, 3)]


def test_a_bench_that_is_too_large_stands_alone_and_is_not_cut():
    assert list(portions(cells([1], [5, 5], [1]))) == [range(0, 1), range(1, 3), range(3, 4)]


def test_a_training_that_two_cells_want_counts_once():
    wanted = cells([1], [1])
    bench = wanted[0][0]
    again = [(bench, [Wanted(bench, "0 0", GradientDescent(0.1), PROMPTS)]) for _ in range(3)]
    assert list(portions([*again, *wanted[1:]])) == [range(0, 4)]


def test_what_does_not_train_takes_no_room():
    wanted = cells([1], [1], [1])
    reading = [(bench, [Wanted(bench, str(i), InContext(), PROMPTS) for i in range(9)]) for bench, _ in cells([0])]
    assert list(portions([*reading, *wanted])) == [range(0, 4)]


def test_where_nobody_knows_the_memory_all_is_done_at_once(monkeypatch):
    monkeypatch.setattr(ahead, "free_memory", lambda _device: None)
    assert list(portions(cells([9], [9], [9]))) == [range(0, 3)]


@given(st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=4), min_size=1, max_size=6))
def test_every_cell_is_in_one_portion_and_in_order(counts):
    found = [i for portion in portions(cells(*counts)) for i in portion]
    assert found == list(range(sum(map(len, counts))))


def test_the_weights_of_a_finetuning_are_those_of_its_part():
    subject = tiny_subject("llama")
    layer = subject.model.model.layers[0].self_attn
    one = sum(p.nbytes for p in (*layer.k_proj.parameters(), *layer.v_proj.parameters()))
    assert trained_bytes(subject, "kv") == subject.layout.layers * one
