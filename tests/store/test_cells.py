"""Cells on disk are whole, are what their name says, and come back as they were."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import iclgd
from iclgd.errors import Refusal
from iclgd.lab import Cell
from iclgd.results import Result, array
from iclgd.spec import EpisodeSpec
from iclgd.store.cells import Store, provenance

SOURCE = Path(iclgd.__file__).parents[1]
CELL = Cell("toy", EpisodeSpec(k=3), {"seed": 0})
KEY = CELL.key({"weights": "w"}, version=1)
RESULT = Result(
    {"origin": "Büchner", "diverged": False, "share": float("nan")},
    [
        array(np.array([0, 1, 1]), "query", quantity="answers"),
        array(np.array([[0.1, np.nan], [np.inf, -0.0]]), "a", "b", metric="m", coordinates={"b": ("x", "y")}),
        array(np.arange(6, dtype=np.float32).reshape(2, 3).T, "a", "b", quantity="turned"),
        array(np.float64(2.5), quantity="one number"),
    ],
)


def write(store: Store, key: str = KEY) -> None:
    store.write(key, CELL, {"weights": "w"}, RESULT, provenance(1.23, "cpu"))


@pytest.fixture
def store(tmp_path):
    made = Store(tmp_path / "cells")
    write(made)
    return made


def test_a_cell_comes_back_to_the_last_bit(store):
    found = store.read(KEY)
    assert found.facts == {"origin": "Büchner", "diverged": False, "share": None}
    for one, other in zip(RESULT.arrays, found.arrays, strict=True):
        assert (one.labels, one.axes, one.coordinates) == (other.labels, other.axes, other.coordinates)
        assert other.values.dtype == one.values.dtype
        assert other.values.shape == one.values.shape
        assert other.values.tobytes() == np.ascontiguousarray(one.values).tobytes()


def test_a_key_changes_with_lab_version_spec_and_what_the_spec_points_to():
    others = [
        Cell("other", EpisodeSpec(k=3)).key({"weights": "w"}, 1),
        CELL.key({"weights": "w"}, 2),
        Cell("toy", EpisodeSpec(k=4)).key({"weights": "w"}, 1),
        CELL.key({"weights": "v"}, 1),
    ]
    assert len({KEY, *others}) == 5
    assert Cell("toy", EpisodeSpec(k=3), {"seed": 7}, "elsewhere").key({"weights": "w"}, 1) == KEY


def test_the_record_says_what_was_asked_and_what_it_ran_on_in_strict_json(store):
    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    text = (store.path(KEY) / "record.json").read_text(encoding="utf-8")
    record = json.loads(text, parse_constant=refuse)
    assert record["spec"] == CELL.spec.model_dump(mode="json")
    assert record["identity"] == {"weights": "w"}
    assert record["provenance"]["versions"].keys() == {"iclgd", "torch", "transformers", "numpy", "scipy"}
    assert (record["provenance"]["seconds"], record["provenance"]["device"]) == (1.23, "cpu")


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:40])


def flip(path: Path) -> None:
    """One bit of the last number."""
    whole = bytearray(path.read_bytes())
    whole[-1] ^= 1
    path.write_bytes(bytes(whole))


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: (folder / "record.json").unlink(),
        lambda folder: cut(folder / "record.json"),
        lambda folder: cut(folder / "arrays.safetensors"),
        lambda folder: flip(folder / "arrays.safetensors"),
        lambda folder: (folder / "arrays.safetensors").write_bytes(b""),
        lambda folder: (folder / "arrays.safetensors").unlink(),
        lambda folder: edit(folder / "record.json", KEY, KEY[:-1] + "x"),
        lambda folder: edit(folder / "record.json", "Büchner", "Büchnes"),
        lambda folder: edit(folder / "record.json", '"format": 2', '"format": 3'),
        lambda folder: (folder / "record.json").write_text("[]"),
    ],
    ids=[
        *("no record", "record cut", "arrays cut", "a bit flipped", "arrays empty", "no arrays", "another's record"),
        *("a fact altered", "a later format", "no record at all"),
    ],
)
def test_a_damaged_cell_is_refused_by_its_path_with_what_to_do(store, damage):
    damage(store.path(KEY))
    with pytest.raises(Refusal, match="remove that folder and run again") as refusal:
        store.read(KEY)
    assert str(store.path(KEY)) in str(refusal.value)


def test_a_cell_that_cannot_be_written_is_not_there_at_all(tmp_path, monkeypatch):
    def full_disk(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full_disk)
    store = Store(tmp_path / "cells")
    with pytest.raises(Refusal, match="No space left"):
        write(store)
    assert not store.has(KEY)
    assert list((tmp_path / "cells").iterdir()) == []


def test_writing_a_cell_again_changes_nothing_and_removing_it_lets_it_be_written(store):
    before = (store.path(KEY) / "record.json").stat().st_mtime_ns
    write(store)
    assert (store.path(KEY) / "record.json").stat().st_mtime_ns == before
    store.remove(KEY)
    assert not store.has(KEY)
    write(store)
    assert store.has(KEY)


def test_a_cell_that_is_written_anew_is_there_at_every_moment(store):
    """A reader that never rests finds the old one or the new one, whole."""
    ended, seen, lost = threading.Event(), 0, []

    def look() -> None:
        nonlocal seen
        while not ended.is_set():
            try:
                store.read(KEY)
                seen += 1
            except Refusal as refusal:
                lost.append(str(refusal))

    reader = threading.Thread(target=look)
    reader.start()
    for count in range(60):
        other = Result({}, [array(np.array([count]), "x", quantity="count")])
        store.write(KEY, CELL, {}, other, {"count": count}, anew=True)
    ended.set()
    reader.join()
    assert seen
    assert lost == []
    assert store.record(KEY)["provenance"] == {"count": 59}
    assert store.names() == [KEY[:32]]
    assert list(store.folder.glob(".*")) == []


def test_a_cell_is_on_the_disk_before_its_name_is_and_the_name_before_it_is_told(tmp_path, monkeypatch):
    from iclgd import files

    store, own, seen = Store(tmp_path / "cells"), files.sync, []

    def noted(path: Path) -> None:
        own(path)
        seen.append((path.name, store.has(KEY)))

    monkeypatch.setattr(files, "sync", noted)
    write(store)
    folder = store.path(KEY).name
    assert sorted(seen[:3]) == sorted([("record.json", False), ("arrays.safetensors", False), (folder, False)])
    assert seen[3:] == [("cells", True)]


@pytest.mark.parametrize("rest", ["0", "f"])
def test_a_cell_whose_key_only_begins_alike_is_not_taken_for_another(store, rest):
    with pytest.raises(Refusal, match="it is not the one its name says"):
        store.read(KEY[:32] + rest * 32)


def test_a_cell_of_the_first_format_is_read_as_it_is(store):
    """Which had no hash of the record."""
    path = store.path(KEY) / "record.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    del record["sha256"]
    path.write_text(json.dumps(record | {"format": 1}), encoding="utf-8")
    assert store.read(KEY).facts["origin"] == "Büchner"
    assert store.record(KEY)["format"] == 2
    store.check(KEY)
    flip(store.path(KEY) / "arrays.safetensors")
    with pytest.raises(Refusal, match="its numbers were altered"):
        store.read(KEY)


def test_what_is_left_of_a_cell_does_not_keep_it_from_being_written(store):
    (store.path(KEY) / "record.json").unlink()
    write(store)
    assert store.read(KEY).facts["origin"] == "Büchner"


def test_the_stores_own_time_for_a_cell_is_below_twenty_milliseconds(tmp_path):
    """A fast one of fifty, so that a busy machine does not decide."""
    store, times = Store(tmp_path / "cells"), []
    for seed in range(50):
        cell = Cell("toy", EpisodeSpec(seed=seed))
        start = time.monotonic()
        store.write(cell.key({}, 1), cell, {}, RESULT, {})
        store.read(cell.key({}, 1))
        times.append(time.monotonic() - start)
    assert sorted(times)[5] < 0.02


KILLED = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
where = sys.argv[3]
if where == "arrays":
    def half(path, numbers):
        with path.open("wb", buffering=0) as file:
            file.write(numbers[: len(numbers) // 2])
        os.kill(os.getpid(), signal.SIGKILL)
    Path.write_bytes = half
else:
    import iclgd.store.cells as cells
    cells.synced = lambda folder: os.kill(os.getpid(), signal.SIGKILL)
from test_cells import Store, write
write(Store(Path(sys.argv[1])))
"""


@pytest.mark.parametrize("where", ["arrays", "just before it is moved into place"])
def test_a_cell_whose_writer_was_killed_is_never_seen(tmp_path, where):
    path = os.pathsep.join([str(SOURCE), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-c", KILLED, str(tmp_path / "cells"), str(Path(__file__).parent), where]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    store = Store(tmp_path / "cells")
    assert not store.has(KEY)
    write(store)
    assert store.read(KEY).facts["origin"] == "Büchner"
