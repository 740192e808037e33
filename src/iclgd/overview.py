"""One page over all studies of a folder: what was asked, what was found, and where its page lies."""

import time
from pathlib import Path

from iclgd.files import write_over
from iclgd.report.numbers import counted
from iclgd.report.page import Link, Page, Section, Table
from iclgd.study import RECORD, read_record

INDEX, RUNS = "index.html", Path("runs")  # where studies are written that name no place
MINE = "What was run here"  # the title, by which a page that this program wrote is known
READ = "The newest first. A grid of studies has a page of its own, which lists its parts."


def overview(folder: Path) -> Page:
    """The studies and grids whose records lie in the folders of a folder."""
    found = [path.parent for path in folder.glob(f"*/{RECORD}") if (path.parent / INDEX).is_file()]
    rows = []
    for place in sorted(found, key=lambda place: -(place / RECORD).stat().st_mtime):
        record = read_record(place)
        when = time.strftime("%Y-%m-%d %H:%M", time.gmtime((place / RECORD).stat().st_mtime))
        lab = record.get("lab") or ("grid" if "grid" in record else "")
        said = record.get("answer") or record.get("what") or ""
        rows.append([Link(place.name, f"{place.name}/{INDEX}"), str(lab), when, str(said)])
    table = Table(["study", "lab", "written (UTC)", "answer"], rows)
    return Page(MINE, counted(len(rows), "folder"), "", [Section("Studies", READ, table, brief=True)])


def listed(study: Path) -> None:
    """Bring the page over all runs up to date, where a study was written among them; somebody else's page stays."""
    path = RUNS / INDEX
    if study.absolute().parent != RUNS.absolute():
        return
    if not path.exists() or f"<title>{MINE}</title>" in path.read_text(encoding="utf-8", errors="replace"):
        write_over(path, overview(RUNS).html())
