"""`iclgd study`: grids of studies from one file."""

import json
import sys
from pathlib import Path
from typing import Any

import click

from iclgd.cli.lab import FRAME
from iclgd.cli.values import Amount, Whole
from iclgd.errors import Refusal
from iclgd.report.numbers import counted, significant
from iclgd.report.page import Table
from iclgd.report.terminal import duration, say, window

EXAMPLES = """\b
Examples:
  iclgd study plan studies/strong.yaml         what would run, and for how long
  iclgd study run studies/strong.yaml          the same command goes on where it stopped
  iclgd study status studies/strong.yaml
  iclgd study table runs/strong --value SimAOU --rows model,learner --columns null --where init=trained
  iclgd study verify runs/strong --sample 5    are the numbers still the same here?
  iclgd study compare runs/strong other/strong
  iclgd study schema > study.schema.json       for an editor
"""
STORE = next(option for option in FRAME if option.name == "store")
FORMATS = ("text", "markdown", "latex", "csv", "json", "parquet")


@click.group(epilog=EXAMPLES)
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


def _store(given: str | None) -> Path:
    from iclgd.store.cells import default_store

    return Path(given) if given else default_store()


@_with("out", "overwrite", "store", "jobs", "engine", "address")
@command.command("run")
@click.argument("file")
def run_command(file: str, out: str | None, overwrite: bool, store: str | None, **engine: Any) -> None:
    """Run the cells of a study FILE that the store lacks, and write a page for each part and one for all."""
    from iclgd.engine.engines import Engine
    from iclgd.grid.file import read_grid
    from iclgd.grid.plan import FILE, RUNS
    from iclgd.grid.run import run_grid
    from iclgd.report.terminal import cell_progress
    from iclgd.running import Where
    from iclgd.study import read_record

    path, asked = Path(file), Engine(engine["engine"], engine["jobs"], engine["address"])
    grid = read_grid(path)
    record = read_record(path.parent) if path.name == FILE else {}
    if record.get("grid") == grid.key:  # a grid's own file: shown again in its place, from the store it had
        out, store = out or str(path.parent), store or record["store"]
    folder = Path(out) if out else RUNS / grid.name
    with cell_progress() as progress:
        page, fresh = run_grid(grid, path, Where(_store(store), folder, overwrite), asked, progress)
    say(page.text(width=window() or 100))
    say(f"\nran      {counted(fresh, 'cell')}")
    say(f"page     {folder / 'index.html'}")
    say(f"repeat   {page.repeat}")


@_with("store")
@command.command("plan")
@click.argument("file")
def plan_command(file: str, store: str | None) -> None:
    """What running a study FILE would do: cells done and left, and the time, memory and disk that is left to take."""
    import shutil

    from iclgd.grid.changes import grid_of
    from iclgd.grid.estimate import Cost, costs, size
    from iclgd.grid.plan import jobs_of
    from iclgd.store.cells import Store

    grid, kept = grid_of(Path(file)), Store(_store(store))
    measured, note = _measured(kept)
    rows, total, seen = [], Cost(), set[str]()
    for part, _, jobs in jobs_of(grid):
        left = [job for job in jobs if not kept.has(job.key)]
        cost = costs(left, measured)
        total += costs([job for job in left if job.key not in seen], measured)
        seen |= {job.key for job in jobs}
        rows.append([part.name, part.lab, str(len(jobs)), str(len(jobs) - len(left)), str(len(left)), _time(cost)])
    say(Table(["part", "lab", "cells", "done", "left", "time"], rows).text(window()))
    done = sum(kept.has(key) for key in seen)
    say(f"\nleft     {counted(len(seen) - done, 'cell')} of {len(seen):,}, those that parts share counted once")
    if len(seen) > done:
        say(f"time     {_time(total)}, one after another{note}")
    if total.memory:
        say(f"memory   {size(total.memory)} at most in a process that ran such cells")
    if total.disk:
        nearest = next(p for p in (kept.folder.absolute(), *kept.folder.absolute().parents) if p.exists())
        free = shutil.disk_usage(nearest).free
        short = ": NOT ENOUGH" if total.disk > free else ""
        say(f"disk     {size(total.disk)} of {size(free)} free{short}")


def _measured(store: Any) -> tuple[list[Any], str]:
    """The cells that the store has, and why nothing is known of them where that is so."""
    from iclgd.store.index import opened

    if not store.folder.is_dir():
        return [], ""
    try:
        with opened(store) as index:
            return list(index.cells().values()), ""
    except Refusal as refusal:
        return [], f" ({refusal})"


def _time(cost: Any) -> str:
    known = duration(cost.seconds)
    return (
        f"{known} and {cost.unknown} unknown" if cost.unknown and cost.seconds else "unknown" if cost.unknown else known
    )


@_with("store", "out")
@command.command("status")
@click.argument("what")
def status_command(what: str, store: str | None, out: str | None) -> None:
    """Cells done, set aside after they failed, and left, of a study file or folder, part by part."""
    from iclgd.files import holder
    from iclgd.grid.plan import find_plan
    from iclgd.store.cells import NAME

    plan = find_plan(Path(what), _path(store), _path(out))
    failed = {path.stem for path in (plan.store / "quarantine").glob("*.json")} - plan.done
    rows, parts = [], [(part.name, {key[:NAME] for key in part.keys}) for part in plan.parts]
    for name, cells in [*parts, *([("all", {key[:NAME] for key in plan.keys})] if len(parts) > 1 else [])]:
        done, bad = len(cells & plan.done), len(cells & failed)
        rows.append([name, str(done), str(bad), str(len(cells) - done - bad)])
    say(Table(["part", "done", "failed", "left"], rows).text(window()))
    if plan.folder is not None and (process := holder(plan.folder)):
        say(f"\nprocess {process} is at work on it")
    elif plan.ended:
        say(f"\nthe last run ended with: {plan.ended}")


