"""The page of a grid: what its parts found together, a number of every part side by side, and where their pages lie."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from iclgd.grid.file import FILE, Grid
from iclgd.report.beside import beside
from iclgd.report.found import said_by_labs
from iclgd.report.numbers import counted
from iclgd.report.page import Link, Page, Section, Table
from iclgd.study import Study

ABOUT = "A number of every part, with 95% intervals; which number can be chosen."
UNCOUNTED = "Parts give answers of their own and no verdict that could be counted."


def front(grid: Grid, studies: Sequence[Study], folder: Path) -> Page:
    """The answer counts what parts found: no stronger than any of them, since nothing is pooled."""
    rows = [
        [Link(part.name, f"{part.name}/index.html"), study.answer, part.lab, str(len(study.keys))]
        for part, study in zip(grid.parts, studies, strict=True)
    ]
    records = {part.name: study.page.plain() for part, study in zip(grid.parts, studies, strict=True)}
    labs = {part.name: part.lab for part in grid.parts}
    cells = len({key for study in studies for key in study.keys})
    what = " · ".join(filter(None, [grid.about, counted(len(rows), "part"), counted(cells, "cell")]))
    return Page(
        grid.name,
        what,
        said_by_labs(records, labs) or UNCOUNTED,
        [Section("Parts", "", Table(["part", "answer", "lab", "cells"], rows), brief=True)],
        shlex.join(["iclgd", "study", "run", str(folder.resolve() / FILE)]),
        picture=beside(records, labs, ABOUT),
    )
