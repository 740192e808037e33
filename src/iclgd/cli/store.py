"""`iclgd store`: the cells that were kept, checked, cleared up, and carried to other stores."""

import sys
from pathlib import Path

import click

from iclgd.cli.examples import epilog
from iclgd.cli.forms import Form, forms
from iclgd.cli.values import Amount, Named
from iclgd.errors import Refusal
from iclgd.report.numbers import counted
from iclgd.store.cells import NAME, Store, default_store

EXAMPLES = """\
  iclgd store check                            is every cell as it was written?
  iclgd store gc                               what would go; --delete removes it
  iclgd store export cells.tar --study runs/sst2-3f9c
  iclgd store import cells.tar
"""
STORE = click.option(
    "--store", type=Named(), metavar="DIR", help="Where cells are kept.  [default: ICLGD_STORE, or runs/cells]"
)


@click.group(epilog=epilog(EXAMPLES))
def command() -> None:
    """The cells that were kept: check, clear up, export, import."""


def _store(given: str | None) -> Store:
    store = Store(Path(given) if given else default_store())
    if not store.folder.is_dir():
        raise Refusal(f"{store.folder} is no folder: name the `store`.")
    return store


@forms
@command.command("check")
@STORE
def check_command(store: str | None, form: Form) -> None:
    """Read every cell and hold it against its hashes and its name. The exit status is 1 when one is damaged."""
    from iclgd.store.upkeep import damaged

    kept = _store(store)
    bad = [why for _, why in damaged(kept)]
    told = f"{counted(len(kept.names()), 'cell')}, {len(bad) or 'none'} damaged"
    form.tell({"cells": len(kept.names()), "damaged": bad}, lambda: "\n".join([*bad, told]), "\n".join(bad))
    sys.exit(1 if bad else 0)


@forms
@command.command("gc")
@STORE
@click.option("--runs", metavar="DIR", help="Folder of the studies that are to keep their cells.  [default: runs]")
@click.option(
    "--hours",
    default=24.0,
    type=Amount(),
    metavar="X",
    help="Cells younger than this stay: they may be of a study at work.  [default: 24]",
)
@click.option("--delete", is_flag=True, help="Remove them; without it they are only counted.")
def gc_command(store: str | None, runs: str | None, hours: float, delete: bool, form: Form) -> None:
    """Find cells that no study's folder speaks of, and what killed processes left behind."""
    from iclgd.files import abandoned, sweep
    from iclgd.grid.estimate import size
    from iclgd.store.upkeep import unneeded

    kept, studies = _store(store), Path(runs) if runs else Path("runs")
    if not studies.is_dir():
        raise Refusal(f"{studies} is no folder, so no study would keep its cells: name the `runs` folder.")
    found = unneeded(kept, studies, hours)
    left = len(sweep(kept.folder) if delete else abandoned(kept.folder))
    if delete:
        for name in found.names:
            kept.remove(name)
    verb = "removed" if delete else "would be removed by --delete"
    data = {"cells": list(found.names), "bytes": found.bytes, "folders": left, "removed": delete}
    cells = f"{counted(len(found.names), 'cell')} ({size(found.bytes)}) that no study in {studies} speaks of {verb}"
    form.tell(data, lambda: f"{cells}\n{counted(left, 'folder')} of killed processes {verb}", "\n".join(found.names))


@forms
@command.command("export")
@click.argument("target")
@click.option(
    "--study", "studies", multiple=True, metavar="WHAT", help="Cells of this study file or folder.  [default: all]"
)
@click.option("--cell", "cells", multiple=True, metavar="KEY", help="A cell by its key, or how that begins.")
@STORE
def export_command(
    target: str, studies: tuple[str, ...], cells: tuple[str, ...], store: str | None, form: Form
) -> None:
    """Write cells to TARGET: a .tar or .tar.gz file, or a folder, which is then a store."""
    from iclgd.grid.plan import find_plan
    from iclgd.store.upkeep import export

    kept = _store(store)
    names: list[str] = [] if studies or cells else kept.names()
    for study in studies:
        plan = find_plan(Path(study), kept.folder)
        if lost := len(set(plan.keys)) - len(plan.done):
            raise Refusal(
                f"{counted(lost, 'cell')} of {study} {'is' if lost == 1 else 'are'} not in {kept.folder}: run it first."
            )
        names += [key[:NAME] for key in plan.keys]
    for begin in cells:
        found = [name for name in kept.names() if name.startswith(begin[:NAME])]
        if len(found) != 1:
            raise Refusal(f'{len(found) or "no"} cells begin with "{begin}": name one by more of its key.')
        names += found
    if not names:
        raise Refusal(f"{kept.folder} has no cells to write: name another `store`.")
    written = export(kept, names, Path(target))
    form.tell({"cells": written, "target": target}, lambda: f"{counted(written, 'cell')} in {target}", target)


@forms
@command.command("import")
@click.argument("source")
@STORE
def import_command(source: str, store: str | None, form: Form) -> None:
    """Take in the cells of SOURCE; what is there already stays. The exit status is 1 when one is damaged."""
    from iclgd.store.upkeep import bring

    found = bring(Store(Path(store) if store else default_store()), Path(source))
    bad = [why for _, why in found.damaged]
    told = f"{counted(found.new, 'cell')} taken in, {found.there} there already, {len(bad)} damaged"
    data = {"new": found.new, "there": found.there, "damaged": bad}
    form.tell(data, lambda: "\n".join([*bad, told]), "\n".join(bad))
    sys.exit(1 if found.damaged else 0)
