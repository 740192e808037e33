"""Cells on disk are whole, are what their name says, and come back as they were."""

import json

import pytest
import torch

from iclgd.errors import Refusal
from iclgd.run import CellResult
from iclgd.spec import LearnerSpec
from iclgd.store.cells import Store
from little import little_cell


@pytest.fixture
def cell(tmp_path):
    return little_cell(tmp_path / "model", tmp_path / "mine.yaml")


@pytest.fixture
def result():
    arrays = {
        "answers": torch.tensor([0, 1, 1]),
        "gd 0.01/SimAM_Δ": torch.tensor([[0.1, float("nan")], [float("inf"), -0.0]]),
        "turned": torch.arange(6.0, dtype=torch.float64).reshape(2, 3).T,
    }
    return CellResult({"diverged": [], "origin": "Büchner"}, arrays)


def test_a_cell_comes_back_to_the_last_bit(tmp_path, cell, result):
    store = Store(tmp_path / "cells")
    assert not store.has(cell)
    store.write(cell, result, 1.23, "cpu")
    assert store.has(cell)
    found = store.read(cell)
    assert found.facts == result.facts
    assert found.arrays.keys() == result.arrays.keys()
    for name, array in result.arrays.items():
        assert found.arrays[name].dtype == array.dtype
        assert found.arrays[name].contiguous().numpy().tobytes() == array.contiguous().numpy().tobytes()


def test_a_cell_is_named_by_its_spec_and_another_spec_is_another_cell(tmp_path, cell, result):
    store = Store(tmp_path / "cells")
    store.write(cell, result, 1.0, "cpu")
    other = cell.model_copy(update={"learners": (LearnerSpec(kind="gd", rate=0.02),)})
    assert not store.has(other)
    assert store.path(cell).name == cell.key()[:16]


def test_the_record_says_what_was_asked_and_what_it_ran_on(tmp_path, cell, result):
    store = Store(tmp_path / "cells")
    store.write(cell, result, 1.23, "cpu")

    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    record = json.loads((store.path(cell) / "record.json").read_text(encoding="utf-8"), parse_constant=refuse)
    assert record["spec"] == cell.model_dump(mode="json")
    assert record["provenance"]["versions"].keys() == {"iclgd", "torch", "transformers", "numpy", "scipy"}
    assert record["provenance"]["seconds"] == 1.2
    assert record["provenance"]["device"] == "cpu"


def test_a_cell_that_cannot_be_written_is_not_there_at_all(tmp_path, cell, result, monkeypatch):
    def full_disk(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("iclgd.store.cells.save_file", full_disk)
    store = Store(tmp_path / "cells")
    with pytest.raises(Refusal, match="No space left"):
        store.write(cell, result, 1.0, "cpu")
    assert not store.has(cell)
    assert list((tmp_path / "cells").iterdir()) == []


@pytest.mark.parametrize("damage", ["missing", "cut short", "another's"])
def test_a_cell_that_is_not_what_its_name_says_is_refused_by_its_path(tmp_path, cell, result, damage):
    store = Store(tmp_path / "cells")
    store.write(cell, result, 1.0, "cpu")
    arrays, record = store.path(cell) / "arrays.safetensors", store.path(cell) / "record.json"
    if damage == "missing":
        record.unlink()
    elif damage == "cut short":
        arrays.write_bytes(arrays.read_bytes()[:40])
    else:
        record.write_text(record.read_text().replace('"k": 3', '"k": 4'))
    with pytest.raises(Refusal, match="remove that folder and run again") as refusal:
        store.read(cell)
    assert str(store.path(cell)) in str(refusal.value)


def test_the_folder_is_opened_before_the_first_cell_is_written(tmp_path, cell, result):
    seen = []
    store = Store(tmp_path / "cells", lambda: seen.append((tmp_path / "cells").exists()))
    store.write(cell, result, 1.0, "cpu")
    assert seen == [False]
