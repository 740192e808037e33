"""What a record says of where it was made, which names are cells', and what is refused in a store others touched."""

import hashlib
import json
import platform
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from iclgd.errors import Refusal
from iclgd.lab import Cell
from iclgd.results import Result, array
from iclgd.spec import EpisodeSpec
from iclgd.spec import key as hash_of
from iclgd.store import cells
from iclgd.store.cells import Store, default_store, is_name, peak_memory, provenance

CELL = Cell("toy", EpisodeSpec(k=3), {"seed": 0})
KEY = CELL.key({}, version=1)
RESULT = Result({"count": 7}, [array(np.arange(3.0), "x", quantity="q")])


@pytest.fixture
def store(tmp_path):
    made = Store(tmp_path / "cells")
    made.write(KEY, CELL, {}, RESULT, {})
    return made


def rewritten(store: Store, **changed) -> None:
    """The record with other entries, and with the hash that fits them."""
    path = store.path(KEY) / "record.json"
    record = json.loads(path.read_text(encoding="utf-8")) | changed
    del record["sha256"]
    path.write_text(json.dumps(record | {"sha256": hash_of(record)}), encoding="utf-8")


@pytest.mark.parametrize(
    "text, is_one",
    [
        ("0123456789abcdef" * 2, True),
        ("f" * 31, False),
        ("f" * 33, False),
        ("F" * 32, False),
        ("g" + "f" * 31, False),
        ("", False),
        (".building-7-abcdefgh-xxxxxxxxxxxx", False),
    ],
)
def test_a_cells_name_is_32_hexadecimal_digits(text, is_one):
    assert is_name(text) is is_one


def test_cells_are_kept_where_the_environment_says_and_else_below_runs(monkeypatch):
    monkeypatch.setenv("ICLGD_STORE", "elsewhere/cells")
    assert str(default_store()) == "elsewhere/cells"
    monkeypatch.setenv("ICLGD_STORE", "")
    assert default_store().parts == ("runs", "cells")


def test_only_folders_named_as_cells_are_cells_and_they_come_in_their_order(store):
    for name in ("b" * 32, "a" * 32, "notes", "index.duckdb"):
        (store.folder / name).mkdir()
    assert store.names() == sorted([KEY[:32], "a" * 32, "b" * 32])
    assert Store(store.folder / "nowhere").names() == []


def test_a_store_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(Refusal, match=r"cannot read .*file: Not a directory; name the folder of a store\."):
        Store(tmp_path / "file").names()


def test_a_stamp_changes_when_the_cell_is_written_again_and_nothing_has_none(store):
    first = store.stamp(KEY)
    assert first == store.stamp(KEY) != ""
    store.write(KEY, CELL, {}, RESULT, {}, anew=True)
    assert store.stamp(KEY) != first
    store.remove(KEY)
    assert store.stamp(KEY) == ""
    store.remove(KEY)  # and once more, as when another process was faster


def test_a_record_that_is_a_number_an_empty_one_or_has_no_key_is_refused(store):
    path = store.path(KEY) / "record.json"
    for text in ("7", "{}", '"x"', "null", '{"format": 2}'):
        path.write_text(text)
        with pytest.raises(Refusal, match="remove that folder and run again"):
            store.record_at(KEY)
    path.write_text(json.dumps({"format": 1, "key": 7}))
    with pytest.raises(Refusal, match="remove that folder and run again"):
        store.check(KEY)


def test_a_later_format_is_refused_even_where_its_hash_fits(store):
    rewritten(store, format=3)
    with pytest.raises(Refusal, match="its format is 3, which this version of iclgd does not know"):
        store.read(KEY)


def test_a_format_that_another_program_wrote_as_a_fraction_is_the_same_one(store):
    rewritten(store, format=2.0)
    assert store.read(KEY).facts == {"count": 7}


def test_numbers_that_are_no_numbers_are_refused_even_where_their_hash_fits(store):
    whole = b"nonsense" * 8
    (store.path(KEY) / "arrays.safetensors").write_bytes(whole)
    rewritten(store, arrays_sha256=hashlib.sha256(whole).hexdigest())
    with pytest.raises(Refusal, match="remove that folder and run again"):
        store.read(KEY)


def test_checking_refuses_numbers_that_are_gone_or_altered_and_nothing_else(store):
    assert store.check(KEY) is None
    path = store.path(KEY) / "arrays.safetensors"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(Refusal, match="its numbers were altered"):
        store.check(KEY)
    path.unlink()
    with pytest.raises(Refusal, match=r"cannot be read \(.*No such file"):
        store.check(KEY)


@pytest.mark.parametrize("stamps", [["a", "b", "b"], ["b", "a", "a"]])
def test_a_cell_that_changed_while_it_was_read_is_read_again(store, monkeypatch, stamps):
    """Between its record and its numbers somebody wrote it anew: the numbers do not fit the record."""
    own, calls = Store.result, []

    def once_torn(self, record):
        calls.append(record["key"])
        if len(calls) == 1:
            raise Refusal("its numbers were altered")
        return own(self, record)

    told = iter(stamps)
    monkeypatch.setattr(Store, "result", once_torn)
    monkeypatch.setattr(Store, "stamp", lambda self, key: next(told))
    assert store.read(KEY).facts == {"count": 7}
    assert calls == [KEY, KEY]


def test_a_record_is_json_that_other_programs_read_or_is_not_written(tmp_path):
    store = Store(tmp_path)
    with pytest.raises(ValueError, match="JSON"):
        store.write(KEY, CELL, {}, RESULT, {"seconds": float("nan")})
    assert not store.has(KEY)


# where it was made


def test_a_record_says_which_python_which_versions_and_how_long_to_a_hundredth(monkeypatch):
    monkeypatch.setattr(cells, "PACKAGES", ("numpy", "no-such-package"))
    found = provenance(1.23456, "cpu")
    assert found["versions"] == {"numpy": np.__version__, "no-such-package": "not installed"}
    assert found["python"] == platform.python_version()
    assert found["seconds"] == 1.23


def test_threads_are_torchs_where_it_is_there_and_else_one(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(get_num_threads=lambda: 5))
    assert provenance(1.0, "cpu")["threads"] == 5
    monkeypatch.delitem(sys.modules, "torch")
    assert provenance(1.0, "cpu")["threads"] == 1


@pytest.mark.parametrize(
    "device, available, most", [("cuda:1", True, 99), ("cuda:1", False, 7), ("cpu", True, 7), ("cpu", False, 7)]
)
def test_memory_is_the_devices_where_it_computed_on_one(monkeypatch, device, available, most):
    asked = SimpleNamespace(is_available=lambda: available, max_memory_allocated={"cuda:1": 99}.__getitem__)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=asked))
    monkeypatch.setattr(cells, "main_memory", lambda: 7)
    assert peak_memory(device) == most
    monkeypatch.delitem(sys.modules, "torch")
    assert peak_memory(device) == 7
