"""A lab in forty lines, to test the frame with: random numbers, by seed. Also a plugin: `--plugin tests/toy.py`."""

import os
import signal

import numpy as np

from iclgd.lab import LABS, Cell, Lab, LabSpec
from iclgd.report.numbers import Number, number
from iclgd.report.page import Page, Section, Table
from iclgd.results import Result, array
from iclgd.spec import Seeds, Spec, option

RAN: list[int] = []  # seeds of the cells that were run in this process


class ToyCell(Spec):
    scale: float
    k: int
    seed: int


class ToySpec(LabSpec):
    """How large random numbers are."""

    scale: float = option(1.0, "How large.", gt=0)
    k: int = option(4, "How many numbers.", ge=1, le=100)
    seeds: Seeds = option((0, 1, 2), "How many draws, or which.")
    loud: bool = option(False, "Say it loudly.", keyed=False)

    def title(self) -> str:
        return "toy"

    def cells(self) -> list[Cell]:
        group = f"group {self.scale:g}"
        return [
            Cell("toy", ToyCell(scale=self.scale, k=self.k, seed=s), {"seed": s}, f"{group} {s % 2}")
            for s in sorted(self.seeds, key=lambda seed: (seed % 2, seed))
        ]


def run(cell, tools):
    seed = cell.spec.seed
    if os.environ.get("TOY_DIES_AT") == str(seed):
        os.kill(os.getpid(), signal.SIGKILL)
    if os.environ.get("TOY_STOPS_AT") == str(seed):
        raise KeyboardInterrupt
    RAN.append(seed)
    first = tools.shared("first of the group", lambda: seed)
    values = np.random.RandomState(seed).standard_normal(cell.spec.k) * cell.spec.scale
    return Result({"first": first, "process": os.getpid()}, [array(values, "draw", quantity="value")])


def page(study):
    values = study.stack("seed", study.spec.seeds, quantity="value")
    rows = [[str(seed), Number(row.mean())] for seed, row in zip(study.spec.seeds, values, strict=True)]
    answer = f"The mean is {number(float(values.mean()))}{'!' if study.spec.loud else '.'}"
    return Page("Toy", f"{len(rows)} seeds", answer, [Section("Means", "", Table(["seed", "mean"], rows), brief=True)])


LABS.add("toy", Lab(ToySpec, run, page))
