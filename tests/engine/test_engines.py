"""The engines run what they are given, groups together, to the same bits."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sleeping import jobs, slept

import iclgd
import toy
from iclgd.engine.engines import Engine, gpus_wanted
from iclgd.engine.work import Found, Job, Kept, groups, work
from iclgd.errors import Refusal, Unfinished
from iclgd.lab import LABS, Cell, Lab
from iclgd.report.terminal import CellProgress
from iclgd.running import Where, run_study
from iclgd.spec import ModelSpec, Spec
from iclgd.store.cells import Store
from iclgd.tools import Tools

SOURCE = Path(iclgd.__file__).parents[1]


TOY = Path(toy.__file__).resolve()


def test_jobs_of_one_group_stay_together_and_in_order():
    parts = groups(jobs(seeds=5))
    assert [[job.cell.spec.seed for job in part] for part in parts] == [[0, 2, 4], [1, 3]]


def test_cells_of_a_group_share_and_the_next_group_starts_anew(tmp_path):
    study = run_study("toy", toy.ToySpec(seeds=5), Where(tmp_path))
    assert {cell.spec.seed: result.facts["first"] for cell, result in study.found()} == {0: 0, 2: 0, 4: 0, 1: 1, 3: 1}


def test_cells_run_together_are_stored_one_by_one(tmp_path, monkeypatch):
    def together(cells, tools):
        yield toy.run(cells[0], tools)
        raise KeyboardInterrupt

    monkeypatch.setitem(LABS._things, "toy", Lab(toy.ToySpec, None, toy.page, together=together))
    store = Store(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        Engine().run(jobs(seeds=4), store, Tools(), CellProgress())
    assert [store.has(job.key) for job in jobs(seeds=4)] == [True, False, False, False]


def test_of_cells_that_fail_together_the_guilty_one_is_found_and_the_others_are_kept(tmp_path, monkeypatch):
    asked = []

    def together(cells, tools):
        asked.append([cell.spec.seed for cell in cells])
        if 4 in asked[-1]:
            raise ValueError("four")
        return [toy.run(cell, tools) for cell in cells]

    monkeypatch.setitem(LABS._things, "toy", Lab(toy.ToySpec, None, toy.page, together=together))
    store = Store(tmp_path)
    with pytest.raises(Unfinished, match=r"1 of 5 cells failed, 4 are kept in .*\. seed 4: ValueError: four\."):
        Engine().run(jobs(seeds=5), store, Tools(), CellProgress())
    assert asked == [[0, 2, 4], [0], [2], [4], [1, 3]]
    assert {job.cell.spec.seed for job in jobs(seeds=5) if store.has(job.key)} == {0, 1, 2, 3}


def test_processes_give_the_same_bits_with_a_lab_of_a_plugin_and_keep_groups_together(tmp_path):
    path = os.pathsep.join([str(SOURCE), os.environ.get("PYTHONPATH", "")])
    args = ["toy", "--plugin", TOY, "--seeds", 4, "--jobs", 2, "--store", tmp_path / "two", "--out", tmp_path / "out"]
    done = subprocess.run(
        list(map(str, [sys.executable, "-c", "from iclgd.cli import main; main()", *args])),
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
        run_study("toy", toy.ToySpec(), Where(tmp_path), Engine(jobs=2), subjects={"memory:x": object()})


def test_workers_that_cannot_start_are_a_sentence(tmp_path):
    (tmp_path / "script.py").write_text(
        "import sys, iclgd\n"
        f"sys.path.insert(0, {str(TOY.parent)!r})\n"
        "import naps\n"
        f"iclgd.nap(cells_=4, groups=2, jobs=2, store={str(tmp_path / 'cells')!r})\n"
    )
    path = os.pathsep.join([str(SOURCE), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, tmp_path / "script.py"], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert 'put what it does below `if __name__ == "__main__":`' in done.stderr.splitlines()[-1]


def test_a_worker_that_does_not_see_the_store_hands_over_what_it_found(tmp_path):
    asked = jobs(seeds=2)
    events = [event for event in work(asked[:1], Tools(), None) if not isinstance(event, Kept)]
    found = next(event for event in events if isinstance(event, Found))
    assert found.key == asked[0].key
    np.testing.assert_array_equal(found.result.arrays[0].values, np.random.RandomState(0).standard_normal(4))
    assert "finished" in found.provenance


@pytest.mark.parametrize(
    "given, sentence",
    [
        ({"name": "rai"}, '`engine` takes serial, processes, ray; "rai" is none of them. Did you mean ray?'),
        ({"jobs": 0}, "`jobs` must be at least 1, not 0."),
        ({"name": "serial", "jobs": 2}, "`engine` serial is one process: leave out `jobs`."),
        ({"address": "here"}, "`address` is that of a Ray cluster: give `engine` ray too."),
    ],
)
def test_an_engine_that_makes_no_sense_is_refused(given, sentence):
    with pytest.raises(Refusal) as refused:
        Engine(**given)
    assert str(refused.value).strip() == sentence


def test_a_worker_takes_a_gpu_where_a_device_may_be_one_and_all_where_a_model_is_spread():
    class OnModel(Spec):
        model: ModelSpec

    def wanted(**model):
        return gpus_wanted([Job("", Cell("toy", OnModel(model=ModelSpec(**model))), {})])

    found = [wanted(), wanted(device="cuda"), wanted(device="cpu"), wanted(device="cuda:1"), wanted(device_map="auto")]
    assert found == [1, 1, 0, None, None]
    assert gpus_wanted(jobs(seeds=1)) == 0


def test_each_worker_sees_a_gpu_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setattr("iclgd.engine.engines.gpus_wanted", lambda jobs: 1)
    monkeypatch.setattr("iclgd.engine.engines.visible_gpus", lambda: ["3", "5"])
    study = slept(tmp_path, Engine("processes"), cells_=8, groups=8, nap=0.2)  # one for each GPU
    seen = {(result.facts["process"], result.facts["gpu"]) for _, result in study.found()}
    assert {gpu for _, gpu in seen} == {"3", "5"}
    assert len(seen) == 2
