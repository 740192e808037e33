"""A study on the terminal: the answer first, then what was run, then the table it rests on, in the window's width."""

from textwrap import fill

from iclgd.report.numbers import counted
from iclgd.report.page import Page
from iclgd.report.terminal import window

NARROW = 80  # columns where nobody says how wide the window is
ROWS = 16  # of a table in a summary; more of them hide the answer


def summary(page: Page, full: bool = False) -> str:
    """The answer and the brief sections, or with ``full`` all of them; a page without an answer is a list, as it is."""
    width = window() or NARROW
    parts = [fill(text, width) for text in (page.answer, page.subtitle) if text]
    for section in page.sections:
        if section.table is None or not (full or section.brief):
            continue
        head = [fill(text, width) for text in (section.title, section.text if full else "") if text]
        lines = section.table.text(width).splitlines() if section.table.rows else []
        shown = lines if full or not page.answer else _first(lines)
        parts.append("\n".join([*head, *([""] if shown else []), *shown]))
    return "\n\n".join(parts)


def _first(lines: list[str]) -> list[str]:
    """A table's first rows below its header, and how many lines are left out."""
    if len(lines) <= ROWS + 2:
        return lines
    return [*lines[: ROWS + 1], f"… and {counted(len(lines) - ROWS - 1, 'line')} more (--full)"]
