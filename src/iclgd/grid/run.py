"""Running a grid: the missing cells of all its parts in one go, a page for each part, and one that lists them."""

import shlex
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from iclgd.engine.engines import Engine
from iclgd.errors import Refusal
from iclgd.files import OURS, check_output, check_writable, held, new_folder, sweep, write_over
from iclgd.grid.file import Grid
from iclgd.grid.plan import FILE, Plan, jobs_of, plan_of, record_text
from iclgd.overview import listed
from iclgd.report.numbers import counted
from iclgd.report.page import Link, Page, Section, Table
from iclgd.report.terminal import CellProgress
from iclgd.running import SERIAL, Where, run_missing, shown
from iclgd.store.cells import Store
from iclgd.store.index import opened
from iclgd.study import RECORD, Study, read_record


def run_grid(
    grid: Grid, file: Path, where: Where, engine: Engine = SERIAL, progress: CellProgress | None = None
) -> tuple[Page, int]:
    """Run what the store does not have, write every part's page and the page of the whole; gives that and how many ran.

    The folder says from the beginning what will be in it, so that `status` knows a study that is at work or was killed.
    """
    folder, progress = where.folder, progress or CellProgress()
    assert folder is not None, "a grid always has a folder"
    _check(grid, folder, where.overwrite)
    check_writable(where.store, where.store.absolute())
    with held(folder):
        sweep(folder.parent)
        found = jobs_of(grid, progress)
        plan = plan_of(grid.name, found, where.store, folder)
        _begin(grid, plan, file, folder)
        fresh = 0
        try:
            for tools in dict.fromkeys(tools for _, tools, _ in found):
                its = [job for _, other, part in found if other is tools for job in part]
                fresh += run_missing(its, where, tools, engine, progress)
        except Refusal as refusal:
            with suppress(Refusal):  # the disk may be full, which is then what is said
                write_over(folder / RECORD, record_text(grid, replace(plan, ended=str(refusal)), file))
            raise
        progress.ends("drawing figures")
        studies = [shown(part.lab, part.spec, its, Where(where.store, folder / part.name), 0) for part, _, its in found]
        parts = [replace(part, answer=study.answer) for part, study in zip(plan.parts, studies, strict=True)]
        write_over(folder / RECORD, record_text(grid, replace(plan, parts=parts), file))
        page = front(grid, studies, folder)
        write_over(folder / "index.html", page.html())
        write_over(folder / "page.md", page.markdown())
        listed(folder)
        _indexed(where.store)
    return page, fresh


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


def _begin(grid: Grid, plan: Plan, file: Path, folder: Path) -> None:
    """Mark the folder, say what it will hold, and drop the parts that the file no longer has."""
    before = read_record(folder)
    text = record_text(grid, plan, file)
    if before and "grid" not in before:  # another study, to be overwritten
        shutil.rmtree(folder)
    with new_folder(folder):
        sweep(folder)
        write_over(folder / FILE, grid.text())
        write_over(folder / RECORD, text)
        kept = {part.name for part in grid.parts}
        for part in before.get("parts", ()) if "grid" in before else ():
            if part["name"] not in kept and (folder / part["name"] / OURS).is_file():
                shutil.rmtree(folder / part["name"])


def front(grid: Grid, studies: Sequence[Study], folder: Path) -> Page:
    """The page that lists the parts with their answers."""
    rows = [
        [Link(part.name, f"{part.name}/index.html"), part.lab, str(len(study.keys)), study.answer]
        for part, study in zip(grid.parts, studies, strict=True)
    ]
    cells = len({key for study in studies for key in study.keys})
    table = Table(["part", "lab", "cells", "answer"], rows)
    repeat = shlex.join(["iclgd", "study", "run", str(folder.resolve() / FILE)])
    what = f"{counted(len(rows), 'part')} · {counted(cells, 'cell')}"
    return Page(grid.name, what, grid.about, [Section("Parts", "", table, brief=True)], repeat)
