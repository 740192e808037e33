"""One page over all studies of a folder: what was asked, what was found, where its page lies, and run against run."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from iclgd.errors import Refusal
from iclgd.files import write_over
from iclgd.report.beside import beside, numbers
from iclgd.report.html import opening
from iclgd.report.numbers import counted
from iclgd.report.page import Link, Page, Section, Table
from iclgd.report.widgets import CHARTS, WEB, Widget
from iclgd.spec import read_yaml
from iclgd.study import RECORD, SPEC, read_record

INDEX, RUNS = "index.html", Path("runs")  # where studies are written that name no place
MINE = "What was run here"  # the title, by which a page that this program wrote is known
READ = "The newest first. A grid of studies has a page of its own, which lists its parts."
AGAINST = (
    "Two runs side by side: what they found, what was asked for differently, and the numbers that both have; filled "
    "dots are the first, hollow ones the second. Intervals are each run's own: where they overlap, nothing is said "
    "about the difference. `iclgd study compare` holds every number of two runs against each other."
)
ABOUT = "Two runs that can be chosen, their answers, what was asked for differently, and their numbers side by side."
SIDE_BY_SIDE = "A number of every study of a lab, with 95% intervals; which number can be chosen."
MOST = 2000  # numbers of one run that the page carries: its first tables
SCRIPTS = (*CHARTS, WEB / "against.js")


def overview(folder: Path) -> Page:
    """The studies and grids whose records lie in the folders of a folder."""
    found = [path.parent for path in folder.glob(f"*/{RECORD}") if (path.parent / INDEX).is_file()]
    found.sort(key=lambda place: -(place / RECORD).stat().st_mtime)
    records = {place: read_record(place) for place in found}
    rows = []
    for place, record in records.items():
        when = time.strftime("%Y-%m-%d %H:%M", time.gmtime((place / RECORD).stat().st_mtime))
        lab = record.get("lab") or ("grid" if "grid" in record else "")
        said = str(record.get("answer") or record.get("what") or "")
        rows.append([Link(place.name, f"{place.name}/{INDEX}"), opening(said)[0], str(lab), when])
    table = Table(["study", "answer", "lab", "written (UTC)"], rows)
    sections = [Section("Studies", READ, table, brief=True)]
    studies = {place: record for place, record in records.items() if "lab" in record}
    if len(studies) > 1:
        runs = [_run(place, record) for place, record in studies.items()]
        widget = Widget("against", lambda: {"runs": runs}, ABOUT, SCRIPTS)
        sections.append(Section("Run against run", AGAINST, widget=widget))
    labs = {place.name: str(record["lab"]) for place, record in studies.items()}
    named = {place.name: record for place, record in studies.items()}
    return Page(MINE, counted(len(rows), "folder"), answer(rows), sections, picture=beside(named, labs, SIDE_BY_SIDE))


def answer(rows: Sequence[Sequence[str]]) -> str:
    """What the newest study says of itself."""
    if not rows:
        return ""
    name, said, *_ = rows[0]
    which = f"The newest of {counted(len(rows), 'study')}" if len(rows) > 1 else "The one study"
    return f"{which}, {name}: {said or 'nothing is said of it.'}"


def _run(place: Path, record: Mapping[str, Any]) -> dict[str, Any]:
    """For JSON: its spec, and the numbers of its first tables as (row, column, number)."""
    try:
        spec = read_yaml(place / SPEC, "spec")
    except Refusal:
        spec = {}
    tables, left = {}, MOST
    for section in record.get("sections", ()):
        some = list(numbers(section["table"])) if "table" in section else []
        if some and len(some) <= left:
            tables[section["title"]] = some
            left -= len(some)
    said = record.get("answer") or record.get("what") or ""
    return {"name": place.name, "lab": record["lab"], "answer": said, "spec": spec, "tables": tables}


def listed(study: Path) -> None:
    """Bring the page over all runs up to date, where a study was written among them; somebody else's page stays."""
    path = RUNS / INDEX
    if study.absolute().parent != RUNS.absolute():
        return
    if not path.exists() or f"<title>{MINE}</title>" in path.read_text(encoding="utf-8", errors="replace"):
        write_over(path, overview(RUNS).html())
