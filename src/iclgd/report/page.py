"""One description, many forms: a page shows itself on the terminal, as HTML, as Markdown, as JSON and in a notebook.

Pages are safe to open: they show text from data sets, so everything is escaped (iclgd.report.html says how).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from iclgd.errors import Refusal
from iclgd.report.columns import columns
from iclgd.report.found import Found
from iclgd.report.numbers import Number
from iclgd.report.widgets import Widget
from iclgd.spec import finite

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Link(str):
    """A text that leads to a page beside this one."""

    href: str

    def __new__(cls, text: str, href: str) -> "Link":
        made = super().__new__(cls, text)
        made.href = quote(href)
        return made


Entry = str | Number
Rows = Sequence[Sequence[Entry]]


@dataclass(frozen=True)
class Table:
    """A header and rows of texts and numbers."""

    header: Sequence[str]
    rows: Rows

    def texts(self) -> list[list[str]]:
        return [[entry if isinstance(entry, Link) else str(entry) for entry in row] for row in self.rows]

    def text(self, width: int | None = None) -> str:
        """For the terminal: a number is never cut to fit a window."""
        return columns(([list(self.header)] if any(self.header) else []) + self.texts(), width)

    def markdown(self) -> str:
        lines = [list(self.header), ["---"] * len(self.header), *self.texts()]
        return "\n".join("| " + " | ".join(_escaped(cell) for cell in line) + " |" for line in lines)

    def plain(self) -> dict[str, Any]:
        rows = [[entry.plain() if isinstance(entry, Number) else entry for entry in row] for row in self.rows]
        return {"header": list(self.header), "rows": finite(rows)}


def _escaped(cell: str) -> str:
    if isinstance(cell, Link):
        return f"[{_escaped(str(cell))}]({cell.href})"
    return re.sub(r"[\\|*`]", r"\\\g<0>", cell).replace("<", "&lt;").replace("\n", " ")


@dataclass(frozen=True, eq=False)
class Drawing:
    """A figure by name, drawn once and when it is first looked at."""

    name: str
    draw: "Callable[[], Figure]"

    @cached_property
    def figure(self) -> "Figure":
        return self.draw()

    @cached_property
    def svg(self) -> str:
        from iclgd.report.figures import svg

        return svg(self.figure)

    @cached_property
    def pdf(self) -> bytes:
        from iclgd.report.figures import pdf

        return pdf(self.figure)


@dataclass(frozen=True)
class Section:
    """A heading, what it shows (a table, a figure, a widget) and a sentence on how to read it.

    A ``brief`` section is part of what the terminal shows without being asked for more. Where a section has a widget
    the page shows that, and the figure below it as it would be printed.
    """

    title: str
    text: str = ""
    table: Table | None = None
    figure: Drawing | None = None
    brief: bool = False
    widget: Widget | None = None


@dataclass(frozen=True)
class Page:
    """What was run, what was found in one sentence, and everything behind it.

    ``picture`` shows the answer; without one, the numbers of the first brief table do. ``found`` has what the answer
    rests on, for who counts the answers of many studies. ``glossary`` has the words that tables use, ``sources`` the
    papers they are from, as BibTeX.
    """

    title: str
    subtitle: str
    answer: str
    sections: Sequence[Section]
    repeat: str = ""
    files: Mapping[str, str] = field(default_factory=dict)  # more texts to leave in the study's folder
    picture: Widget | None = None
    found: Sequence[Found] = ()
    glossary: Mapping[str, str] = field(default_factory=dict)
    sources: Sequence[str] = ()

    def with_repeat(self, repeat: str) -> "Page":
        return replace(self, repeat=repeat)

    def table(self, title: str = "") -> Table:
        """The table of that title, or the first there is."""
        tables = {s.title: s.table for s in reversed(self.sections) if s.table is not None}
        title = title or next(reversed(tables), "")
        if title not in tables:
            raise Refusal(f'there is no table "{title}". There are {"; ".join(reversed(tables)) or "none"}.')
        return tables[title]

    @property
    def drawings(self) -> dict[str, Drawing]:
        return {s.figure.name: s.figure for s in self.sections if s.figure is not None}

    # forms

    def text(self, full: bool = False, width: int = 80) -> str:
        """For the terminal: the answer first, then the brief sections, or all of them."""
        parts = [self.subtitle, wrapped(self.answer, width)] if self.answer else [self.subtitle]
        for section in self.sections:
            if section.table is None or not (full or section.brief):
                continue
            head = [section.title, wrapped(section.text, width)] if section.text and full else [section.title]
            parts.append("\n".join([*head, "", section.table.text(width)]) if section.table.rows else "\n".join(head))
        return "\n\n".join(parts)

    def markdown(self) -> str:
        parts = [f"# {self.title}", self.subtitle, f"**{self.answer}**" if self.answer else ""]
        for section in self.sections:
            parts += [f"## {section.title}", section.text, section.table.markdown() if section.table else ""]
            if section.figure is not None:
                parts.append(f"![{section.title}]({section.figure.name}.svg)")
        return "\n\n".join([*filter(None, parts), f"`{self.repeat}`" if self.repeat else ""]).rstrip() + "\n"

    def plain(self) -> dict[str, Any]:
        sections = [
            {"title": s.title, "text": s.text, **({"table": s.table.plain()} if s.table else {})}
            | ({"figure": s.figure.name} if s.figure else {})
            for s in self.sections
        ]
        told = {"title": self.title, "what": self.subtitle, "answer": self.answer, "sections": sections}
        return told | ({"found": finite([one.plain() for one in self.found])} if self.found else {})

    def html(self) -> str:
        """One self-contained file: nothing in it is from elsewhere, and a policy says so."""
        from iclgd.report.html import render

        return render(self)

    def _repr_html_(self) -> str:
        """In a notebook, in a frame of its own, so that its style stays its own."""
        from markupsafe import escape

        may = "allow-scripts allow-downloads"  # its own scripts, in an origin of their own
        return (
            f'<iframe srcdoc="{escape(self.html())}" sandbox="{may}" style="width:100%;height:48rem;border:0"></iframe>'
        )


def wrapped(text: str, width: int) -> str:
    from textwrap import fill

    return fill(text, width) if text else text
