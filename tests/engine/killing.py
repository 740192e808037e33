"""A driver of the nap lab in a process of its own, to be killed and started again, and what has to hold each time."""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil

import iclgd
import naps
from iclgd.store.cells import Store

NAPS = Path(naps.__file__).resolve()
SOURCE = Path(iclgd.__file__).parents[1]


class Driver:
    """`python naps.py FOLDER ENGINE …`, again and again on one store."""

    def __init__(self, folder: Path, engine: str, **given: object):
        self.folder, self.store = folder, Store(folder / "cells")
        options = [f"{name}={value}" for name, value in given.items()]
        self.command = [sys.executable, str(NAPS), str(folder), engine, *options]
        self.env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(SOURCE), os.environ.get("PYTHONPATH", "")])}

    def start(self, **more: object) -> subprocess.Popen:
        given = {"env": self.env, "stderr": subprocess.PIPE, "start_new_session": True, "text": True}
        return subprocess.Popen(self.command, **given, **more)

    def kept(self) -> dict[str, int]:
        """The cells that can be seen, by key; each is read, with its hash checked: none is there in part."""
        found = {}
        for path in self.store.folder.glob("[0-9a-f]*/"):
            key = json.loads((path / "record.json").read_text(encoding="utf-8"))["key"]
            self.store.read(key)
            found[key] = self.store.record(key)["spec"]["number"]
        return found

    def told(self) -> list[str]:
        return naps.lines(self.folder / "told")

    def lost(self) -> list[str]:
        return naps.lines(self.folder / "lost")

    def ran(self) -> list[int]:
        return list(map(int, naps.lines(self.folder / "ran")))

    def check_killed(self, before: dict[str, int], ran: int) -> dict[str, int]:
        """Every cell that the driver was told of is there, and none that was there has been run again."""
        kept = self.kept()
        assert set(self.told()) <= set(kept)
        assert set(before) <= set(kept)
        assert not set(self.ran()[ran:]) & set(before.values())
        return kept

    def finish(self, cells: int) -> None:
        """The same command runs what is left and nothing else, and leaves nothing behind."""
        before, ran = self.kept(), len(self.ran())
        last = self.start()
        _, said = last.communicate(timeout=240)
        assert last.returncode == 0, said
        kept = self.check_killed(before, ran)
        assert sorted(kept.values()) == list(range(cells))
        assert set(self.ran()[ran:]) <= set(range(cells)) - set(before.values())
        assert {path.name for path in self.store.folder.iterdir()} == {self.store.path(key).name for key in kept}


def gone(session: int, seconds: float = 10.0) -> bool:
    """Whether every process of a session ends within some seconds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(session, 0)
            time.sleep(0.05)
            continue
        return True
    return False


def kill_drivers(driver: Driver, kills: int, seed: int = 0) -> int:
    """Kill the driver at random moments: every fourth time while it starts, else while it works; cells kept then."""
    draw = random.Random(seed)
    before: dict[str, int] = {}
    for kill in range(kills):
        ran, told, process = len(driver.ran()), len(driver.told()), driver.start()
        more = draw.randrange(8) if kill % 4 else 0
        while len(driver.told()) < told + more and process.poll() is None:
            time.sleep(0.002)
        time.sleep(draw.uniform(0.0, 0.05 if kill % 4 else 1.0))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert gone(process.pid)  # its workers too
        before = driver.check_killed(before, ran)
    return len(before)


def kill_workers(driver: Driver, kills: int, workers, seed: int = 0) -> int:
    """Kill a random worker at random moments while others go on; how many were killed before the study was done."""
    draw, process, killed = random.Random(seed), driver.start(), 0
    before = driver.kept()
    try:
        while process.poll() is None and killed < kills:
            heard = len(driver.told())
            while process.poll() is None and not (
                len(driver.told()) >= heard + 3  # the last one that was killed is known to be gone by now
                and set(driver.lost()) <= set(driver.told())  # no cell is to meet it three times: it would be set aside
            ):
                time.sleep(0.01)
            time.sleep(draw.uniform(0.0, 0.1))
            found = workers(process.pid)
            if found and process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(draw.choice(found), signal.SIGKILL)
                    killed += 1
        _, said = process.communicate(timeout=240)
        assert process.returncode == 0, said
        assert not set(driver.ran()) & set(before.values())
    finally:
        process.kill()
    return killed


def spawned(driver: int) -> list[int]:
    """The workers of the process engine."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return [child.pid for child in psutil.Process(driver).children() if "spawn_main" in " ".join(child.cmdline())]
    return []
