"""The plain engine: one cell after another, neighbours sharing what they have in common."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from iclgd.lab import LABS, Cell
from iclgd.results import Result
from iclgd.store.cells import Store, provenance
from iclgd.tools import Tools

Done = Callable[[Cell], None]


@dataclass(frozen=True)
class Job:
    """A cell that is to be run, its key, and what its spec points to."""

    key: str
    cell: Cell
    identity: Any


def groups(jobs: Sequence[Job]) -> list[list[Job]]:
    """Jobs that run in one process, in order."""
    return [list(group) for _, group in groupby(jobs, key=lambda job: (job.cell.lab, job.cell.group))]


def run_jobs(jobs: Sequence[Job], store: Store, tools: Tools, done: Done) -> None:
    for group in groups(jobs):
        run_group(group, store, tools, done)


def run_group(jobs: Sequence[Job], store: Store, tools: Tools, done: Done) -> None:
    """Run the cells of a group and keep each result as soon as it is there."""
    lab = LABS[jobs[0].cell.lab]
    start = time.monotonic()
    results = lab.together([job.cell for job in jobs], tools) if lab.together else _each(jobs, tools)
    for job, result in zip(jobs, results, strict=True):
        device = str(result.facts.get("device", "cpu"))
        store.write(job.key, job.cell, job.identity, result, provenance(time.monotonic() - start, device))
        start = time.monotonic()
        done(job.cell)
    tools.forget()


def _each(jobs: Sequence[Job], tools: Tools) -> "list[Result] | Any":
    run = LABS[jobs[0].cell.lab].run
    assert run is not None
    return (run(job.cell, tools) for job in jobs)
