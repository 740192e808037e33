"""The engines run what they are given, groups together, to the same bits."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import iclgd
import toy
from iclgd.engine import serial
from iclgd.engine.serial import Job, groups
from iclgd.errors import Refusal
from iclgd.lab import LABS, Lab
from iclgd.running import Where, run_study
from iclgd.store.cells import Store
from iclgd.tools import Tools

SOURCE = Path(iclgd.__file__).parents[1]
TOY = Path(toy.__file__).resolve()


def jobs(**given) -> list[Job]:
    return [Job(cell.key({}, 1), cell, {}) for cell in toy.ToySpec(**given).cells()]


def test_jobs_of_one_group_stay_together_and_in_order():
    parts = groups(jobs(seeds=5))
    assert [[job.cell.spec.seed for job in part] for part in parts] == [[0, 2, 4], [1, 3]]


def test_cells_of_a_group_share_and_the_next_group_starts_anew(tmp_path):
    study = run_study("toy", toy.ToySpec(seeds=5), Where(tmp_path))
    assert {cell.spec.seed: result.facts["first"] for cell, result in study.found()} == {0: 0, 2: 0, 4: 0, 1: 1, 3: 1}


def test_what_was_finished_before_a_failure_is_kept(tmp_path, monkeypatch):
    def fails(cell, tools):
        if cell.spec.seed == 2:
            raise Refusal("no.")
        return toy.run(cell, tools)

    monkeypatch.setitem(LABS._things, "toy", Lab(toy.ToySpec, fails, toy.page))
    store, done = Store(tmp_path), []
    with pytest.raises(Refusal):
        serial.run_jobs(jobs(seeds=4), store, Tools(), done.append)
    assert [store.has(job.key) for job in jobs(seeds=4)] == [True, False, False, False]
    assert [cell.spec.seed for cell in done] == [0]


def test_cells_run_together_are_stored_one_by_one(tmp_path, monkeypatch):
    def together(cells, tools):
        yield toy.run(cells[0], tools)
        raise KeyboardInterrupt

    monkeypatch.setitem(LABS._things, "toy", Lab(toy.ToySpec, None, toy.page, together=together))
    store = Store(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        serial.run_jobs(jobs(seeds=4), store, Tools(), lambda _cell: None)
    assert [store.has(job.key) for job in jobs(seeds=4)] == [True, False, False, False]


def test_processes_give_the_same_bits_with_a_lab_of_a_plugin_and_keep_groups_together(tmp_path):
    code = "from iclgd.cli import main\nif __name__ == '__main__': main()"
    (tmp_path / "go.py").write_text(code)
    path = os.pathsep.join([str(SOURCE), os.environ.get("PYTHONPATH", "")])
    args = ["toy", "--plugin", TOY, "--seeds", 4, "--jobs", 2, "--store", tmp_path / "two", "--out", tmp_path / "out"]
    done = subprocess.run(
        list(map(str, [sys.executable, tmp_path / "go.py", *args])),
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    alone = run_study("toy", toy.ToySpec(seeds=4), Where(tmp_path / "one"))
    two, worked = Store(tmp_path / "two"), {}
    for cell, key in zip(alone.cells, alone.keys, strict=True):
        found = two.read(key)
        assert found.arrays[0].values.tobytes() == alone.results[key].arrays[0].values.tobytes()
        worked.setdefault(cell.group, set()).add(found.facts["process"])
    assert all(len(processes) == 1 for processes in worked.values())
    assert os.getpid() not in set.union(*worked.values())


def test_a_model_in_memory_stays_in_its_process(tmp_path):
    with pytest.raises(Refusal, match="leave out `jobs`"):
        run_study("toy", toy.ToySpec(), Where(tmp_path), jobs=2, subjects={"memory:x": object()})
