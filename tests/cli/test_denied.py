"""Places that may not be reached and streams that were closed: a sentence for the one, silence for the other."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

import iclgd
import toy
from iclgd.cli.denied import LONGEST, denied, shortened
from said import refused

SOURCE = Path(iclgd.__file__).parents[1]
GRID = "parts: {a: {lab: toy, seeds: 2}}\n"


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("ICLGD_STORE", "ICLGD_CACHE", "ICLGD_DATA"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "g.yaml").write_text(GRID)
    return tmp_path


@pytest.fixture
def closed(place, monkeypatch):
    """A folder that may not be searched, for root too."""
    folder, own = place / "closed", os.stat
    folder.mkdir()

    def searched(path, *args, **more):
        if isinstance(path, str | Path) and folder in Path(path).absolute().parents:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return own(path, *args, **more)

    monkeypatch.setattr(os, "stat", searched)
    return folder


@pytest.mark.parametrize(
    "words, remedy",
    [
        (("study", "plan", "g.yaml", "--store", "closed/cells"), "name another with --store."),
        (("study", "run", "g.yaml", "--store=closed/cells"), "name another with --store."),
        (("identities", "--store", "./closed/cells/"), "name another with --store."),
        (("study", "status", "closed/cells"), "name another file or folder."),
    ],
    ids=lambda given: " ".join(given)[:40] if isinstance(given, tuple) else "",
)
def test_a_folder_that_may_not_be_searched_is_refused_with_the_flag_that_named_it(capsys, place, closed, words, remedy):
    said = refused(capsys, place, *words)
    assert said == f"iclgd: cannot use closed/cells: Permission denied; {remedy}\n"


@pytest.mark.parametrize(
    "name, words",
    [("ICLGD_STORE", ("store", "check")), ("ICLGD_CACHE", ("models",)), ("ICLGD_DATA", ("tasks", "sst2"))],
)
def test_a_variable_whose_folder_cannot_be_is_named(capsys, place, monkeypatch, name, words):
    monkeypatch.setenv(name, "n" * 300)
    said = refused(capsys, place, *words)
    assert said.endswith(f"File name too long; set {name} to another folder.\n")


def test_the_longest_value_that_is_part_of_the_path_tells_which_flag():
    error = PermissionError(errno.EACCES, "Permission denied", "/a/3/cells/record.json")
    line = ("compare", "--k", "3", "--task", "a,b", "--store", "/a/3/cells")
    told = "cannot use /a/3/cells/record.json: Permission denied; name another with --store."
    assert denied(error, line) == told
    assert denied(error, line[:-2]) == told.replace("--store", "--k")
    assert denied(error, ()) == told.replace("name another with --store", "name another file or folder")


def test_what_is_no_matter_of_names_or_permission_is_no_sentence():
    assert denied(OSError(errno.EIO, "Input/output error", "cells"), ()) is None
    assert denied(OSError(errno.EACCES, "Permission denied"), ()) is None


def test_a_long_path_is_shown_by_its_ends():
    assert shortened("n" * LONGEST) == "n" * LONGEST
    assert shortened("b" * 200 + "e" * 200) == "b" * 60 + "…" + "e" * 30


# streams that were closed


def shell(place, line: str) -> subprocess.CompletedProcess:
    path = os.pathsep.join([str(SOURCE), str(Path(toy.__file__).parent), os.environ.get("PYTHONPATH", "")])
    (place / "iclgd").write_text("import toy\nfrom iclgd.cli import main\nif __name__ == '__main__': main()\n")
    return subprocess.run(
        ["sh", "-c", f"{sys.executable} iclgd {line}"],
        cwd=place,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )


def test_a_closed_output_costs_nothing(place):
    for words in ("run g.yaml --out out", "plan g.yaml", "status g.yaml", "table out"):
        done = shell(place, f"study {words} >&-")
        assert (done.returncode, [line for line in done.stderr.splitlines() if "left" not in line]) == (0, [])
    assert (place / "out/index.html").is_file()


def test_workers_start_though_every_stream_was_closed(place):
    done = shell(place, "study run g.yaml --out out --engine processes --jobs 2 <&- >&- 2>&-")
    assert done.returncode == 0
    assert (place / "out/index.html").is_file()


def test_a_refusal_with_a_closed_error_stream_still_exits_with_2(place):
    assert shell(place, "study plan gone.yaml 2>&-").returncode == 2
