"""Charts of numbers with intervals, among which a reader chooses: dots beside their nulls, lines in small panels."""

import base64
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from iclgd.report.colours import HOW_MUCH, PLACES, USUAL, slots
from iclgd.report.numbers import Number
from iclgd.report.page import Table
from iclgd.report.widgets import Widget

FEW = 4096  # numbers that are written out; more are packed
STEPS = 65534  # of a packed number between the least and the largest; one code is kept for what is not known
DIGITS = 5
OWN, NULL = "own", "null"
Numbers = Sequence[float] | np.ndarray


@dataclass(frozen=True, eq=False)
class Series:
    """Numbers of one thing along the chart's points, with what it is called in every way one can choose by.

    A label that is not there is true of every choice: a learner without a rate is shown at any.
    """

    labels: Mapping[str, str]
    values: Numbers
    low: Numbers = ()
    high: Numbers = ()


@dataclass(frozen=True)
class Looks:
    """How series are laid out.

    ``choose``: labels that have a selector, and how it is called; ``panel``: the label that has a panel of its own for
    each value; ``name``: the label by which a row or line is told apart; ``own``: the label that is "own" for what the
    chart is about and "null" for what stands beside it; ``log``: panels with a logarithmic scale; ``apart``: points are
    sizes, along a logarithmic axis, and a line goes through those that its series has.
    """

    choose: Mapping[str, str] = field(default_factory=dict)
    panel: str = "panel"
    name: str = "name"
    own: str = "role"
    colour: str = "panel"
    x: str = ""
    y: str = ""
    log: Sequence[str] = ()
    apart: bool = False


def dots(make: Callable[[], Sequence[Series]], looks: Looks, about: str) -> Widget:
    """A dot with its interval for every series, one below the other."""
    return Widget("dots", lambda: plain(make(), (), looks), about)


def lines(make: Callable[[], Sequence[Series]], points: Sequence[float], looks: Looks, about: str) -> Widget:
    """A line with its band for every series, in a panel for each of what they measure."""
    return Widget("lines", lambda: plain(make(), points, looks), about)


def plain(series: Sequence[Series], points: Sequence[float], looks: Looks) -> dict[str, Any]:
    """For JSON: labels as codes of names, numbers as rows of one array; limits only of the rows that have any."""
    names = list(dict.fromkeys(name for one in series for name in one.labels))
    codes: dict[str, Any] = {}
    known: dict[str, dict[str, int]] = {name: {} for name in names}
    for name in names:
        places = known[name]
        codes[name] = small([places.setdefault(one.labels.get(name, ""), len(places)) for one in series])
    limited = [i for i, one in enumerate(series) if len(one.low) and np.isfinite(one.low).any()]
    layout: dict[str, Any] = {
        name: getattr(looks, name) for name in ("panel", "name", "own", "colour", "x", "y", "apart")
    }
    layout["log"], layout["slots"] = list(looks.log), slots(known.get(looks.colour, ()))
    return {
        "points": list(points),
        "count": len(series),
        "choose": dict(looks.choose),
        **layout,
        "names": {name: list(places) for name, places in known.items()},
        "codes": codes,
        "limited": limited,
        "values": packed(_block([one.values for one in series])),
        "low": packed(_block([series[i].low for i in limited])),
        "high": packed(_block([series[i].high for i in limited])),
    }


def _block(rows: Sequence[Numbers]) -> np.ndarray:
    return np.concatenate([np.asarray(row, dtype=float) for row in rows]) if rows else np.empty(0)


def small(codes: Sequence[int]) -> Any:
    """Few codes as they are, many as 8 bits each, or 16 where that is not enough."""
    if len(codes) <= FEW:
        return list(codes)
    return base64.b64encode(np.array(codes, dtype="u1" if max(codes) < 256 else "<u2").tobytes()).decode()


def packed(values: np.ndarray) -> Any:
    """Few numbers to five digits; many as 16 bits each between the least and the largest: 1/65534 of the range."""
    if len(values) <= FEW:
        return exact(values)
    known = np.isfinite(values)
    low, high = (float(values[known].min()), float(values[known].max())) if known.any() else (0.0, 0.0)
    scaled = np.where(known, (values - low) / ((high - low) or 1.0) * STEPS, STEPS + 1)
    codes = np.rint(scaled).astype("<u2")
    return {"low": low, "high": high, "steps": STEPS, "codes": base64.b64encode(codes.tobytes()).decode()}


def exact(values: np.ndarray) -> list[float | None]:
    """Numbers to five digits each; none where nothing is known."""
    return [float(f"{v:.{DIGITS}g}") if np.isfinite(v) else None for v in values]


def picture(table: Table, first: str = "") -> Widget | None:
    """The numbers of a table as dots: a column at a time, rows that are set in, or called null, as nulls.

    ``first``: the column that is shown before one is chosen.
    """
    found = sorted(_rows(table), key=lambda one: one.labels["column"] != first)
    if len({one.labels["name"] for one in found}) < 2:
        return None
    columns = dict.fromkeys(one.labels["column"] for one in found)
    chosen = {"choose": {"column": "what is shown"}} if len(columns) > 1 else {"x": next(iter(columns))}
    looks = Looks(colour="learner", **chosen)
    return dots(lambda: found, looks, f"Dots with 95% intervals: {', '.join(columns)}.")


def _rows(table: Table) -> list[Series]:
    found, few = [], len({_learner(str(row[0])) for row in table.rows if _role(str(row[0])) == OWN}) <= PLACES
    for row in table.rows:
        name, role = str(row[0]), _role(str(row[0]))
        learner = _learner(name) if role == OWN else ""
        learner = learner if few or learner in USUAL else ""  # of many that nobody knows none has a colour of its own
        for title, entry in zip(list(table.header)[1:], row[1:], strict=False):
            if isinstance(entry, Number) and math.isfinite(entry.value):
                labels = {"column": title, "name": name.strip(), "role": role, "learner": learner}
                found.append(Series(labels, [entry.value], [entry.low], [entry.high]))
    return found


def _role(row: str) -> str:
    return NULL if row.startswith(("  ", "null", "─")) else OWN


def _learner(row: str) -> str:
    """Who a row is about, by whom it has its colour: `gd 0.001, all at once` is a gd."""
    kind, first = HOW_MUCH.sub("", row), row.strip().split(" ")[0]
    return kind if kind in USUAL else first if first in USUAL else kind
