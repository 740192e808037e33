"""What is kept, what may go and what travels, on stores whose files and ages are planted."""

import gzip
import json
import os
import tarfile

import numpy as np
import pytest

from iclgd.errors import Refusal
from iclgd.lab import Cell
from iclgd.results import Result, array
from iclgd.spec import EpisodeSpec
from iclgd.store import upkeep
from iclgd.store.cells import Store
from iclgd.store.upkeep import bring, damaged, export, needed, unneeded

NOW = 1_700_000_000


def write(store: Store, seed: int) -> str:
    cell = Cell("toy", EpisodeSpec(seed=seed))
    store.write(cell.key({}, 1), cell, {}, Result({}, [array(np.arange(seed + 1.0), "x", quantity="q")]), {})
    return cell.key({}, 1)[:32]


@pytest.fixture
def store(tmp_path):
    made = Store(tmp_path / "cells")
    for seed in range(3):
        write(made, seed)
    return made


def spoil(folder) -> None:
    path = folder / "arrays.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"x")


def test_studies_need_the_cells_of_their_records_in_either_form_and_of_every_part(tmp_path):
    a, b, c, d, e = (letter * 64 for letter in "abcde")
    for folder, record in {
        "one": {"cells": [a, {"key": b, "more": 1}]},
        "deep/er": {"cells": [b], "parts": [{"cells": [c]}, {"cells": [{"key": d}]}, {}]},
        "none": {},
    }.items():
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "study.json").write_text(json.dumps(record))
    (tmp_path / "one/other.json").write_text(json.dumps({"cells": [e]}))
    assert needed(tmp_path) == {letter * 32 for letter in "abcd"}


@pytest.mark.parametrize("spoiled", [lambda path: path.mkdir(), lambda path: path.write_text("{")])
def test_a_study_that_cannot_be_read_may_need_any_cell(tmp_path, spoiled):
    spoiled(tmp_path / "study.json")
    with pytest.raises(Refusal, match="may name cells: nothing was removed"):
        needed(tmp_path)


def test_what_is_older_than_so_many_hours_and_no_study_needs_may_go_with_its_bytes(store, tmp_path, monkeypatch):
    monkeypatch.setattr(upkeep.time, "time", lambda: float(NOW))
    first, second, third = store.names()
    for name, age in ((first, 7200), (second, 7201), (third, 9000)):
        os.utime(store.folder / name, (NOW - age, NOW - age))
    runs = tmp_path / "runs"
    runs.mkdir()
    found = unneeded(store, runs, hours=2)
    assert found.names == [second, third]
    assert found.bytes == sum(path.stat().st_size for name in found.names for path in (store.folder / name).iterdir())
    (runs / "study.json").write_text(json.dumps({"cells": [third + "0" * 32]}))
    assert unneeded(store, runs, hours=2).names == [second]
    assert unneeded(store, runs, hours=3) == upkeep.Unneeded([], 0)


def test_a_damaged_cell_is_told_with_its_reason_and_no_other(store):
    assert list(damaged(store)) == []
    bad = store.names()[1]
    spoil(store.folder / bad)
    ((name, why),) = damaged(store)
    assert name == bad
    assert "its numbers were altered" in why


@pytest.mark.parametrize("name, packed", [("x.tar", False), ("x.tar.gz", True), ("x.tgz", True)])
def test_an_archive_is_packed_as_its_name_says_and_has_each_cell_once(store, tmp_path, name, packed):
    first, second, _ = store.names()
    assert export(store, [second, first, second], tmp_path / name) == 2
    assert ((tmp_path / name).read_bytes()[:2] == b"\x1f\x8b") is packed
    with tarfile.open(tmp_path / name) as tar:
        names = tar.getnames()
    assert names == [f"{cell}/{file}" for cell in (second, first) for file in ("record.json", "arrays.safetensors")]
    assert bring(Store(tmp_path / "new"), tmp_path / name) == upkeep.Imported(2, 0, [])


@pytest.mark.parametrize("name", ["cells.zip", "cells.gz", "cells.tar.bz2"])
def test_a_name_of_another_kind_of_archive_is_refused(store, tmp_path, name):
    with pytest.raises(Refusal, match=r"give that of a \.tar or \.tar\.gz file, or of a folder"):
        export(store, store.names(), tmp_path / name)
    assert not (tmp_path / name).exists()


def test_a_folder_of_exported_cells_is_a_store_of_the_same_files(store, tmp_path):
    assert export(store, store.names()[:2], tmp_path / "some.cells") == 2
    assert Store(tmp_path / "some.cells").names() == store.names()[:2]
    assert list(damaged(Store(tmp_path / "some.cells"))) == []
    with pytest.raises(Refusal, match="is there already"):
        export(store, [], tmp_path / "some.cells")


def test_what_is_there_or_damaged_keeps_no_other_cell_from_being_taken_in(store, tmp_path):
    first, second, third = store.names()
    new = Store(tmp_path / "new")
    export(store, [first], tmp_path / "one.tar")
    assert bring(new, tmp_path / "one.tar") == upkeep.Imported(1, 0, [])
    spoil(store.folder / second)
    found = bring(new, store.folder)
    assert (found.new, found.there, [name for name, _ in found.damaged]) == (1, 1, [second])
    assert "its numbers were altered" in found.damaged[0][1]
    assert new.names() == sorted([first, third])


def test_a_source_without_cells_is_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(Refusal, match="holds no cells"):
        bring(Store(tmp_path / "new"), tmp_path / "empty")
    with pytest.raises(Refusal, match="check the name"):
        bring(Store(tmp_path / "new"), tmp_path / "nowhere.tar")


@pytest.mark.parametrize(
    "spoiled",
    [
        lambda whole: whole[: len(whole) // 2],
        lambda whole: whole[:40] + b"\xff" * 40 + whole[80:],
        lambda whole: gzip.compress(b"nonsense" * 99),
    ],
    ids=["cut", "overwritten", "no archive"],
)
def test_a_packed_archive_that_is_damaged_is_refused_with_what_to_do(store, tmp_path, spoiled):
    export(store, store.names(), tmp_path / "x.tar.gz")
    (tmp_path / "x.tar.gz").write_bytes(spoiled((tmp_path / "x.tar.gz").read_bytes()))
    with pytest.raises(Refusal, match="is not a tar file that can be read: export it again"):
        bring(Store(tmp_path / "new"), tmp_path / "x.tar.gz")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    "error, why", [(OSError(5, "Input/output error"), "Input/output error"), (OSError(), "the file is damaged")]
)
def test_an_archive_that_the_disk_does_not_give_is_refused(tmp_path, monkeypatch, error, why):
    def broken(_source):
        raise error

    (tmp_path / "x.tar").write_bytes(b"x")
    monkeypatch.setattr(upkeep.tarfile, "open", broken)
    with pytest.raises(Refusal, match=rf"cannot read .*x\.tar: {why}\."):
        bring(Store(tmp_path / "new"), tmp_path / "x.tar")
