"""Figures: one look for all of them, drawn without global state, as SVG, PDF and PNG."""

import io
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from iclgd.report.page import Drawing

P = ParamSpec("P")

# Okabe and Ito's colours, which people with any kind of colour vision tell apart
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
ROW = 4  # panels side by side
STYLE_OF_INIT = {"trained": "-", "random": "--", "embeddings": "-."}
STYLE: Any = {
    "font.size": 9,
    "font.family": "sans-serif",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "figure.titlesize": 11,
    "legend.frameon": False,
    "svg.fonttype": "path",
    "svg.hashsalt": "iclgd",
}


def styled(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    """Draw in the style of all figures, and leave the program's own settings alone."""

    @wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> Figure:
        with matplotlib.rc_context(STYLE):
            return draw(*args, **kwargs)

    return drawn


def figure(columns: int = 1, rows: int = 1, width: float = 4.6, height: float = 3.0) -> tuple[Figure, np.ndarray]:
    """A figure and its grid of axes (always two-dimensional)."""
    made = Figure(figsize=(width * columns, height * rows), layout="constrained")
    return made, made.subplots(rows, columns, squeeze=False)


def panels(count: int, width: float, height: float) -> tuple[Figure, list[Axes]]:
    """A figure of so many axes, in rows of at most four."""
    columns = min(count, ROW) or 1
    made, grid = figure(columns, max(1, -(-count // columns)), width, height)
    for left_over in grid.flat[count:]:
        left_over.remove()
    return made, list(grid.flat[:count])


def legend(made: Figure, axes: Iterable[Axes]) -> None:
    """One entry a label, whatever axes it comes from, outside the data."""
    entries: dict[str, Any] = {}
    for one in axes:
        entries |= {label: handle for handle, label in zip(*one.get_legend_handles_labels(), strict=True)}
    shown = (list(entries.values()), list(entries))
    columns = max(1, min(len(entries), int(made.get_figwidth() / 2.2)))
    made.legend(*shown, loc="outside lower center", ncols=columns, frameon=False, fontsize=8)


def band(
    axes: Axes,
    x: Sequence[float],
    middle: Sequence[float],
    low: Sequence[float],
    high: Sequence[float],
    colour: str,
    label: str,
) -> None:
    """A line with its interval."""
    axes.plot(x, middle, color=colour, label=label, linewidth=1.5, marker="o", markersize=2.2)
    axes.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0)


def svg(made: Figure) -> str:
    """The figure as SVG text, the same text for the same figure."""
    buffer = io.StringIO()
    with matplotlib.rc_context(STYLE):
        made.savefig(buffer, format="svg", metadata={"Date": None})
    made.set_layout_engine("none")  # parts have their places now: other forms of it need not look for them again
    text = buffer.getvalue()
    return text[text.index("<svg") :]


def pdf(made: Figure) -> bytes:
    """The figure as PDF, the same bytes for the same figure."""
    buffer = io.BytesIO()
    with matplotlib.rc_context(STYLE):
        made.savefig(buffer, format="pdf", metadata={"CreationDate": None})
    return buffer.getvalue()


def save(drawing: Drawing, folder: Path) -> None:
    """A figure as SVG, as PDF and as PNG."""
    (folder / f"{drawing.name}.svg").write_text(drawing.svg, encoding="utf-8")
    (folder / f"{drawing.name}.pdf").write_bytes(drawing.pdf)
    with matplotlib.rc_context(STYLE):
        drawing.figure.savefig(folder / f"{drawing.name}.png", dpi=200)
