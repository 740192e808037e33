"""Running a study: only what is missing is run, and what was finished is kept."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import iclgd
import toy
from iclgd.errors import Refusal, Stopped
from iclgd.running import Where, run_study
from iclgd.store.cells import Store

SOURCE = Path(iclgd.__file__).parents[1]
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(SOURCE), os.environ.get("PYTHONPATH", "")])}


@pytest.fixture(autouse=True)
def nothing_ran():
    toy.RAN.clear()


def run(tmp_path, overwrite=False, folder=None, **given):
    return run_study("toy", toy.ToySpec(**given), Where(tmp_path / "cells", folder, overwrite))


def test_five_seeds_where_three_are_done_run_two(tmp_path):
    assert run(tmp_path, seeds=3).fresh == 3
    assert run(tmp_path, seeds=5).fresh == 2
    assert sorted(toy.RAN[3:]) == [3, 4]
    assert run(tmp_path, seeds=5).fresh == 0
    assert run(tmp_path, seeds="1,4").fresh == 0


def test_what_changes_a_number_is_another_cell_and_what_does_not_is_the_same(tmp_path):
    run(tmp_path, seeds=1)
    assert run(tmp_path, seeds=1, loud=True).fresh == 0
    assert run(tmp_path, seeds=1, k=5).fresh == 1


def test_overwriting_runs_every_cell_anew(tmp_path):
    run(tmp_path, seeds=2)
    assert run(tmp_path, overwrite=True, seeds=3).fresh == 3
    assert len(toy.RAN) == 5


def test_stopping_what_is_overwritten_says_which_are_new_and_that_the_others_are_as_they_were(tmp_path, monkeypatch):
    run(tmp_path, seeds=3)
    monkeypatch.setenv("TOY_STOPS_AT", "1")
    with pytest.raises(Stopped, match="2 of 3 cells are new in .*cells, the others are as they were: .*`overwrite`"):
        run(tmp_path, overwrite=True, seeds=3)
    monkeypatch.delenv("TOY_STOPS_AT")
    assert run(tmp_path, seeds=3).fresh == 0
    assert run(tmp_path, overwrite=True, seeds=3).fresh == 3


def test_stopping_keeps_what_was_finished_and_the_same_call_goes_on(tmp_path, monkeypatch):
    monkeypatch.setenv("TOY_STOPS_AT", "1")  # the cells' order is 0, 2, 1
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, seeds=3)
    assert toy.RAN == [0, 2]
    monkeypatch.delenv("TOY_STOPS_AT")
    assert run(tmp_path, seeds=3).fresh == 1
    assert toy.RAN == [0, 2, 1]


def test_a_killed_study_has_its_finished_cells_and_the_same_command_finishes_it(tmp_path):
    code = "from iclgd.cli import main; main()"
    plugin = str(Path(toy.__file__).resolve())
    args = ["toy", "--plugin", plugin, "--seeds", "3", "--store", str(tmp_path / "cells"), "--out", str(tmp_path / "o")]
    command = [sys.executable, "-c", code, *args]
    killed = subprocess.run(command, env={**ENVIRONMENT, "TOY_DIES_AT": "1"}, capture_output=True, text=True)
    assert killed.returncode == -signal.SIGKILL
    assert len([path for path in (tmp_path / "cells").iterdir() if not path.name.startswith(".")]) == 2
    assert not (tmp_path / "o").exists()
    assert run(tmp_path, seeds=3).fresh == 1  # the same file, the same cells, as a plugin and as a module
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "o" / "index.html").is_file()


def test_a_refused_folder_is_refused_before_anything_is_run(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").touch()
    with pytest.raises(Refusal, match="was not written by iclgd and stays as it is"):
        run(tmp_path, folder=tmp_path / "mine", overwrite=True)
    assert toy.RAN == []


def test_the_same_study_may_be_shown_again_in_its_folder_and_another_may_not(tmp_path):
    run(tmp_path, folder=tmp_path / "out", seeds=2)
    run(tmp_path, folder=tmp_path / "out", seeds=2)
    with pytest.raises(Refusal, match="holds another study: give another `out`, or `overwrite`"):
        run(tmp_path, folder=tmp_path / "out", seeds=3)
    run(tmp_path, folder=tmp_path / "out", seeds=3, overwrite=True)


def test_a_cell_that_two_places_of_a_study_share_is_run_once(tmp_path, monkeypatch):
    monkeypatch.setattr(toy.ToySpec, "cells", lambda self, cells=toy.ToySpec.cells: cells(self) * 2)
    study = run(tmp_path, seeds=2)
    assert sorted(toy.RAN) == [0, 1]
    assert study.fresh == 2
    assert len(study.cells) == 4


def test_a_strangers_lab_has_its_source_in_its_keys(tmp_path):
    study = run(tmp_path, seeds=1)
    assert len(Store(tmp_path / "cells").record(study.keys[0])["identity"]["source"]) == 16
