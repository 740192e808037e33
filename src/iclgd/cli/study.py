"""`iclgd study`: grids of studies from one file."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from iclgd.cli.changes import compare_command, verify_command
from iclgd.cli.examples import epilog
from iclgd.cli.forms import Form, forms, remark, rows_as_data
from iclgd.cli.lab import FRAME
from iclgd.cli.summary import summary
from iclgd.errors import Refusal
from iclgd.report.numbers import counted
from iclgd.report.page import Table
from iclgd.report.terminal import duration, say, window

EXAMPLES = """\
  iclgd study plan studies/strong.yaml         what would run, and for how long
  iclgd study run studies/strong.yaml          the same command goes on where it stopped
  iclgd study status studies/strong.yaml
  iclgd study table runs/strong --value SimAOU --rows model,learner --columns null --where init=trained
  iclgd study verify runs/strong --sample 5    are the numbers still the same here?
  iclgd study compare runs/strong other/strong
  iclgd study schema > study.schema.json       for an editor
"""
STORE = next(option for option in FRAME if option.name == "store")
NAMED = 20  # cells at work that `status` names; the rest are counted
FORMATS = ("text", "markdown", "latex", "csv", "json", "parquet")


@click.group(epilog=epilog(EXAMPLES))
def command() -> None:
    """Grids of studies from one file: run, plan, status, table, verify, compare."""


def _with(*names: str) -> Any:
    """The options of every lab's command that these ones have too."""

    def add(made: Any) -> Any:
        made.params += [option for option in FRAME if option.name in names]
        return made

    return add


def _path(given: str | None) -> Path | None:
    return Path(given) if given else None


def store_at(given: str | None) -> Path:
    """The store that is named, or the usual one."""
    from iclgd.store.cells import default_store

    return Path(given) if given else default_store()


@forms
@_with("out", "overwrite", "store", "jobs", "engine", "address", "full")
@command.command("run")
@click.argument("file")
def run_command(
    file: str, out: str | None, overwrite: bool, store: str | None, full: bool, form: Form, **engine: Any
) -> None:
    """Run the cells of a study FILE that the store lacks, and write a page for each part and one for all."""
    from iclgd.cli.early import check_places
    from iclgd.engine.engines import Engine
    from iclgd.grid.file import FILE, read_grid
    from iclgd.grid.run import run_grid
    from iclgd.overview import RUNS
    from iclgd.report.terminal import cell_progress
    from iclgd.running import Where
    from iclgd.study import read_record

    path, asked = Path(file), Engine(engine["engine"], engine["jobs"], engine["address"])
    check_places(out, store)
    grid = read_grid(path)
    record = read_record(path.parent) if path.name == FILE else {}
    if record.get("grid") == grid.key:  # a grid's own file: shown again in its place, from the store it had
        out, store = out or str(path.parent), store or record["store"]
    folder = Path(out) if out else RUNS / grid.name
    for note in () if form.quiet else grid.notes:
        remark(note)
    with cell_progress(form.quiet) as progress:
        page, fresh = run_grid(grid, path, Where(store_at(store), folder, overwrite), asked, progress)
    shown = str(folder / "index.html")
    told = f"ran      {counted(fresh, 'cell')}\npage     {shown}\nrepeat   {page.repeat}"
    data = {"ran": fresh, "folder": str(folder), "repeat": page.repeat, **page.plain()}
    form.tell(data, lambda: f"{summary(page, full)}\n\n{told}", shown)


