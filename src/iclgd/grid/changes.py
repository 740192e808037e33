"""Whether numbers are still the same: cells run again, or two runs laid side by side."""

import random
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from iclgd.errors import Refusal
from iclgd.grid.file import Grid, Part, read_grid
from iclgd.grid.plan import FILE, find_plan, jobs_of
from iclgd.report.terminal import CellProgress
from iclgd.results import Array, Result
from iclgd.running import SERIAL, Where, run_missing
from iclgd.spec import canonical
from iclgd.store.cells import Store
from iclgd.study import open_study, read_record

# of an array's largest number: updates are small differences of large numbers, whose last bits differ by machine
TOLERANCE = 1e-3
Verdict = Literal["equal to the bit", "within tolerance", "different"]
VERDICTS: tuple[Verdict, ...] = ("equal to the bit", "within tolerance", "different")


@dataclass(frozen=True)
class Change:
    """How two results of one cell differ: by how much of an array's largest number at most, and in which array."""

    verdict: Verdict
    largest: float = 0.0
    where: str = ""


def change(one: Result, other: Result, tolerance: float = TOLERANCE) -> Change:
    """Of two results of the same question; arrays that only one of them has make them different."""
    first, second = ({canonical(dict(a.labels)): a for a in result.arrays} for result in (one, other))
    if first.keys() != second.keys():
        return Change("different", float("inf"), f"only one has {next(iter(first.keys() ^ second.keys()))}")
    if all(_same_bits(first[name], second[name]) for name in first):
        return Change("equal to the bit")
    apart = {name: _apart(first[name], second[name]) for name in first}
    where = max(apart, key=apart.__getitem__)
    return Change("within tolerance" if apart[where] <= tolerance else "different", apart[where], where)


def _same_bits(one: Array, other: Array) -> bool:
    a, b = one.values, other.values
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    return bool(np.array_equal(a, b, equal_nan=a.dtype.kind == "f"))


def _apart(one: Array, other: Array) -> float:
    """The largest difference as a share of the largest number; infinite where one has a number and the other none."""
    if one.values.shape != other.values.shape:
        return float("inf")
    a, b = one.values.astype(float), other.values.astype(float)
    if (np.isfinite(a) != np.isfinite(b)).any():
        return float("inf")
    known = np.isfinite(a)
    if not known.any():
        return 0.0
    difference, largest = np.abs(a - b)[known].max(), np.abs(a[known]).max()
    if difference == 0:
        return 0.0
    return float(difference / largest) if largest > 0 else float("inf")


# again


def grid_of(what: Path) -> Grid:
    """The grid of a study file or folder; a lab's folder is a grid of one."""
    if what.is_dir() and "lab" in (record := read_record(what)):
        study = open_study(what)
        return Grid(what.name, (Part(record["lab"], study.lab, study.spec),))
    if what.is_dir() and not (what / FILE).exists():
        raise Refusal(f"{what} holds no study: name a study file, or a folder that iclgd wrote.")
    return read_grid(what / FILE if what.is_dir() else what)


def verify(
    what: Path, store: Path, sample: int, seed: int, tolerance: float, progress: CellProgress | None = None
) -> Iterator[tuple[dict[str, Any], Change]]:
    """Run a sample of the study's finished cells once more, elsewhere, and lay the numbers side by side."""
    kept, progress = Store(store), progress or CellProgress()
    found = [(tools, job) for _, tools, jobs in jobs_of(grid_of(what), progress) for job in jobs if kept.has(job.key)]
    found = list({job.key: (tools, job) for tools, job in found}.values())
    if not found:
        raise Refusal(f"no cell of this study is in {store}: run it first.")
    chosen = random.Random(seed).sample(found, min(sample, len(found)))
    chosen.sort(key=lambda pair: found.index(pair))
    with tempfile.TemporaryDirectory(prefix="iclgd-") as folder:
        for tools in dict.fromkeys(tools for tools, _ in chosen):
            jobs = [job for its, job in chosen if its is tools]
            run_missing(jobs, Where(Path(folder)), tools, SERIAL, progress)
            for job in jobs:
                again = change(kept.read(job.key), Store(Path(folder)).read(job.key), tolerance)
                yield {"lab": job.cell.lab, **job.cell.labels}, again


# side by side


@dataclass(frozen=True)
class Side:
    """The cells of one run: where each is kept."""

    store: Store
    keys: frozenset[str]

    def question(self, key: str) -> str:
        """What a cell was asked, whatever it points to and whichever version answered."""
        record = self.store.record_at(key)
        return canonical({"lab": record["lab"], "spec": record["spec"]})


def side(what: Path) -> Side:
    """The cells of a study file, of a study's folder, or of a whole store."""
    if what.is_dir() and not read_record(what):
        names = Store(what).names()
        if not names:
            raise Refusal(f"{what} holds neither a study nor cells: name a study file, its folder or a store.")
        return Side(Store(what), frozenset(Store(what).record_at(name)["key"] for name in names))
    plan = find_plan(what)
    return Side(Store(plan.store), frozenset(key for key in plan.keys if Store(plan.store).has(key)))


@dataclass(frozen=True)
class Compared:
    """What changed between two runs."""

    only: tuple[Sequence[Mapping[str, Any]], Sequence[Mapping[str, Any]]]  # labels of the cells that one of them has
    changes: Sequence[tuple[Mapping[str, Any], Change]]

    @property
    def counts(self) -> Counter[str]:
        return Counter(change.verdict for _, change in self.changes)


def compare(one: Side, other: Side, tolerance: float = TOLERANCE) -> Compared:
    """Cells of one key first; of the others, those that ask the same, of other weights, data or versions."""
    pairs = [(key, key) for key in sorted(one.keys & other.keys)]
    left, right = (
        {side.question(key): key for key in sorted(mine)}
        for side, mine in ((one, one.keys - other.keys), (other, other.keys - one.keys))
    )
    pairs += [(left[asked], right[asked]) for asked in left if asked in right]
    only = (
        [_labels(one, left[asked]) for asked in left if asked not in right],
        [_labels(other, right[asked]) for asked in right if asked not in left],
    )
    return Compared(only, [(_labels(one, a), _change(one, a, other, b, tolerance)) for a, b in pairs])


def _change(one: Side, a: str, other: Side, b: str, tolerance: float) -> Change:
    first, second = one.store.record(a), other.store.record(b)
    if first["arrays_sha256"] == second["arrays_sha256"] and first["arrays"] == second["arrays"]:
        return Change("equal to the bit")
    return change(one.store.result(first), other.store.result(second), tolerance)


def _labels(side: Side, key: str) -> dict[str, Any]:
    record = side.store.record_at(key)
    return {"lab": record["lab"], **record["labels"]}