@_with("store")
@command.command("table")
@click.argument("what")
@click.option("--value", metavar="NAME", help="A metric, quantity or fact.")
@click.option("--rows", metavar="LABELS", help="Labels along the rows, separated by commas.  [default: part]")
@click.option("--columns", metavar="LABELS", help="Labels along the columns.")
@click.option("--where", metavar="LABEL=VALUE", multiple=True, help="Only these; LABEL= where it is not there.")
@click.option("--over", metavar="LABELS", help="One or two labels that means are over.  [default: task,seed]")
@click.option("--format", "form", default="text", metavar="NAME", help=f"{', '.join(FORMATS)}.  [default: text]")
@click.option("--to", metavar="FILE", help="Write to a file.")
def table_command(what: str, store: str | None, form: str, to: str | None, **asked: Any) -> None:
    """A table of any number of the study's cells: means over draws and tasks, with 95% intervals.

    Without options it lists the labels that numbers have.
    """
    from iclgd.files import write_over
    from iclgd.grid.plan import find_plan
    from iclgd.grid.table import Pivot, known

    if form not in FORMATS:
        raise Refusal(f'`format` takes {", ".join(FORMATS)}; "{form}" is none of them.')
    if form == "parquet" and not to:
        raise Refusal("Parquet is not for a terminal: name a file with `to`.")
    plan = find_plan(Path(what), _path(store))
    if not any(asked.values()):
        say(known(plan).text(window()))
        return
    pivot = Pivot(plan, _asked(**asked))
    if to and form == "parquet":
        write_over(Path(to), pivot.parquet())
    elif to:
        write_over(Path(to), pivot.written(form) + "\n")
    else:
        say(pivot.table().text(window()) + f"\n\n{pivot.kinds()}" if form == "text" else pivot.written(form))


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


@_with("store")
@command.command("verify")
@click.argument("what")
@click.option("--sample", default=5, type=Whole(), metavar="N", help="How many cells.  [default: 5]")
@click.option("--seed", default=0, type=Whole(0), metavar="N", help="Which cells.  [default: 0]")
@click.option(
    "--tolerance",
    default=1e-3,
    type=Amount(),
    metavar="X",
    help="Share of an array's largest number.  [default: 0.001]",
)
@click.option("--json", "as_json", is_flag=True, help="Print what was found as JSON.")
def verify_command(what: str, store: str | None, sample: int, seed: int, tolerance: float, as_json: bool) -> None:
    """Run a sample of finished cells once more and hold the numbers against those that are kept.

    The exit status is 1 when one is different.
    """
    from iclgd.grid.changes import verify
    from iclgd.report.terminal import cell_progress
    from iclgd.study import read_record

    path = Path(what)
    record = read_record(path if path.is_dir() else path.parent)
    kept = _path(store) or (Path(record["store"]) if "store" in record else _store(None))
    with cell_progress() as progress:
        found = list(verify(path, kept, sample, seed, tolerance, progress))
    _say_changes(found, as_json)
    sys.exit(1 if any(change.verdict == "different" for _, change in found) else 0)


@command.command()
@click.argument("one")
@click.argument("other")
@click.option(
    "--tolerance",
    default=1e-3,
    type=Amount(),
    metavar="X",
    help="Share of an array's largest number.  [default: 0.001]",
)
@click.option("--json", "as_json", is_flag=True, help="Print what was found as JSON.")
def compare_command(one: str, other: str, tolerance: float, as_json: bool) -> None:
    """What changed between two runs: study files, their folders, or whole stores."""
    from iclgd.grid.changes import compare, side

    found = compare(side(Path(one)), side(Path(other)), tolerance)
    if not as_json:
        for place, cells in zip((one, other), found.only, strict=True):
            say(f"{counted(len(cells), 'cell')} only in {place}")
    _say_changes(found.changes, as_json, dict(zip(("only_in_first", "only_in_second"), found.only, strict=True)))


def _say_changes(changes: Any, as_json: bool, more: Any = None) -> None:
    """How many are equal, near and different, and the cells that are not equal."""
    from iclgd.grid.changes import VERDICTS

    if as_json:
        found = [
            {**labels, "verdict": change.verdict, "largest": significant(change.largest), "in": change.where}
            for labels, change in changes
        ]
        say(json.dumps({"cells": found, **(more or {})}, ensure_ascii=False))
        return
    for verdict in VERDICTS:
        count = sum(change.verdict == verdict for _, change in changes)
        say(f"{counted(count, 'cell')} {verdict}")
    rows = [
        [_named(labels), change.verdict, significant(change.largest, 3), change.where]
        for labels, change in sorted(changes, key=lambda pair: -pair[1].largest)
        if change.verdict != VERDICTS[0]
    ]
    if rows:
        say("\n" + Table(["cell", "", "largest difference", "in"], rows[:50]).text(window()))


def _named(labels: Any) -> str:
    return " ".join(f"{name} {value}" if name != "lab" else str(value) for name, value in labels.items())


@command.command("schema")
def schema_command() -> None:
    """Print a JSON schema of study files, which lets an editor complete and check them."""
    from iclgd.grid.schema import schema

    say(json.dumps(schema(), indent=1, ensure_ascii=False))
