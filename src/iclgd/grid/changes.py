"""Whether numbers are still the same: cells run again, or two runs laid side by side."""

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from iclgd.engine.work import Begun, Failed, Found, Job, groups, work
from iclgd.errors import Refusal, Unfinished
from iclgd.grid.file import FILE, Grid, Part, read_grid
from iclgd.grid.near import FLOOR, TOLERANCE, VERDICTS, Change, Floors, change
from iclgd.grid.plan import find_plan, jobs_of
from iclgd.report.numbers import counted
from iclgd.report.terminal import CellProgress
from iclgd.results import Result
from iclgd.running import expected
from iclgd.spec import canonical
from iclgd.store.cells import Store
from iclgd.study import open_study, read_record
from iclgd.tools import Tools

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
    """Run a sample of the study's finished cells once more and lay the numbers side by side, each as soon as it is run.

    Nothing is written. A cell that cannot be run again keeps no other from being compared; that is said at the end.
    """
    kept, progress = Store(store), progress or CellProgress()
    parts = jobs_of(grid_of(what), progress)
    named = {job.key: part.name for part, _, jobs in reversed(parts) for job in jobs}  # a shared one: its first
    found = list({job.key: (tools, job) for _, tools, jobs in parts for job in jobs if kept.has(job.key)}.values())
    if not found:
        raise Refusal(f"no cell of this study is in {store}: run it first.")
    chosen = sorted(random.Random(seed).sample(range(len(found)), min(sample, len(found))))
    floors, keys = _floors(kept, [job.key for _, job in found]), [found[i][1].key for i in chosen]
    for key in keys:  # one that was altered is refused before the work
        kept.check(key)
    progress.start(len(chosen), expected(kept, keys, len(chosen)))
    verdicts, failures = Counter[str](), list[tuple[Job, Failed]]()
    for tools in dict.fromkeys(found[i][0] for i in chosen):
        for job, event in _again([found[i][1] for i in chosen if found[i][0] is tools], tools, progress):
            if isinstance(event, Failed):
                failures.append((job, event))
                continue
            before = kept.record(job.key)
            one = _change(kept.result(before), event.result, before, floors, tolerance)
            verdicts[one.verdict] += 1
            progress.so_far(summed(verdicts))
            yield ({"part": named[job.key]} if len(parts) > 1 else {}) | _labels(before), one
    if failures:
        raise _not_again(failures, verdicts)


def _again(jobs: Sequence[Job], tools: Tools, progress: CellProgress) -> Iterator[tuple[Job, Found | Failed]]:
    """Run cells in this process without keeping them."""
    by_key = {job.key: job for job in jobs}
    for group in groups(jobs):
        for event in work(group, tools, None):
            job = by_key[event.key]
            if isinstance(event, Begun):
                progress.begun(job.key, job.cell.called)
            elif isinstance(event, Failed):
                progress.failed(job.key)
                yield job, event
            elif isinstance(event, Found):
                progress.done(job.key)
                yield job, event


def summed(verdicts: Mapping[str, int]) -> str:
    """`3 equal to the bit, 1 different`: those that there are."""
    return ", ".join(f"{verdicts[one]} {one}" for one in VERDICTS if verdicts.get(one))


def _not_again(failures: Sequence[tuple[Job, Failed]], verdicts: Counter[str]) -> Exception:
    """Which cells could not be run again, and why; where no cell could and all said the same, that error itself."""
    job, first = failures[0]
    if not verdicts and len({failed.sentence for _, failed in failures}) == 1:
        return first.error or Refusal(first.sentence)
    cells, more = counted(len(failures) + verdicts.total(), "cell"), len(failures) - 1
    which = job.cell.called + (f" and {more} more" if more else "")
    rest = f"; the others: {summed(verdicts)}" if verdicts else ""
    traces = tuple(dict.fromkeys(failed.trace for _, failed in failures if failed.trace))
    said = f"{len(failures)} of {cells} could not be run again ({which}: {first.sentence.rstrip('.')}){rest}."
    return Unfinished(said, traces)


def _floors(store: Store, keys: Iterable[str]) -> dict[str, Floors]:
    """What cells measured of their own rounding, by lab and model."""
    found = defaultdict[str, list[tuple[Mapping[str, Any], Result]]](list)
    for key in keys:
        record = store.record(key)
        if any(FLOOR in one["labels"] for one in record["arrays"]):
            found[canonical(_subject(record))].append((record["labels"], store.result(record)))
    return {subject: Floors(cells) for subject, cells in found.items()}


def _subject(record: Mapping[str, Any]) -> dict[str, Any]:
    """The lab and the model of a cell, however it was initialised."""
    model = record["spec"].get("model")
    name = model.get("name") if isinstance(model, dict) else model
    return {"lab": record["lab"], **({"model": name} if name else {})}


def _change(
    one: Result, other: Result, record: Mapping[str, Any], floors: Mapping[str, Floors], tolerance: float
) -> Change:
    return change(one, other, tolerance, floors.get(canonical(_subject(record))), record["labels"])


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
        [_labels(one.store.record_at(left[asked])) for asked in left if asked not in right],
        [_labels(other.store.record_at(right[asked])) for asked in right if asked not in left],
    )
    floors, changes = _floors(one.store, one.keys), []
    for a, b in pairs:
        first, second = one.store.record(a), other.store.record(b)
        same = first["arrays_sha256"] == second["arrays_sha256"] and first["arrays"] == second["arrays"]
        found = (
            Change("equal to the bit")
            if same
            else _change(one.store.result(first), other.store.result(second), first, floors, tolerance)
        )
        changes.append((_labels(first), found))
    return Compared(only, changes)


def _labels(record: Mapping[str, Any]) -> dict[str, Any]:
    return {**_subject(record), **record["labels"]}
