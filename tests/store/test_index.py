"""The index follows the cells, and is made anew from them whenever it is missing, damaged or of another version."""

import sys
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
from iclgd.store.index import FILE, opened, summaries


def write(store: Store, seed: int, value: float) -> str:
    cell = Cell("toy", EpisodeSpec(seed=seed), {"seed": seed})
    key = cell.key({}, 1)
    arrays = [
        array(np.array([value, value + 2]), "query", quantity="q"),
        array(np.array([[1.0, np.nan], [3, 5]]), "place", "query", metric="m", coordinates={"place": ("x", "y")}),
        array(np.full(2, np.nan), "query", quantity="none"),
    ]
    store.write(key, cell, {}, Result({"count": 7, "name": "a"}, arrays), {"seconds": 2.5, "memory": 10}, anew=True)
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


def test_a_cell_that_is_written_anew_between_two_looks_has_only_its_new_numbers(store):
    before = numbers(store)
    write(store, 0, 20)
    found = numbers(store)
    assert sorted(found["quantity=q"]) == [2, 3, 21]
    assert {what: len(values) for what, values in found.items()} == dict.fromkeys(before, 3)


@pytest.fixture
def read(monkeypatch):
    """Names of the cells that are read to make an index."""
    names: list[str] = []
    monkeypatch.setattr(module, "_read", lambda s, name, own=module._read: names.append(name) or own(s, name))
    return names


def test_what_did_not_change_is_not_read_again(store, read):
    numbers(store)
    read.clear()
    key = write(store, 3, 10)
    numbers(store)
    numbers(store)
    assert read == [key[:32]]


def test_an_index_that_others_read_is_read_beside_them(store, read):
    numbers(store)
    read.clear()
    with duckdb.connect(str(store.folder / FILE), read_only=True):
        assert sorted(numbers(store)["quantity=q"]) == [1, 2, 3]
    assert read == []


def test_a_cells_row_has_what_its_record_says_and_the_size_of_its_files(store):
    key = write(store, 5, 0)
    cell = Cell("toy", EpisodeSpec(seed=6))
    store.write(other := cell.key({}, 1), cell, {}, Result({}), {})
    with opened(store) as index:
        found = index.cells()
    assert len(found) == 5
    kept, record = found[key[:32]], store.record(key)
    assert (kept.key, kept.lab, kept.damage, kept.seconds, kept.memory) == (key, "toy", "", 2.5, 10)
    assert kept.spec == EpisodeSpec(seed=5).model_dump(mode="json")
    assert kept.numbers == record["arrays_sha256"]
    assert kept.bytes == sum(path.stat().st_size for path in store.path(key).iterdir())
    assert np.isnan([found[other[:32]].seconds, found[other[:32]].memory]).all()


def test_each_set_of_labels_is_kept_once_and_what_nobody_asks_for_is_not_told(store):
    with opened(store) as index:
        before = index.labels()
    assert len(before) == 5
    write(store, 3, 10)
    with opened(store) as index:
        assert index.labels() == before
        assert [len(part) for part in index.numbers([])] == [0, 0, 0]
        one = next(i for i, labels in before.items() if labels == {"fact": "count"})
        assert index.numbers([one])[1].tolist() == [one] * 4


def test_truths_are_numbers_and_texts_are_not():
    arrays = [array(np.array([True, True, False, True]), "query", quantity="right")]
    found = {str(labels): value for labels, value in summaries(Result({"ok": True, "name": "a"}, arrays))}
    assert found == {"{'fact': 'ok'}": 1.0, "{'quantity': 'right'}": 0.75}


def test_an_index_of_nothing_takes_what_comes_later(tmp_path):
    store = Store(tmp_path / "cells")
    store.folder.mkdir()
    assert numbers(store) == {}
    write(store, 0, 0)
    assert numbers(store)["quantity=q"] == [1]


def test_what_is_left_of_a_cell_is_not_in_the_index(store):
    (store.folder / ("a" * 32)).mkdir()
    with opened(store) as index:
        assert len(index.cells()) == 3


def test_an_index_with_one_bad_byte_is_made_anew(store):
    before = numbers(store)
    whole = (store.folder / FILE).read_bytes()
    for place in range(4096 * 3 + 8, len(whole), 256 * 1024):  # behind the headers, in each block
        (store.folder / FILE).write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        assert str(numbers(store)) == str(before)


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), duckdb.IOException("No space left")])
def test_an_index_for_which_there_is_no_room_is_refused_in_one_sentence(store, monkeypatch, error):
    def full(*_, **__):
        raise error

    monkeypatch.setattr(module, "_add", full)
    with pytest.raises(Refusal, match="cannot be made in .*No space left"):
        numbers(store)
    if isinstance(error, OSError):
        monkeypatch.setattr(module.tempfile, "TemporaryDirectory", full)
        with pytest.raises(Refusal, match="cannot be made: No space left on device"):
            numbers(store)


def test_without_duckdb_it_is_said_what_to_install(store, monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(Refusal, match="pip install duckdb"):
        numbers(store)


def of_version(number):
    def changed(path):
        with duckdb.connect(str(path)) as connection:
            connection.execute(f"UPDATE about SET version = {number}")

    return changed


def with_other_tables(path):
    path.unlink()
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE cells (x INTEGER)")


def with_other_columns(path):
    with duckdb.connect(str(path)) as connection:
        connection.execute("ALTER TABLE cells DROP COLUMN stamp")


def a_folder(path):
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.unlink(),
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(b"nonsense" * 1000),
        lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
        of_version(99),
        of_version(-1),
        with_other_tables,
        with_other_columns,
        a_folder,
    ],
    ids=[
        *("deleted", "empty", "nonsense", "half", "a later version", "an older version", "other tables"),
        *("other columns", "a folder"),
    ],
)
def test_an_index_that_is_not_one_is_made_anew(store, damage):
    before = numbers(store)
    damage(store.folder / FILE)
    assert str(numbers(store)) == str(before)
    with duckdb.connect(str(store.folder / FILE), read_only=True) as connection:
        assert connection.execute("SELECT version FROM about").fetchall() == [(module.VERSION,)]
    assert {path.name for path in store.folder.iterdir()} == {FILE, *store.names()}


def test_a_folder_with_something_in_it_stays_and_the_index_is_made_for_the_moment(store):
    (store.folder / FILE).mkdir()
    (store.folder / FILE / "diary.txt").write_text("mine")
    assert sorted(numbers(store)["quantity=q"]) == [1, 2, 3]
    assert (store.folder / FILE / "diary.txt").read_text() == "mine"


def test_a_damaged_cell_is_known_as_such_and_hides_no_other(store):
    path = next(store.folder.glob("*/arrays.safetensors"))
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with opened(store) as index:
        damage = [cell.damage for cell in index.cells().values() if cell.damage]
        assert len(index.cells()) == 3
        (bad,) = (cell for cell in index.cells().values() if cell.damage)
    assert (bad.key, bad.lab, bad.spec, bad.numbers, bad.bytes) == ("", "", {}, "", 0)
    assert np.isnan([bad.seconds, bad.memory]).all()
    assert len(damage) == 1
    assert "its numbers were altered" in damage[0]
    assert len(numbers(store)["quantity=q"]) == 2


def test_a_damaged_cell_that_was_mended_is_known_again(store):
    path = next(store.folder.glob("*/arrays.safetensors"))
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + b"x")
    with opened(store) as index:
        assert index.damaged() == {path.parent.name}
    path.write_bytes(whole)
    with opened(store) as index:
        assert index.damaged() == set()
    assert len(numbers(store)["quantity=q"]) == 3


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
