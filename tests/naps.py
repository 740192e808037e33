"""A stranger's lab for testing engines: cells that sleep a little, and on request die, raise, refuse or fill memory.

Also a plugin, and a driver that can be killed, `python naps.py FOLDER ENGINE [FIELD=VALUE …]`: it writes every cell
that it was told of to FOLDER/told, every cell that was run to FOLDER/ran, and every cell whose worker ended to
FOLDER/lost, and what it was told to be done to FOLDER/doing.
"""

import os
import signal
import sys
import time
from pathlib import Path

import numpy as np

from iclgd.lab import LABS, Cell, Lab, LabSpec
from iclgd.report.page import Page
from iclgd.results import Result, array
from iclgd.spec import Seeds, Spec, option

NONE = (10**6,)


class NapCell(Spec):
    number: int
    nap: float = option(0.0, "Seconds.", keyed=False)
    trouble: str = option("", "What happens to it.", keyed=False)
    log: str = option("", "Where it is written down.", keyed=False)


class NapSpec(LabSpec):
    """How well a cell sleeps."""

    cells_: int = option(12, "How many cells.", ge=1)
    groups: int = option(4, "How many groups.", ge=1)
    nap: float = option(0.0, "Seconds a cell sleeps.", keyed=False)
    dies: Seeds = option(NONE, "Cells that kill their process.", keyed=False)
    ends: Seeds = option(
        NONE, "Cells that end their process once: where it is written down that they ran.", keyed=False
    )
    raises: Seeds = option(NONE, "Cells with a bug.", keyed=False)
    refuses: Seeds = option(NONE, "Cells that refuse.", keyed=False)
    fills: Seeds = option(NONE, "Cells that need more memory than there is, unless they are given half.", keyed=False)
    log: str = option("", "File to which every cell that was run is written.", keyed=False)

    def cells(self) -> list[Cell]:
        found = []
        for number in sorted(range(self.cells_), key=lambda i: i % self.groups):
            kinds = ("dies", "ends", "raises", "refuses", "fills")
            trouble = next((kind for kind in kinds if number in getattr(self, kind)), "")
            spec = NapCell(number=number, nap=self.nap, trouble=trouble, log=self.log)
            found.append(Cell("nap", spec, {"number": number}, f"group {number % self.groups}"))
        return found


def written(file: str, text: str) -> None:
    """A line at the end of a file, whole whoever else writes."""
    if file:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(descriptor, f"{text}\n".encode())
        os.close(descriptor)


def lines(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.is_file() else []


def run(cell, tools):
    from iclgd.errors import Refusal

    spec = cell.spec
    before = lines(Path(spec.log)) if spec.log else []
    written(spec.log, str(spec.number))
    tools.progress("asleep", 1)
    time.sleep(spec.nap)
    match spec.trouble:
        case "dies":
            print("about to go", file=sys.stderr)
            os.kill(os.getpid(), signal.SIGSEGV)
            time.sleep(30)  # another thread may be the one that is told
        case "ends" if str(spec.number) not in before:
            os.kill(os.getpid(), signal.SIGKILL)
        case "raises":
            raise ZeroDivisionError("one over nothing")
        case "refuses":
            raise Refusal("this cell cannot be had.")
        case "fills" if tools.within(2) > 1:
            raise MemoryError("no room")
    numbers = np.random.default_rng(spec.number).standard_normal(1000)
    facts = {"process": os.getpid(), "gpu": os.environ.get("CUDA_VISIBLE_DEVICES"), "budget": tools.budget}
    return Result(facts, [array(numbers, "draw", quantity="value")])


def page(study):
    return Page("Naps", "", f"{len(study.cells)} cells slept.", [])


if "main__" not in __name__:
    LABS.add("nap", Lab(NapSpec, run, page))


def drive(folder: str, engine: str, *given: str) -> None:
    from iclgd.engine.engines import Engine
    from iclgd.report.terminal import CellProgress
    from iclgd.running import Where, run_study

    class Told(CellProgress):
        def done(self, key: str) -> None:
            super().done(key)
            written(f"{folder}/told", key)

        def doing(self, what: str, count: int) -> None:
            super().doing(what, count)
            written(f"{folder}/doing", what)

        def lost(self, key: str) -> None:
            super().lost(key)
            written(f"{folder}/lost", key)

    options = dict(one.split("=") for one in given)
    how = Engine(engine, 2 if engine == "processes" else None, options.pop("address", None))
    spec = NapSpec.of({**options, "log": f"{folder}/ran", "plugin": str(Path(__file__).resolve())})
    run_study("nap", spec, Where(Path(folder) / "cells"), how, Told())


if __name__ == "__main__":
    from iclgd.registry import load_plugin

    load_plugin(__file__).drive(*sys.argv[1:])  # as a plugin: the classes have the names that workers know
