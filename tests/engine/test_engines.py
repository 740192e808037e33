"""The engines run what they are given, groups together, to the same bits; what fails is said and costs nothing else."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import iclgd
import naps
import toy
from iclgd.engine.board import Board
from iclgd.engine.engines import Engine, gpus_wanted
from iclgd.engine.quarantine import file_of
from iclgd.engine.work import Begun, Failed, Found, Job, Kept, groups, work
from iclgd.errors import Refusal, Unfinished
from iclgd.lab import LABS, Cell, Lab
from iclgd.report.terminal import CellProgress
from iclgd.running import Where, run_study
from iclgd.spec import ModelSpec, Spec
from iclgd.store.cells import Store
from iclgd.tools import Tools

SOURCE = Path(iclgd.__file__).parents[1]
TOY = Path(toy.__file__).resolve()
ROADS = [Engine("serial"), Engine("processes", 2)]


def jobs(**given) -> list[Job]:
    return [Job(cell.key({}, 1), cell, {}) for cell in toy.ToySpec(**given).cells()]


def slept(folder, engine, **given):
    spec = naps.NapSpec.of({"log": str(folder / "ran"), **given})
    return run_study("nap", spec, Where(folder / "cells"), engine)


def in_store(folder) -> set[int]:
    records = (json.loads(path.read_text()) for path in (folder / "cells").glob("*/record.json"))
    return {record["spec"]["number"] for record in records}


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


@pytest.mark.parametrize("engine", ROADS, ids=lambda engine: engine.name)
def test_a_cell_that_raises_or_refuses_is_said_once_and_the_others_are_kept(tmp_path, engine):
    with pytest.raises(Unfinished) as failed:
        slept(tmp_path, engine, cells_=12, groups=4, raises="1,", refuses="6,")
    said = str(failed.value)
    assert said.startswith(f"2 of 12 cells failed, 10 are kept in {tmp_path / 'cells'}. ")
    assert "number 1: ZeroDivisionError: one over nothing." in said
    assert "number 6: this cell cannot be had." in said
    assert [trace.strip().splitlines()[-1] for trace in failed.value.traces] == ["ZeroDivisionError: one over nothing"]
    assert in_store(tmp_path) == set(range(12)) - {1, 6}
    assert sorted(map(int, naps.lines(tmp_path / "ran"))) == list(range(12))  # each once: errors are not retried
    assert slept(tmp_path, engine, cells_=12, groups=4).fresh == 2


@pytest.mark.parametrize("engine", ROADS, ids=lambda engine: engine.name)
@pytest.mark.parametrize("cells", [1, 4])
def test_what_every_cell_refuses_alike_is_that_refusal(tmp_path, engine, cells):
    with pytest.raises(Refusal, match=r"^this cell cannot be had\.$") as refused:
        slept(tmp_path, engine, cells_=cells, groups=2, refuses=",".join(map(str, range(4))))
    assert not isinstance(refused.value, Unfinished)


def test_a_bug_that_every_cell_has_keeps_its_own_exception(tmp_path):
    everything = ",".join(map(str, range(4)))
    with pytest.raises(ZeroDivisionError):
        slept(tmp_path, Engine(), cells_=4, groups=2, raises=everything)


def test_a_group_ends_when_two_of_its_cells_in_a_row_say_the_same(tmp_path):
    with pytest.raises(Unfinished, match=r"6 of 12 cells failed, 6 are kept in .* number 1 and 5 more: this cell"):
        slept(tmp_path, Engine(), cells_=12, groups=2, refuses="1,3,5,7,9,11")
    assert sorted(map(int, naps.lines(tmp_path / "ran"))) == [0, 1, 2, 3, 4, 6, 8, 10]


@pytest.mark.parametrize("engine", ROADS, ids=lambda engine: engine.name)
def test_a_cell_without_enough_memory_is_run_once_more_with_half_and_its_record_says_so(tmp_path, engine):
    study = slept(tmp_path, engine, cells_=6, groups=2, fills="2,")
    budgets = {cell.spec.number: result.facts["budget"] for cell, result in study.found()}
    assert budgets == {0: 1.0, 2: 0.5, 4: 0.5, 1: 1.0, 3: 1.0, 5: 1.0}
    store = Store(tmp_path / "cells")
    noted = [store.record(key)["provenance"].get("budget") for key in study.keys]
    assert noted == [None, 0.5, 0.5, None, None, None]
    assert naps.lines(tmp_path / "ran").count("2") == 2


def test_a_cell_that_half_of_the_memory_does_not_help_is_said(tmp_path, monkeypatch):
    def run(cell, tools):
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8000000000000 bytes.")

    monkeypatch.setitem(LABS._things, "toy", Lab(toy.ToySpec, run, toy.page))
    tools, asked = Tools(), jobs(seeds=1)
    events = [event for event in work(asked, tools, Store(tmp_path)) if isinstance(event, Failed)]
    assert [event.sentence for event in events] == [
        "not enough memory, also for batches of half the size (DefaultCPUAllocator: can't allocate memory: "
        "you tried to allocate 8000000000000 bytes)."
    ]
    assert tools.budget == 1.0


def test_a_disk_that_is_full_ends_the_study_at_once_and_says_what_is_kept(tmp_path, monkeypatch):
    write, ran = Store.write, []

    def full(self, key, cell, *rest, **more):
        ran.append(cell.spec.number)
        if cell.spec.number == 4:
            raise Refusal("cannot write it: No space left on device.")
        write(self, key, cell, *rest, **more)

    monkeypatch.setattr(Store, "write", full)
    with pytest.raises(Unfinished, match=r"No space left on device\. 2 of 12 cells are kept in"):
        slept(tmp_path, Engine(), cells_=12, groups=2)
    assert ran == [0, 2, 4]


def test_a_cell_that_ends_its_worker_is_run_again_and_the_study_is_whole(tmp_path):
    study = slept(tmp_path, Engine("processes", 2), cells_=8, groups=2, ends="2,5")
    assert study.fresh == 8
    ran = naps.lines(tmp_path / "ran")
    assert {number: ran.count(str(number)) for number in range(8)} == {2: 2, 5: 2} | dict.fromkeys(
        [0, 1, 3, 4, 6, 7], 1
    )
    assert not (tmp_path / "cells" / "quarantine").exists()


def test_a_cell_that_was_kept_but_not_told_when_its_worker_ended_is_not_run_again(tmp_path):
    asked, store = jobs(seeds=3), Store(tmp_path)
    board = Board(asked, store, CellProgress())
    part = board.take()
    first, second = part.left
    board.saw(part, Begun(first.key))
    assert [type(event) for event in work([first], Tools(), store)] == [Begun, Kept]
    board.died(part, "SIGKILL", "")
    assert board.kept == 1
    again = board.take()
    assert (again.left, again.alone) == ([second], True)


def test_a_group_that_another_command_finished_in_the_meantime_is_not_run(tmp_path):
    asked, store = jobs(seeds=3), Store(tmp_path)
    board = Board(asked, store, CellProgress())
    list(work(asked[:2], Tools(), store))
    assert [job.cell.spec.seed for job in board.take().left] == [1]
    assert board.take() is None
    assert board.kept == 2


def test_a_cell_that_ends_its_worker_three_times_is_set_aside_with_its_log_and_left_out_from_then_on(tmp_path):
    engine = Engine("processes", 2)
    with pytest.raises(Unfinished, match="number 3: its process ended 3 times") as failed:
        slept(tmp_path, engine, cells_=8, groups=2, dies="3,")
    assert in_store(tmp_path) == set(range(8)) - {3}
    assert naps.lines(tmp_path / "ran").count("3") == 3
    (path,) = (tmp_path / "cells" / "quarantine").glob("*.json")
    assert str(path) in str(failed.value)
    record = json.loads(path.read_text())
    assert record["spec"]["number"] == 3
    assert record["ended"] == ["SIGSEGV"] * 3
    assert "about to go" in record["log"]
    assert any("naps.py" in line for line in record["log"])  # where in the user's code it was
    with pytest.raises(Unfinished, match="number 3: it is set aside"):
        slept(tmp_path, engine, cells_=8, groups=2)
    assert naps.lines(tmp_path / "ran").count("3") == 3
    path.unlink()
    assert slept(tmp_path, engine, cells_=8, groups=2).fresh == 1


def test_overwriting_tries_a_cell_that_was_set_aside_again(tmp_path):
    spec = naps.NapSpec(cells_=2, groups=2)
    key = run_study("nap", spec, Where(tmp_path)).keys[0]
    file_of(Store(tmp_path), key).parent.mkdir()
    file_of(Store(tmp_path), key).write_text("{}")
    Store(tmp_path).remove(key)
    with pytest.raises(Unfinished, match="set aside"):
        run_study("nap", spec, Where(tmp_path))
    assert run_study("nap", spec, Where(tmp_path, None, True)).fresh == 2


@pytest.mark.parametrize("engine", ROADS, ids=lambda engine: engine.name)
def test_overwriting_runs_every_cell_anew_and_replaces_each_also_when_its_worker_ends(tmp_path, engine):
    spec = {"cells_": 6, "groups": 2, "log": str(tmp_path / "ran")}
    store = Store(tmp_path / "cells")
    keys = slept(tmp_path, engine, **spec).keys
    before = {key: store.stamp(key) for key in keys}
    (tmp_path / "ran").unlink()
    ends = {"ends": "3,"} if engine.name == "processes" else {}  # the serial engine's worker is this process
    again = run_study("nap", naps.NapSpec.of(spec | ends), Where(store.folder, None, True), engine)
    assert (again.keys, again.fresh) == (keys, 6)
    assert sorted(naps.lines(tmp_path / "ran")) == sorted([*"012345", *(["3"] if ends else [])])
    assert all(store.stamp(key) != before[key] for key in keys)


def test_what_the_driver_keeps_for_a_worker_replaces_the_old_cell_too(tmp_path):
    store = Store(tmp_path)
    (job,) = jobs(seeds=1)
    list(work([job], Tools(), store))
    anew = replace(job, old=store.stamp(job.key))
    assert job.done(store)
    assert not anew.done(store)
    board = Board([anew], store, CellProgress())
    part = board.take()
    for event in work([anew], Tools(), None):
        board.saw(part, event)
    assert anew.done(store)
    assert board.kept == 1


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
