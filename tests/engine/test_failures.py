"""What fails in a cell, in a worker or on the disk is said, and costs nothing else."""

import json
from dataclasses import replace

import pytest
from sleeping import ROADS, in_store, jobs, slept

import naps
import toy
from iclgd.engine.board import Board
from iclgd.engine.engines import Engine
from iclgd.engine.quarantine import file_of
from iclgd.engine.work import Begun, Failed, Kept, work
from iclgd.errors import Refusal, Unfinished
from iclgd.lab import LABS, Lab
from iclgd.report.terminal import CellProgress
from iclgd.running import Where, run_study
from iclgd.store.cells import Store
from iclgd.tools import Tools


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
