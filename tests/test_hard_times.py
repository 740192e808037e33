"""A full disk, a store that cannot be written, damaged cells, absurd requests: one sentence, no loss."""

import errno
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import toy
from hard import GRID, at_home, surroundings
from iclgd.lab import Cell
from iclgd.results import Result
from iclgd.store.cells import Store
from said import refused, run


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    return at_home(tmp_path, monkeypatch)


# a disk that is full


class FullDisk:
    """From its n-th write on, no write succeeds: whatever makes, fills, syncs or renames a file."""

    CALLS = (
        *((os, "fsync"), (os, "replace"), (os, "write"), (os, "mkdir"), (tempfile, "mkdtemp"), (shutil, "copyfile")),
        *((Path, "write_bytes"), (Path, "write_text"), (Path, "touch")),
    )

    def __init__(self, patch, place: Path, n: int):
        self.left, self.place = n, str(place)
        for where, name in self.CALLS:
            patch.setattr(where, name, self._or_full(getattr(where, name)))

    def _or_full(self, own):
        def call(*args, **more):
            self.left -= 1
            if self.left < 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return own(*args, **more)

        return call


@pytest.mark.parametrize(
    "asked",
    [
        ("toy", "--seeds", "2", "--out", "out"),
        pytest.param(("study", "run", "g.yaml", "--out", "out"), marks=pytest.mark.slow),
    ],
    ids=["lab", "grid"],
)
def test_a_disk_that_is_full_at_any_write_costs_one_sentence_and_no_kept_cell(capsys, place, asked):
    cells = 2 if asked[0] == "toy" else 4
    n, seen = 0, set()
    while True:
        for folder in ("runs", "out"):
            shutil.rmtree(folder, ignore_errors=True)
        toy.RAN.clear()
        with pytest.MonkeyPatch.context() as patch:
            disk = FullDisk(patch, place, n)
            code, out, err = run(capsys, *asked)
        sentences = [line for line in err.splitlines() if not line.startswith(tuple("0123456789"))]
        if disk.left >= 0:
            break
        seen.add(code)
        if code:
            assert code in (1, 2), err
            assert len(sentences) == 1, err
            assert "No space left on device" in err
            assert out == ""
        # every cell that is there is whole, what is missing is run by the same command, and nothing else is
        store = Store(place / "runs/cells")
        for name in store.names():
            store.check(name)
        kept = len(store.names())
        toy.RAN.clear()
        assert run(capsys, *asked)[0] == 0
        assert len(toy.RAN) == cells - kept
        n += 1
    assert n > 20
    assert 2 in seen


IN_A_NAMESPACE = (
    shutil.which("unshare")
    and subprocess.run(
        ["unshare", "-rm", "sh", "-c", "mount -t tmpfs -o size=1m tmpfs /mnt"], capture_output=True
    ).returncode
    == 0
)
needs_mounts = pytest.mark.skipif(
    not IN_A_NAMESPACE, reason="no file system can be mounted here, not even in a namespace"
)


def mounted(place, script: str, **more) -> subprocess.CompletedProcess:
    """A shell in a namespace of its own, where it may mount; $ICLGD is the command."""
    (place / "iclgd").write_text(
        f'#!/bin/sh\nexec {sys.executable} -c "import toy; from iclgd.cli import main; main()" "$@"\n'
    )
    (place / "iclgd").chmod(0o755)
    environment = surroundings(ICLGD=str(place / "iclgd"), **more)
    return subprocess.run(
        ["unshare", "-rm", "sh", "-c", script], cwd=place, env=environment, capture_output=True, text=True
    )


@needs_mounts
def test_a_real_full_disk_keeps_what_fitted_and_a_larger_one_goes_on_from_there(place):
    (place / "disk").mkdir()
    script = """
    mount -t tmpfs -o size=40k tmpfs disk
    $ICLGD toy --seeds 9 --store disk/cells --out disk/out; echo "first $?"
    $ICLGD store check --store disk/cells; echo "check $?"
    ls -A disk/cells | grep -c building
    mount -o remount,size=4m disk
    $ICLGD toy --seeds 9 --store disk/cells --out disk/out >/dev/null; echo "then $?"
    $ICLGD store check --store disk/cells
    """
    done = mounted(place, script)
    said = done.stdout.splitlines()
    assert said[0] == "first 1", done
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
    kept = int(said[1].split()[0])
    assert 0 < kept < 9
    assert said[1:4] == [f"{kept} cells, none damaged", "check 0", "0"]
    assert said[-2:] == ["then 0", "9 cells, none damaged"]


@needs_mounts
def test_a_read_only_store_is_said_before_the_work_and_still_shows_what_it_has(place):
    (place / "disk").mkdir()
    script = """
    mount -t tmpfs -o size=4m tmpfs disk
    $ICLGD toy --seeds 2 --store disk/cells --out out >/dev/null; echo "first $?"
    mount -o remount,ro disk
    TOY_DIES_AT=2 $ICLGD toy --seeds 3 --store disk/cells --out other; echo "then $?"
    $ICLGD toy --seeds 2 --store disk/cells --out out >/dev/null; echo "again $?"
    $ICLGD study table out --value value --rows seed --over draw >/dev/null; echo "table $?"
    """
    done = mounted(place, script)
    assert done.stdout.splitlines() == ["first 0", "then 2", "again 0", "table 0"], done
    assert "is not a writable folder (Read-only file system)" in done.stderr
    assert "Traceback" not in done.stderr