@forms
@_with("store")
@command.command("plan")
@click.argument("file")
def plan_command(file: str, store: str | None, form: Form) -> None:
    """What running a study FILE would do: cells done and left, and the time, memory and disk that is left to take."""
    from iclgd.grid.changes import grid_of
    from iclgd.grid.estimate import Cost, by_arithmetic, measured, pace, priced
    from iclgd.grid.plan import jobs_of
    from iclgd.report.terminal import cell_progress
    from iclgd.store.cells import Store

    grid, kept = grid_of(Path(file)), Store(store_at(store))
    rows, total, seen = [], Cost(), set[str]()
    with cell_progress(form.quiet) as progress:  # a million cells take minutes to list
        found = jobs_of(grid, progress)
        known, note = measured(kept)
        for part, tools, jobs in found:
            progress.doing(f"estimating {part.name}", 0)
            left = [job for job in jobs if not kept.has(job.key)]
            each = list(priced(left, known, by_arithmetic(tools)))
            cost = sum((cost for _, cost in each), Cost())
            total += sum((cost for job, cost in each if job.key not in seen), Cost())
            seen |= {job.key for job in jobs}
            rows.append([part.name, part.lab, str(len(jobs)), str(len(jobs) - len(left)), str(len(left)), _time(cost)])
    header = ["part", "lab", "cells", "done", "left", "time"]
    done = sum(kept.has(key) for key in seen)
    over = [f"left     {counted(len(seen) - done, 'cell')} of {len(seen):,}, those that parts share counted once"]
    if len(seen) > done:
        over.append(f"time     {_time(total)}, one after another{note}")
    if total.guessed:
        cells = counted(total.guessed, "cell")
        over.append(f"         of {cells} a guess from their arithmetic, at {pace()}: none like them was run here")
    over += [*_room(total, kept.folder), *(f"note     {note}" for note in grid.notes)]
    data = {"parts": rows_as_data(header, rows), "cells": len(seen), "left": len(seen) - done, **asdict(total)}
    data["notes"] = list(grid.notes)
    form.tell(data, lambda: "\n".join([Table(header, rows).text(window()), "", *over]), str(len(seen) - done))


def _room(total: Any, folder: Path) -> Iterator[str]:
    """Memory and disk that such cells took, where that is known."""
    import shutil

    from iclgd.grid.estimate import size

    if total.memory:
        yield f"memory   {size(total.memory)} at most in a process that ran such cells"
    if total.disk:
        nearest = next(p for p in (folder.absolute(), *folder.absolute().parents) if p.exists())
        free = shutil.disk_usage(nearest).free
        yield f"disk     {size(total.disk)} of {size(free)} free{': NOT ENOUGH' if total.disk > free else ''}"


def _time(cost: Any) -> str:
    known = duration(cost.seconds)
    return (
        f"{known} and {cost.unknown} unknown" if cost.unknown and cost.seconds else "unknown" if cost.unknown else known
    )


@forms
@_with("store", "out")
@command.command("status")
@click.argument("what")
def status_command(what: str, store: str | None, out: str | None, form: Form) -> None:
    """Cells done, at work, failed and left, of a study file or folder, part by part."""
    from iclgd.files import holder
    from iclgd.grid.plan import find_plan
    from iclgd.store.cells import NAME

    plan = find_plan(Path(what), _path(store), _path(out))
    now = holder(plan.folder) if plan.folder is not None else None
    running = {key[:NAME] for key in now.running} if now else set()
    failed = {key[:NAME] for key in (now.failed if now and now.process else plan.failed)}
    failed |= {path.stem for path in (plan.store / "quarantine").glob("*.json")}
    header, rows = ["part", "done", "running", "failed", "left"], []
    parts = [(part.name, {key[:NAME] for key in part.keys}) for part in plan.parts]
    for name, cells in [*parts, *([("all", {key[:NAME] for key in plan.keys})] if len(parts) > 1 else [])]:
        at_work = cells & running  # one that is run anew is at work, though the old one is there
        done = (cells & plan.done) - at_work
        bad = (cells & failed) - done - at_work
        rows.append([name, *(str(len(some)) for some in (done, at_work, bad, cells - done - at_work - bad))])
    process, now_running = now.process if now else "", list(plan.among(running))
    ended = f"the last run ended with: {plan.ended}" if plan.ended else ""
    notes = [f"process {process} is at work on it", *_called(now_running)] if process else [ended] if ended else []
    data = {"parts": rows_as_data(header, rows), "process": process or None, "ended": plan.ended or None}
    brief = f"{len(plan.done)} of {len({key[:NAME] for key in plan.keys})} done"
    shown = "\n".join([Table(header, rows).text(window()), *([""] if notes else []), *notes])
    form.tell({**data, "running": now_running}, lambda: shown, brief)


