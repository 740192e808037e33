"""kill -9 of a driver or of a worker at random moments: nothing that was told is lost, nothing in part is seen, the
same command finishes the rest and only the rest."""

import os
import signal
import subprocess
import time
from functools import partial

import pytest
from killing import Driver, gone, kill_drivers, kill_workers, spawned

import naps
from iclgd.files import building
from iclgd.running import Where, run_study

CELLS = 200


@pytest.mark.parametrize("engine", ["serial", "processes"])
def test_a_driver_killed_twenty_times_loses_nothing_and_repeats_nothing(tmp_path, engine):
    driver = Driver(tmp_path, engine, cells_=CELLS, groups=20, nap=0.02)
    assert 40 < kill_drivers(driver, 20) < CELLS  # it came to work in between, and was not done
    driver.finish(CELLS)


def test_workers_killed_twenty_times_are_replaced_and_the_study_is_whole(tmp_path):
    driver = Driver(tmp_path, "processes", cells_=CELLS, groups=20, nap=0.02)
    assert kill_workers(driver, 20, spawned) == 20
    assert sorted(driver.kept().values()) == list(range(CELLS))
    again = [number for number in driver.ran() if driver.ran().count(number) > 1]
    assert len(again) <= 2 * 20  # what was at work when its worker was killed, and nothing else
    driver.finish(CELLS)


@pytest.mark.parametrize("engine", ["serial", "processes"])
def test_what_is_done_within_a_cell_is_told_to_the_driver(tmp_path, engine):
    Driver(tmp_path, engine, cells_=2, groups=2).finish(2)
    assert "asleep" in naps.lines(tmp_path / "doing")


def test_workers_in_the_middle_of_a_long_cell_end_with_their_driver(tmp_path):
    driver = Driver(tmp_path, "processes", cells_=4, groups=4, nap=300)
    process = driver.start()
    while len(driver.ran()) < 2:
        assert process.poll() is None
        time.sleep(0.02)
    process.kill()
    process.communicate()
    assert gone(process.pid)


def test_what_a_dead_process_was_building_is_swept_and_what_a_living_one_builds_is_not(tmp_path):
    dead = subprocess.Popen(["true"])
    dead.wait()
    names = [building().replace(str(os.getpid()), str(pid)) + "x" for pid in (dead.pid, os.getpid())]
    for name in names:
        (tmp_path / name / "cell").mkdir(parents=True)
    run_study("nap", naps.NapSpec(cells_=1, groups=1), Where(tmp_path))
    assert [(tmp_path / name).exists() for name in names] == [False, True]


@pytest.mark.parametrize("engine", ["serial", "processes"])
@pytest.mark.parametrize("number, code", [(signal.SIGTERM, 143), (signal.SIGINT, 130)], ids=["SIGTERM", "SIGINT"])
def test_a_signal_ends_a_command_with_a_sentence_and_no_process_is_left(tmp_path, engine, number, code):
    driver = Driver(tmp_path, engine)
    given = ["nap", "--plugin", driver.command[1], "--nap", "0.05", "--cells-", "400", "--groups", "20"]
    given += ["--engine", engine, "--store", str(driver.store.folder), "--out", str(tmp_path / "out")]
    given += ["--log", str(tmp_path / "ran"), *(["--jobs", "2"] if engine == "processes" else [])]
    command = [driver.command[0], "-c", "from iclgd.cli import main; main()", *given]
    heard = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # a test in the background would not hear Ctrl-C
    process = subprocess.Popen(
        command, env=driver.env, stderr=subprocess.PIPE, start_new_session=True, text=True, preexec_fn=heard
    )
    while len(driver.ran()) < 10:
        assert process.poll() is None
        time.sleep(0.02)
    os.kill(process.pid, number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == code
    kept = len(driver.kept())
    assert kept >= 5
    stopped = (
        f"iclgd: stopped; {kept} of 400 cells are kept in {driver.store.folder}: the same command goes on from there."
    )
    assert said.strip().splitlines()[-1] == stopped
    assert "Traceback" not in said
    assert gone(process.pid)
    assert not list(driver.store.folder.glob(".*"))
