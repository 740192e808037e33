"""While a study runs, and after it was killed: who may touch its folder, and what is left of it."""

import json
import signal
import time
from pathlib import Path

import pytest
from watching import rows, started

import iclgd
from iclgd.grid.plan import find_plan
from iclgd.store.cells import Store
from said import refused, run


def test_a_killed_study_is_known_to_status_and_the_same_command_finishes_it(capsys, place):
    process = started(place, "study", "run", "mine.yaml", TOY_DIES_AT="1")
    assert process.wait(60) == -signal.SIGKILL
    process.communicate()
    found = rows(run(capsys, "study", "status", "runs/mine")[1])
    assert found["all"] == ["2", "0", "0", "10"]
    assert find_plan(Path("runs/mine")).folder == Path("runs/mine")
    assert "ran      10 cells" in run(capsys, "study", "run", "mine.yaml")[1]
    assert rows(run(capsys, "study", "status", "runs/mine")[1])["all"] == ["12", "0", "0", "0"]
    left = [p for p in (place / "runs").rglob(".*") if p.name != ".iclgd"]
    assert left == []


SLOW = """
import os, time
import toy
def run(cell, tools, own=toy.run):
    open("running", "w").close()
    while not os.path.exists("go"):
        time.sleep(0.01)
    return own(cell, tools)
object.__setattr__(toy.LABS["toy"], "run", run)
"""


@pytest.mark.parametrize("command", [("study", "run", "mine.yaml"), ("toy", "--out", "runs/mine", "--k", 3)])
def test_a_second_command_on_one_folder_is_refused_and_told_who_has_it(capsys, place, command):
    (place / "slow.py").write_text(SLOW)
    process = started(place, "--plugin", "slow.py", *command)
    while not (place / "running").exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    code, out, err = run(capsys, *command)
    assert (code, out) == (2, "")
    assert err == f"iclgd: process {process.pid} is writing runs/mine: wait for it, or give another --out.\n"
    if command[0] == "study":
        said = run(capsys, "study", "status", "runs/mine")[1]
        assert f"process {process.pid} is at work on it" in said
        assert rows(said)["all"] == ["0", "1", "0", "11"]
        assert rows(said)["a-k=2-scale=1"] == ["0", "1", "0", "2"]
        assert said.endswith(f"process {process.pid} is at work on it\n  a-k=2-scale=1: seed 0\n")
        told = json.loads(run(capsys, "study", "status", "runs/mine", "--json")[1])
        assert told["running"] == [{"part": "a-k=2-scale=1", "seed": 0}]
    else:
        assert f"process {process.pid} is at work on runs/mine" in refused(
            capsys, place, "study", "status", "runs/mine"
        )
    (place / "go").touch()
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert run(capsys, *command, "--overwrite")[0] == 0
    assert list((place / "runs").glob(".*")) == []


def test_a_lock_whose_owner_was_killed_keeps_nobody_out(capsys, place):
    (place / "slow.py").write_text(SLOW)
    process = started(place, "--plugin", "slow.py", "study", "run", "mine.yaml")
    while not (place / "running").exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    process.kill()
    process.communicate()
    assert len(list((place / "runs").glob(".*.lock"))) == 1
    assert run(capsys, "study", "run", "mine.yaml")[0] == 0
    assert list((place / "runs").glob(".*")) == []


def test_two_drivers_on_one_store_lose_nothing_and_corrupt_nothing(capsys, place):
    (place / "other.yaml").write_text((place / "mine.yaml").read_text().replace("name: mine", "name: other"))
    both = [started(place, "study", "run", file) for file in ("mine.yaml", "other.yaml")]
    for process in both:
        _, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
    assert run(capsys, "store", "check")[1] == "12 cells, none damaged\n"
    for name in ("mine", "other"):
        assert rows(run(capsys, "study", "status", f"runs/{name}")[1])["all"] == ["12", "0", "0", "0"]
    assert [p for p in (place / "runs").rglob(".*") if p.name != ".iclgd"] == []


def test_overwriting_that_is_killed_loses_no_cell_and_no_page(capsys, done):
    kept, page = Store(done / "runs/cells"), (done / "runs/mine/b/index.html").read_text()
    before = {name: kept.stamp(name) for name in kept.names()}
    process = started(done, "study", "run", "mine.yaml", "--overwrite", TOY_DIES_AT="1")
    assert process.wait(60) == -signal.SIGKILL
    process.communicate()
    after = {name: kept.stamp(name) for name in kept.names()}
    assert after.keys() == before.keys()
    assert sum(after[name] != before[name] for name in before) == 2  # those before the one that kills
    assert (done / "runs/mine/b/index.html").read_text() == page
    assert run(capsys, "store", "check")[1] == "12 cells, none damaged\n"
    assert rows(run(capsys, "study", "status", "runs/mine")[1])["all"] == ["12", "0", "0", "0"]
    assert "ran      12 cells" in run(capsys, "study", "run", "mine.yaml", "--overwrite")[1]
    assert {kept.stamp(name) for name in before}.isdisjoint(before.values())


def test_a_study_that_is_to_be_replaced_stays_until_the_cells_of_the_new_one_are_there(capsys, place):
    run(capsys, "toy", "--out", "runs/mine", "--scale", 7)
    process = started(place, "study", "run", "mine.yaml", "--overwrite", TOY_DIES_AT="1")
    assert process.wait(60) == -signal.SIGKILL
    process.communicate()
    assert iclgd.open(place / "runs/mine").spec.scale == 7
    assert run(capsys, "study", "run", "mine.yaml", "--overwrite")[0] == 0
    assert rows(run(capsys, "study", "status", "runs/mine")[1])["all"] == ["12", "0", "0", "0"]


def test_the_page_of_a_part_that_the_file_no_longer_has_goes_when_the_others_are_there(capsys, done):
    text = (done / "mine.yaml").read_text()
    (done / "mine.yaml").write_text(text.replace("  b: {", "  c: {scale: 5, "))
    process = started(done, "study", "run", "mine.yaml", TOY_DIES_AT="1")
    assert process.wait(60) == -signal.SIGKILL
    process.communicate()
    assert (done / "runs/mine/b/index.html").is_file()
    run(capsys, "study", "run", "mine.yaml")
    assert not (done / "runs/mine/b").exists()