def _called(cells: list[dict[str, Any]]) -> list[str]:
    """`  part a: task sst2 seed 3`; of very many the first."""
    from iclgd.lab import called

    lines = [f"  {cell['part']}: {called({n: v for n, v in cell.items() if n != 'part'})}" for cell in cells[:NAMED]]
    return lines + ([f"  and {len(cells) - NAMED} more"] if len(cells) > NAMED else [])


@forms
@_with("store")
@command.command("table")
@click.argument("what")
@click.option("--value", metavar="NAME", help="A metric, quantity or fact.")
@click.option("--rows", metavar="LABELS", help="Labels along the rows, separated by commas.  [default: part]")
@click.option("--columns", metavar="LABELS", help="Labels along the columns.")
@click.option("--where", metavar="LABEL=VALUE", multiple=True, help="Only these; LABEL= where it is not there.")
@click.option("--over", metavar="LABELS", help="One or two labels that means are over.  [default: task,seed]")
@click.option("--format", "written", default="text", metavar="NAME", help=f"{', '.join(FORMATS)}.  [default: text]")
@click.option("--to", metavar="FILE", help="Write to a file.")
def table_command(what: str, store: str | None, written: str, to: str | None, form: Form, **asked: Any) -> None:
    """A table of any number of the study's cells: means over draws and tasks, with 95% intervals.

    Without options it lists the labels that numbers have.
    """
    from iclgd.files import named_file, write_over
    from iclgd.grid.plan import find_plan
    from iclgd.grid.table import Pivot, known

    if written not in FORMATS:
        raise Refusal(f'`format` takes {", ".join(FORMATS)}; "{written}" is none of them.')
    if written == "parquet" and to is None:
        raise Refusal("Parquet is not for a terminal: name a file with `to`.")
    wanted, place = _asked(**asked), named_file(Path(to)) if to is not None else None
    plan = find_plan(Path(what), _path(store))
    if not any(asked.values()):
        labels = known(plan)
        form.tell(labels.plain(), lambda: labels.text(window()), "\n".join(row[0] for row in labels.texts()))
    else:
        pivot = Pivot(plan, wanted)
        if place is not None:
            write_over(place, pivot.parquet() if written == "parquet" else pivot.written(written) + "\n")
        elif form.as_json or written != "text":
            say(pivot.written("json" if form.as_json else written))
        elif form.quiet:
            say(pivot.table().text(window()))
        else:
            say(f"{pivot.table().text(window())}\n\n{pivot.kinds()}")
            return
    if plan.unfinished:  # what has no place for a note
        remark(plan.unfinished)


def _asked(value: str | None, rows: str | None, columns: str | None, where: tuple[str, ...], over: str | None) -> Any:
    from iclgd.grid.table import OVER, Asked
    from iclgd.spec import parts

    wanted: dict[str, str | None] = {}
    for one in (part for text in where for part in text.split(",")):
        name, equals, found = one.partition("=")
        if not equals:
            raise Refusal(f'`where` takes label=value, not "{one}".')
        wanted[name.strip()] = found.strip() or None
    means = tuple(parts(over)) if over else OVER
    if len(means) > 2:
        raise Refusal("`over` takes one or two labels, such as task,seed.")
    return Asked(parts(rows or "part"), parts(columns or ""), wanted, value, means)


@command.command("schema")
def schema_command() -> None:
    """Print a JSON schema of study files, which lets an editor complete and check them."""
    from iclgd.grid.schema import schema

    say(json.dumps(schema(), indent=1, ensure_ascii=False))


command.add_command(verify_command)
command.add_command(compare_command)
