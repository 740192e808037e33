"""The lab `identities`: one cell an identity and a seed; what is left over when both sides are computed."""

import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import model_validator

from iclgd.lab import Cell, Lab, LabSpec
from iclgd.report.numbers import Size, counted, significant
from iclgd.report.page import Entry, Page, Section, Table
from iclgd.results import Result, array
from iclgd.small.known import IDENTITIES
from iclgd.spec import Names, Seed, Seeds, Spec, option
from iclgd.study import Study
from iclgd.tools import Tools

ROUNDING = 1e-9  # of float64, behind some hundred operations
SHOWING = ("claims", "cli", "report")  # rooms in which nothing is computed


class IdentityCell(Spec):
    """One identity on the inputs of one seed."""

    name: str
    seed: Seed


class IdentitiesSpec(LabSpec):
    """Equations of the papers on fresh random inputs: how far apart the two sides are.

    Each identity draws its own sizes and numbers, in float64 unless it says otherwise. What is kept of one counts for
    this source code only: a change in anything that computes runs them again.
    """

    names: Names = option((), "Identities, separated by commas.  [default: all]")
    seeds: Seeds = option((0, 1, 2), "How many draws, or which: 2,3,4.  [default: 3]")

    @model_validator(mode="before")
    @classmethod
    def _all(cls, given: Any) -> Any:
        return {**given, "names": given.get("names") or tuple(IDENTITIES)} if isinstance(given, Mapping) else given

    @model_validator(mode="after")
    def _known(self) -> "IdentitiesSpec":
        for name in self.names:
            if name not in IDENTITIES:
                IDENTITIES[name]  # refuses, with what is near
        return self

    def cells(self) -> list[Cell]:
        return [
            Cell("identities", IdentityCell(name=name, seed=seed), {"identity": name, "seed": seed}, name)
            for name in self.names
            for seed in self.seeds
        ]


@cache
def source() -> str:
    """A hash of the source that computes: what an identity is about."""
    found = hashlib.sha256()
    root = Path(__file__).parents[2]
    for path in sorted(root.rglob("*.py")):
        if path.relative_to(root).parts[0] not in SHOWING:
            found.update(path.read_bytes())
    return found.hexdigest()[:16]


def identity(cell: Cell, _tools: Tools) -> Mapping[str, Any]:
    return {"source": source(), "identity": IDENTITIES.identity(_spec(cell).name)}


def run(cell: Cell, tools: Tools) -> Result:
    from iclgd.small.train import one_thread

    spec = _spec(cell)
    tools.progress(spec.name, 0)
    with one_thread():
        found = IDENTITIES[spec.name](spec.seed)
    numbers = found if isinstance(found, Mapping) else {"residual": found}
    return Result({}, [array(float(value), quantity=name) for name, value in numbers.items()])


def _spec(cell: Cell) -> IdentityCell:
    assert isinstance(cell.spec, IdentityCell)
    return cell.spec


def answer(rows: list[list[Entry]]) -> str:
    """How many numbers are nothing but rounding, and which is furthest from that."""
    sizes = {f"{name} ({quantity})": abs(found.value) for name, quantity, found in rows if isinstance(found, Size)}
    large = {name: size for name, size in sizes.items() if not size <= ROUNDING}
    small = len(sizes) - len(large)
    said = f"Of {counted(len(sizes), 'number')} {small} {'is' if small == 1 else 'are'} 0 to rounding"
    most = max(large, key=large.__getitem__, default="")
    return f"{said}; furthest from it: {most}, {significant(large[most], 3)}." if most else f"{said}."


def page(study: Study) -> Page:
    spec = study.spec
    assert isinstance(spec, IdentitiesSpec)
    rows: list[list[Entry]] = []
    for name in spec.names:
        found = study.arrays(identity=name)
        for quantity in dict.fromkeys(str(one.labels["quantity"]) for one in found):
            values = [float(one.values) for one in found if one.labels["quantity"] == quantity]
            rows.append([name, quantity, Size(max(values, key=abs), digits=3)])
    told = "Of all seeds the number that is furthest from 0."
    shown = Section("Numbers", told, Table(["identity", "", "furthest"], rows), brief=True)
    what = f"{counted(len(spec.names), 'equation')} · {counted(len(spec.seeds), 'seed')} · float64"
    return Page("Identities", what, answer(rows), [shown])


IDENTITIES_LAB = Lab(
    IdentitiesSpec,
    run,
    page,
    identity=identity,
    quick=True,
    examples="  iclgd identities --names softmax-is-one-step,gd-layer\n",
)