@needs_mounts
def test_a_finished_study_is_shown_again_from_a_read_only_store_and_grows_in_none(place):
    (place / "disk").mkdir()
    (place / "more.yaml").write_text(GRID.replace("seeds: 2,", "seeds: 3,"))
    script = """
    mount -t tmpfs -o size=4m tmpfs disk
    $ICLGD study run g.yaml --store disk/cells --out out >/dev/null; echo "first $?"
    mount -o remount,ro disk
    $ICLGD study run g.yaml --store disk/cells --out out | grep ran; echo "again $?"
    $ICLGD study run g.yaml --store disk/cells --out other | grep ran; echo "elsewhere $?"
    TOY_DIES_AT=2 $ICLGD study run more.yaml --store disk/cells --out more; echo "more $?"
    $ICLGD study run g.yaml --store disk/cells --out out --overwrite; echo "anew $?"
    """
    done = mounted(place, script)
    ran = "ran      0 cells"
    assert done.stdout.splitlines() == ["first 0", ran, "again 0", ran, "elsewhere 0", "more 2", "anew 2"], done
    assert done.stderr.count("is not a writable folder (Read-only file system)") == 2
    assert "Traceback" not in done.stderr
    assert not (place / "more").exists()


# cells that are not what they were


@pytest.mark.parametrize("file", ["arrays.safetensors", "record.json"])
def test_a_damaged_cell_is_said_before_the_others_are_run(capsys, place, file):
    run(capsys, "toy", "--seeds", 2)
    path = next((place / "runs/cells").glob(f"*/{file}"))
    path.write_bytes(path.read_bytes()[:-9])
    toy.RAN.clear()
    said = refused(capsys, place, "toy", "--seeds", 4)
    assert f"the cell {path.parent.relative_to(place)} cannot be read" in said
    assert toy.RAN == []
    shutil.rmtree(path.parent)
    assert run(capsys, "toy", "--seeds", 4)[0] == 0
    assert len(toy.RAN) == 3


# requests that cannot be met


def a_cell(store: Path) -> None:
    cell = Cell("toy", toy.ToyCell(scale=1, k=1, seed=0), {})
    Store(store).write(cell.key({}, 1), cell, {}, Result({}, []), {})


@pytest.mark.parametrize(
    "words, sentence",
    [
        (["toy", "--seeds", "99999999"], "--seeds takes from 1 to 10000 draws"),
        (["toy", "--out", "x" * 300], "File name too long"),
        (["toy", "--out", "link"], "link is a link to nothing: give another --out."),
        (["toy", "--out", "g.yaml/x"], "cannot write to g.yaml/x"),
        (["toy", "--spec", "unknown.yaml"], 'there is no field "sclae". Did you mean scale'),
        (["toy", "--store", "g.yaml"], "cannot write to g.yaml"),
        (["toy", "--store", "link"], "link is a link to nothing; name another place."),
        (["toy", "--store", "link/cells"], "link is a link to nothing; name another place."),
        (
            ["study", "run", "g.yaml", "--store", "link", "--jobs", "2"],
            "link is a link to nothing; name another place.",
        ),
        (["claims", "run", "--store", "link"], "link is a link to nothing; name another place."),
        (["store", "export", "link", "--store", "cells"], "link is there already: name another file or folder."),
        (["study", "run", "g.yaml", "--out", "x" * 300], "File name too long"),
        (["study", "run", "g.yaml", "--out", "link"], "link is a link to nothing"),
    ],
    ids=lambda given: " ".join(given)[:40] if isinstance(given, list) else "",
)
def test_what_cannot_be_done_is_refused_before_anything_is(capsys, place, words, sentence):
    (place / "link").symlink_to("nowhere")
    (place / "unknown.yaml").write_text("sclae: 2\n")
    a_cell(place / "cells")
    assert sentence in refused(capsys, place, *words)
    assert toy.RAN == []


@pytest.mark.parametrize("store", [("--store", "link"), ("--store", "link", "--jobs", "2"), ()])
def test_a_finished_study_stays_as_it_is_where_its_store_is_refused(capsys, place, monkeypatch, store):
    (place / "link").symlink_to("nowhere")
    assert run(capsys, "study", "run", "g.yaml", "--out", "out")[0] == 0
    before = (place / "out/study.json").read_bytes()
    if not store:
        monkeypatch.setenv("ICLGD_STORE", "link")
    assert "link is a link to nothing" in refused(capsys, place, "study", "run", "g.yaml", "--out", "out", *store)
    assert (place / "out/study.json").read_bytes() == before
    assert run(capsys, "study", "table", "out", "--value", "value", "--rows", "k")[0] == 0


@pytest.mark.parametrize("words", [["--k", "1000000000", "--draws", "tokens"], ["--dx", "1000000"]])
def test_terabytes_are_refused_in_a_sentence(capsys, place, words):
    code, out, err = run(capsys, "linear", "train", "--seeds", 1, *words)
    assert code in (1, 2)
    assert out == ""
    lines = [line for line in err.splitlines() if line.startswith("iclgd: ")]
    assert len(lines) == 1
    assert "memory" in lines[0]
    assert "Traceback" not in err
