"""`iclgd study verify` and `compare`: whether numbers are still the same, and what changed between two runs."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from iclgd.cli.forms import Form, forms
from iclgd.cli.values import Amount, Named, Whole
from iclgd.errors import Stopped, Unfinished
from iclgd.report.numbers import counted, significant
from iclgd.report.page import Table
from iclgd.report.terminal import window

if TYPE_CHECKING:
    from iclgd.grid.near import Change

TOLERANCE = click.option(
    "--tolerance",
    default=1e-3,
    type=Amount(),
    metavar="X",
    help="Room of a number, as a share of its array's largest.  [default: 0.001]",
)


@forms
@click.command("verify")
@click.argument("what")
@click.option(
    "--store", type=Named(), metavar="DIR", help="Where cells are kept.  [default: ICLGD_STORE, or runs/cells]"
)
@click.option("--sample", default=5, type=Whole(), metavar="N", help="How many cells.  [default: 5]")
@click.option("--seed", default=0, type=Whole(0), metavar="N", help="Which cells.  [default: 0]")
@TOLERANCE
def verify_command(what: str, store: str | None, sample: int, seed: int, tolerance: float, form: Form) -> None:
    """Run a sample of finished cells once more and hold the numbers against those that are kept.

    Numbers are compared as they are printed: means over queries and layers. They have the room of the tolerance, and
    where cells measured how well an update repeats itself (their floors), what rounding changes. A cell is different
    if a number is further off, or more than a twentieth of an array's elements are; the exit status is then 1. Nothing
    is kept of what is run; stopped, it shows what it has compared.
    """
    from iclgd.grid.changes import verify
    from iclgd.report.terminal import cell_progress
    from iclgd.store.cells import default_store
    from iclgd.study import read_record

    path = Path(what)
    record = read_record(path if path.is_dir() else path.parent)
    kept = Path(store) if store else Path(record["store"]) if "store" in record else default_store()
    found: "list[tuple[dict[str, Any], Change]]" = []
    ended: Stopped | Unfinished | None = None
    with cell_progress(form.quiet) as progress:
        try:
            for one in verify(path, kept, sample, seed, tolerance, progress):
                found.append(one)
        except KeyboardInterrupt:
            ended = Stopped(_stopped(found, progress.total))
        except Unfinished as unfinished:
            ended = unfinished
    if found:  # what was compared is shown, whatever kept the rest from being
        form.tell({"cells": _data(found), "sample": progress.total}, lambda: _shown(found), _brief(found))
    if ended is not None:
        raise ended
    sys.exit(1 if any(change.verdict == "different" for _, change in found) else 0)


def _stopped(found: Sequence[Any], total: int) -> str:
    """What a verification that was stopped had compared; it keeps nothing."""
    if not found:
        return "stopped before a cell was compared: the same command begins again."
    cells = f"{len(found)} of {counted(total, 'cell')} {'was' if len(found) == 1 else 'were'} compared"
    return f"stopped; {cells} ({_brief(found)}): the same command begins again."


@forms
@click.command()  # compare, by the name of the function
@click.argument("one")
@click.argument("other")
@TOLERANCE
def compare_command(one: str, other: str, tolerance: float, form: Form) -> None:
    """What changed between two runs: study files, their folders, or whole stores."""
    from iclgd.grid.changes import compare, side

    found = compare(side(Path(one)), side(Path(other)), tolerance)
    alone = dict(zip(("only_in_first", "only_in_second"), found.only, strict=True))
    lines = [
        f"{counted(len(cells), 'cell')} only in {place}" for place, cells in zip((one, other), found.only, strict=True)
    ]
    form.tell(
        {"cells": _data(found.changes), **alone},
        lambda: "\n".join([*lines, _shown(found.changes)]),
        _brief(found.changes),
    )


def _data(changes: Any) -> list[dict[str, Any]]:
    return [
        {
            **labels,
            "verdict": change.verdict,
            "largest": significant(change.largest),
            "in": change.where,
            "elements_beyond": change.beyond,
            "arrays_more": change.more,
        }
        for labels, change in changes
    ]


def _counts(changes: Any) -> list[str]:
    from iclgd.grid.near import VERDICTS

    return [f"{counted(sum(c.verdict == one for _, c in changes), 'cell')} {one}" for one in VERDICTS]


def _brief(changes: Any) -> str:
    return ", ".join(_counts(changes))


def _shown(changes: Any) -> str:
    """How many are equal, near and different, and the cells that are not equal."""
    from iclgd.grid.near import VERDICTS

    rows = [
        [_named(labels), change.verdict, significant(change.largest, 3), f"{change.beyond:.2%}", change.where]
        for labels, change in sorted(changes, key=lambda pair: -pair[1].largest)
        if change.verdict != VERDICTS[0]
    ]
    table = ["", Table(["cell", "", "number off by", "elements off", "in"], rows[:50]).text(window())] if rows else []
    more = sum(change.more > 0 for _, change in changes)
    note = (
        [f"{counted(more, 'cell')} with arrays that the first has not, which are compared with nothing"] if more else []
    )
    return "\n".join([*_counts(changes), *note, *table])


def _named(labels: Any) -> str:
    return " ".join(f"{name} {value}" if name != "lab" else str(value) for name, value in labels.items())
