"""The index follows the cells, and is made anew from them whenever it is missing, damaged or of another version."""

from contextlib import contextmanager

import duckdb
import numpy as np
import pytest

from iclgd.errors import Refusal
from iclgd.lab import Cell
from iclgd.results import Result, array
from iclgd.spec import EpisodeSpec
from iclgd.store import index as module
from iclgd.store.cells import Store
from iclgd.store.index import FILE, opened


def write(store: Store, seed: int, value: float) -> str:
    cell = Cell("toy", EpisodeSpec(seed=seed), {"seed": seed})
    key = cell.key({}, 1)
    arrays = [
        array(np.array([value, value + 2]), "query", quantity="q"),
        array(np.array([[1.0, np.nan], [3, 5]]), "place", "query", metric="m", coordinates={"place": ("x", "y")}),
        array(np.full(2, np.nan), "query", quantity="none"),
    ]
    store.write(key, cell, {}, Result({"count": 7, "name": "a"}, arrays), {"seconds": 2.5, "memory": 10})
    return key


@pytest.fixture
def store(tmp_path):
    made = Store(tmp_path / "cells")
    for seed in range(3):
        write(made, seed, seed)
    return made


def numbers(store: Store) -> dict[str, list[float]]:
    """The values by their labels, in the order of the cells."""
    with opened(store) as index:
        labels = index.labels()
        names, ids, values = index.numbers(labels)
    found: dict[str, list[tuple[str, float]]] = {}
    for name, i, value in zip(names, ids, values, strict=True):
        found.setdefault(" ".join(f"{k}={v}" for k, v in labels[i].items()), []).append((name, float(value)))
    return {what: [value for _, value in sorted(some)] for what, some in found.items()}


def test_a_number_is_the_mean_over_places_without_names(store):
    found = numbers(store)
    assert sorted(found["quantity=q"]) == [1, 2, 3]
    assert found["metric=m place=x"] == [1, 1, 1]
    assert found["metric=m place=y"] == [4, 4, 4]
    assert found["fact=count"] == [7, 7, 7]
    assert np.isnan(found["quantity=none"]).all()
    assert set(found) == {"quantity=q", "metric=m place=x", "metric=m place=y", "fact=count", "quantity=none"}


def test_what_is_added_removed_or_written_again_is_seen(store):
    numbers(store)
    write(store, 3, 10)
    assert sorted(numbers(store)["quantity=q"]) == [1, 2, 3, 11]
    key = write(store, 0, 0)
    store.remove(key)
    assert sorted(numbers(store)["quantity=q"]) == [2, 3, 11]
    write(store, 0, 20)
    assert sorted(numbers(store)["quantity=q"]) == [2, 3, 11, 21]


def test_what_did_not_change_is_not_read_again(store, monkeypatch):
    numbers(store)
    write(store, 3, 10)
    read = []
    monkeypatch.setattr(module, "_read", lambda s, name, own=module._read: read.append(name) or own(s, name))
    numbers(store)
    numbers(store)
    assert len(read) == 1


def of_another_version(path):
    with duckdb.connect(str(path)) as connection:
        connection.execute("UPDATE about SET version = 99")


def with_other_tables(path):
    path.unlink()
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE cells (x INTEGER)")


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.unlink(),
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(b"nonsense" * 1000),
        lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
        of_another_version,
        with_other_tables,
    ],
    ids=["deleted", "empty", "nonsense", "half", "another version", "other tables"],
)
def test_an_index_that_is_not_one_is_made_anew(store, damage):
    before = numbers(store)
    damage(store.folder / FILE)
    assert str(numbers(store)) == str(before)
    with duckdb.connect(str(store.folder / FILE), read_only=True) as connection:
        assert connection.execute("SELECT version FROM about").fetchall() == [(module.VERSION,)]
    assert {path.name for path in store.folder.iterdir()} == {FILE, *store.names()}


def test_a_damaged_cell_is_known_as_such_and_hides_no_other(store):
    path = next(store.folder.glob("*/arrays.safetensors"))
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with opened(store) as index:
        damage = [cell.damage for cell in index.cells().values() if cell.damage]
        assert len(index.cells()) == 3
    assert len(damage) == 1
    assert "its numbers were altered" in damage[0]
    assert len(numbers(store)["quantity=q"]) == 2


def test_a_store_that_cannot_be_written_is_indexed_for_the_moment(store, monkeypatch):
    @contextmanager
    def refused(_target):
        raise Refusal("cannot write to it: Read-only file system.")
        yield

    monkeypatch.setattr(module, "aside", refused)
    assert sorted(numbers(store)["quantity=q"]) == [1, 2, 3]
    assert not (store.folder / FILE).exists()


def test_many_read_while_one_brings_it_up_to_date(store):
    with opened(store) as first:
        write(store, 3, 10)
        with opened(store) as second:
            assert (len(first.cells()), len(second.cells())) == (3, 4)
