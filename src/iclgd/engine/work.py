"""What is done in one process: the cells of a group, one after another or together, and what became of each.

Every engine is the same generator of events on another road: consumed on the spot, sent through a pipe, or streamed
by Ray.
"""

import sys
import time
import traceback
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from iclgd.errors import Refusal, out_of_memory
from iclgd.lab import LABS, Cell, Lab
from iclgd.results import Result
from iclgd.store.cells import Store, provenance
from iclgd.tools import Tools


@dataclass(frozen=True)
class Job:
    """A cell that is to be run, its key, and what its spec points to.

    ``old`` is the stamp of the cell that it is to replace: that one stays until the new one is there.
    """

    key: str
    cell: Cell
    identity: Any
    old: str = ""

    def done(self, store: Store) -> bool:
        """Whether the store has the cell, and not only the one that is to be replaced."""
        return store.has(self.key) and store.stamp(self.key) != self.old

    def keep(self, store: Store, result: Result, provenance: dict[str, Any]) -> None:
        store.write(self.key, self.cell, self.identity, result, provenance, anew=bool(self.old))


@dataclass(frozen=True)
class Begun:
    """The cell is at work; of cells that run together, the first that has not been told yet."""

    key: str


@dataclass(frozen=True)
class Kept:
    """The cell is in the store."""

    key: str


@dataclass(frozen=True)
class Found:
    """What the cell found, for the driver to keep: this process does not see its store."""

    key: str
    result: Result
    provenance: dict[str, Any]


@dataclass(frozen=True)
class Failed:
    """The cell raised, or ``refused``. ``fatal``: no other cell could do better (a full disk).

    The exception itself stays in its process: not every one survives the way to another.
    """

    key: str
    sentence: str
    trace: str = ""
    refused: bool = False
    fatal: bool = False
    error: Exception | None = field(default=None, compare=False)

    def __reduce__(self) -> Any:
        return Failed, (self.key, self.sentence, self.trace, self.refused, self.fatal)


Event = Begun | Kept | Found | Failed


def groups(jobs: Sequence[Job]) -> list[list[Job]]:
    """Jobs that run in one process, in order."""
    return [list(group) for _, group in groupby(jobs, key=lambda job: (job.cell.lab, job.cell.group))]


def work(jobs: Sequence[Job], tools: Tools, store: Store | None, alone: bool = False) -> Iterator[Event]:
    """Run the cells of a group. Each is in the store, or on its way to the driver, as soon as it is there.

    A cell that raises is told and left, and the next go on, unless it says what the one before said. Cells that ran
    together cannot tell which of them it was: what is left of them, and of those that are to be ``alone``, runs one
    by one. A cell that runs out of memory is run once more with half of the budget, as are those after it.
    """
    left, lab, said, budget = list(jobs), LABS[jobs[0].cell.lab], "", tools.budget
    together = lab.together is not None and not alone and len(left) > 1
    try:
        while left:
            failed = None
            yield Begun(left[0].key)
            try:
                for result, seconds in _found(lab, left if together else left[:1], tools):
                    yield _keep(left[0], result, seconds, tools, store)
                    del left[0]
                    if together and left:
                        yield Begun(left[0].key)
            except Exception as error:
                failed, memory = _told(left[0], error), out_of_memory(error)
            if failed is None:
                continue
            if not failed.fatal and (together or (memory and tools.budget == budget)):
                together, tools.budget = False, budget / 2 if memory else tools.budget
                _release(tools)
                continue
            yield failed
            del left[0]
            if failed.fatal:
                return
            if failed.sentence == said:
                yield from (Failed(job.key, said, failed.trace, failed.refused) for job in left)
                return
            said = failed.sentence
    finally:
        tools.forget()
        tools.budget = budget


def _found(lab: Lab, jobs: Sequence[Job], tools: Tools) -> Iterator[tuple[Result, float]]:
    """The results of cells, each with the seconds it took."""
    cells, start = [job.cell for job in jobs], time.monotonic()
    results: Iterable[Result]
    if lab.together is not None:
        results = lab.together(cells, tools)
    else:
        assert lab.run is not None
        results = (lab.run(cell, tools) for cell in cells)
    for _, result in zip(cells, results, strict=True):
        yield result, time.monotonic() - start
        start = time.monotonic()


class _CannotKeep(Refusal):
    """What was found cannot be written, and nothing that comes after it could be."""


def _keep(job: Job, result: Result, seconds: float, tools: Tools, store: Store | None) -> Event:
    origin = provenance(seconds, str(result.facts.get("device", "cpu")))
    if tools.budget < 1:
        origin["budget"] = tools.budget  # smaller batches: other last bits
    if store is None:
        return Found(job.key, result, origin)
    try:
        job.keep(store, result, origin)
    except Refusal as refusal:
        raise _CannotKeep(str(refusal)) from None
    return Kept(job.key)


def _told(job: Job, error: Exception) -> Failed:
    if isinstance(error, Refusal):
        return Failed(job.key, str(error), refused=True, fatal=isinstance(error, _CannotKeep), error=error)
    if out_of_memory(error):  # without the exception, whose frames hold what filled the memory
        why = " ".join(str(error).split()).split(". ")[0][:200].rstrip(".")
        return Failed(job.key, f"not enough memory, also for batches of half the size ({why or 'MemoryError'}).")
    said = " ".join(f"{type(error).__name__}: {error}".split())[:300].rstrip(".")
    return Failed(job.key, f"{said}.", traceback.format_exc(), error=error)


def _release(tools: Tools) -> None:
    """What the group shared goes, and the memory that torch holds in reserve."""
    tools.forget()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.empty_cache()
