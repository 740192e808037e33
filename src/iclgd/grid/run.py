"""Running a grid: the missing cells of all its parts in one go, a page for each part, and one that lists them."""

import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from iclgd.engine.engines import Engine
from iclgd.engine.work import Job
from iclgd.errors import Refusal
from iclgd.files import OURS, check_output, check_writable, held, new_folder, sweep, write_over
from iclgd.grid.estimate import foretold
from iclgd.grid.file import FILE, Grid, Part
from iclgd.grid.front import front
from iclgd.grid.plan import Plan, jobs_of, plan_of, record_text
from iclgd.overview import listed
from iclgd.report.page import Page
from iclgd.report.terminal import CellProgress
from iclgd.running import SERIAL, Where, run_missing, shown
from iclgd.store.cells import Store
from iclgd.store.index import opened
from iclgd.study import RECORD, read_record
from iclgd.tools import Tools

Found = Sequence[tuple[Part, Tools, list[Job]]]  # every part with its cells


def run_grid(
    grid: Grid, file: Path, where: Where, engine: Engine = SERIAL, progress: CellProgress | None = None
) -> tuple[Page, int]:
    """Run what the store does not have, write every part's page and the page of the whole; gives that and how many ran.

    The folder says from the beginning what will be in it, so that `status` knows a study that is at work or was killed.
    """
    folder, progress = where.folder, progress or CellProgress()
    assert folder is not None, "a grid always has a folder"
    _check(grid, folder, where.overwrite)
    with held(folder) as note:
        progress.follow(note)
        sweep(folder.parent)
        found = jobs_of(grid, progress)
        _check_store(found, where)
        before = read_record(folder)
        plan = replace(plan_of(grid.name, found, where.store, folder), leaving=_leaving(before, grid))
        theirs = (bool(before) and before.get("grid") is None) or before.get("name", grid.name) != grid.name
        if not theirs:  # another study stays as it is until there is something to put in its place
            _begin(grid, plan, file, folder)
        try:
            fresh = _run(found, where, engine, progress)
        except Exception as error:
            if not theirs:
                _note_end(error, progress, grid, plan, file)
            raise
        progress.ends("drawing figures")
        if theirs:
            shutil.rmtree(folder)
            _begin(grid, plan, file, folder)
        studies = [shown(part.lab, part.spec, its, Where(where.store, folder / part.name), 0) for part, _, its in found]
        parts = [replace(part, answer=study.answer) for part, study in zip(plan.parts, studies, strict=True)]
        for name in plan.leaving:
            if (folder / name / OURS).is_file():
                shutil.rmtree(folder / name)
        page = front(grid, studies, folder)
        write_over(folder / RECORD, record_text(grid, replace(plan, parts=parts, leaving=(), answer=page.answer), file))
        write_over(folder / "index.html", page.html())
        write_over(folder / "page.md", page.markdown())
        listed(folder)
        _indexed(where.store)
    return page, fresh


def _run(found: Found, where: Where, engine: Engine, progress: CellProgress) -> int:
    """Run what is missing, parts that share their tools in one go; gives how many cells ran."""

    def run(tools: Tools) -> int:
        jobs = [job for _, its, part in found if its is tools for job in part]
        guesses = partial(foretold, store=Store(where.store), tools=tools, alone=engine.serial)
        return run_missing(jobs, where, tools, engine, progress, guesses)

    return sum(run(tools) for tools in dict.fromkeys(tools for _, tools, _ in found))


def _note_end(error: Exception, progress: CellProgress, grid: Grid, plan: Plan, file: Path) -> None:
    """The folder remembers how a run ended that could not finish, and which cells failed."""
    told = str(error) if isinstance(error, Refusal) else f"{type(error).__name__}: {error}"
    ended = replace(plan, ended=told, failed=progress.failures)
    assert plan.folder is not None
    with suppress(Refusal):  # the disk may be full, which is then what is said
        write_over(plan.folder / RECORD, record_text(grid, ended, file))


def _indexed(store: Path) -> None:
    """Bring the store's index up to date while it is known what is new, so that a table need not wait for it."""
    with suppress(Refusal), opened(Store(store)):  # without DuckDB there is none
        pass


def _check(grid: Grid, folder: Path, overwrite: bool) -> None:
    """Refuse before any work a folder that is not this study's, or a part's place that holds something else."""
    record = read_record(folder)
    check_output(folder, overwrite or not record or record.get("name") == grid.name)
    if folder.exists():
        for part in grid.parts:
            check_output(folder / part.name, overwrite=True)


def _check_store(found: Found, where: Where) -> None:
    """Refuse a store that cannot be written, where a cell has to be; what is all there is shown from any."""
    store = Store(where.store)
    if where.overwrite or not all(store.has(job.key) for _, _, jobs in found for job in jobs):
        check_writable(store.folder, store.folder.absolute())


def _begin(grid: Grid, plan: Plan, file: Path, folder: Path) -> None:
    """Mark the folder, and say what it will hold."""
    with new_folder(folder):
        sweep(folder)
        write_over(folder / FILE, grid.text())
        write_over(folder / RECORD, record_text(grid, plan, file))


def _leaving(before: Mapping[str, Any], grid: Grid) -> tuple[str, ...]:
    """The parts that the file no longer has: their pages go once those that it has are there."""
    if before.get("grid") is None:
        return ()
    names = [*before.get("leaving", ()), *(part["name"] for part in before["parts"])]
    return tuple(name for name in dict.fromkeys(names) if name not in {part.name for part in grid.parts})
