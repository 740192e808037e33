"""Pages that are safe to open: they show text from data sets, so everything is escaped and nothing runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from matplotlib.figure import Figure

from iclgd.report.figures import svg


@dataclass(frozen=True)
class Section:
    """A heading, what it shows (a table, a figure or both) and a sentence on how to read it."""

    title: str
    text: str = ""
    header: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    figure: Figure | None = None

    @property
    def drawing(self) -> Markup:
        """Our own figure, drawn by matplotlib, which escapes the text in it."""
        return Markup(svg(self.figure)) if self.figure is not None else Markup("")


def write_page(path: Path, title: str, subtitle: str, sections: Sequence[Section], repeat: str) -> None:
    """One self-contained HTML file: no script, no style or image from elsewhere, and a policy that says so."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"), autoescape=True, undefined=StrictUndefined
    )
    text = environment.get_template("page.html").render(
        title=title, subtitle=subtitle, sections=sections, repeat=repeat
    )
    path.write_text(text, encoding="utf-8")
