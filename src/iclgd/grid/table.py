"""A pivot of a study's cells: any number that has labels, its mean over draws and tasks, and the interval.

A number is what the index has of a cell: the mean of one array over queries and layers. Two numbers that differ in
anything but the labels that are averaged over are never put into one mean: that label has to be said. An interval over
draws is of these means, and so of the queries that were asked: where every draw asks the same ones, as labs on models
do, it covers other draws and not other queries (pages of those labs cover both). One of a metric of this package keeps
to what that can be.
"""

import csv
import io
import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from iclgd.errors import Refusal, visible
from iclgd.grid.plan import Plan
from iclgd.metrics import METRICS, OWN
from iclgd.metrics.estimates import Estimate, estimate
from iclgd.registry import suggest
from iclgd.report.numbers import Size
from iclgd.report.page import Table
from iclgd.results import Label
from iclgd.spec import finite
from iclgd.store.cells import NAME, Store

OVER = ("task", "seed")  # what means are over unless said: tasks, and draws within them
QUANTITIES = ("metric", "quantity", "fact")  # labels that say what a number is
Labels = Mapping[str, Label]
Place = tuple[Label | None, ...]
NONE = "–"


@dataclass(frozen=True)
class Asked:
    """Labels along rows and columns, values that labels must have (none: not there), and what means are over."""

    rows: Sequence[str]
    columns: Sequence[str] = ()
    where: Mapping[str, str | None] = field(default_factory=dict)
    value: str | None = None
    over: Sequence[str] = OVER

    @property
    def shown(self) -> tuple[str, ...]:
        return (*self.rows, *self.columns)

    def takes(self, labels: Labels) -> bool:
        """Whether a number with these labels is asked for."""
        if self.value is not None and self.value not in {str(labels[n]) for n in QUANTITIES if n in labels}:
            return False
        return all(_is(labels.get(name), value) for name, value in dict(self.where).items())

    def place(self, labels: Labels, names: Sequence[str]) -> Place:
        return tuple(labels.get(name) for name in names)


def _is(found: Label | None, wanted: str | None) -> bool:
    return found is None if wanted is None else str(found) == wanted


def numbers(plan: Plan, value: str | None = None) -> list[tuple[str, dict[str, Label], float]]:
    """Every number of the study's cells that are done, of one quantity or of all: cell, labels and value.

    A cell that is damaged is refused: means without it would look like those of a smaller study.
    """
    from iclgd.store.index import opened

    if not plan.done:
        raise Refusal("no cell of this study is done: run it first.")
    with opened(Store(plan.store)) as index:
        if bad := sorted(index.damaged() & plan.done):
            raise _damaged(plan.store, bad)
        kinds = index.labels()
        ids = [i for i, has in kinds.items() if value is None or value in {str(has.get(n)) for n in QUANTITIES}]
        names, found, values = index.numbers(ids)
    by_cell: dict[str, list[tuple[int, float]]] = {}
    for name, i, number in zip(names.tolist(), found.tolist(), values.tolist(), strict=True):
        by_cell.setdefault(name, []).append((i, number))
    return [
        (key[:NAME], {**labels, **kinds[i]}, number)
        for _, key, labels in plan.cells()  # in the study's own order
        for i, number in by_cell.get(key[:NAME], ())
    ]


def _damaged(store: Path, names: Sequence[str]) -> Refusal:
    path = Store(store).path(names[0])
    which = f"the cell {path}" if len(names) == 1 else f"{len(names)} cells, {path} the first of them,"
    check = shlex.join(["iclgd", "store", "check", "--store", str(store)])
    return Refusal(f"{which} cannot be read: `{check}` says why; remove what it names and run the study again.")


def known(plan: Plan) -> Table:
    """The labels that numbers of this study have, and their values."""
    values: dict[str, dict[str, None]] = {}
    for _, labels, _ in numbers(plan):
        for name, value in labels.items():
            values.setdefault(name, {})[str(value)] = None
    return Table(["label", "values"], [[name, ", ".join(list(found)[:30])] for name, found in values.items()])


def _known_labels(found: Sequence[tuple[str, Labels, float]], asked: Asked, plan: Plan) -> None:
    """Refuse a quantity, label or value that no number has, and name it."""
    if not found:
        names = {str(labels[n]) for _, labels, _ in numbers(plan) for n in QUANTITIES if n in labels}
        raise Refusal(f'no number of this study is called "{asked.value}". {_perhaps(asked.value or "", names)}')
    values: dict[str, set[str]] = {}
    for _, labels, _ in found:
        for name, value in labels.items():
            values.setdefault(name, set()).add(str(value))
    wanted = {**dict.fromkeys(asked.shown, None), **dict(asked.where)}
    for name, chosen in wanted.items():
        if name not in values and (name in asked.shown or chosen is not None):
            raise Refusal(f'no number that is asked for has the label "{name}". {_perhaps(name, set(values))}')
        if chosen is not None and chosen not in values[name]:
            raise Refusal(f'no number that is asked for has {name}="{chosen}". {_perhaps(chosen, values[name])}')


def _perhaps(name: str, known: set[str]) -> str:
    return f"{suggest(name, sorted(known))}`iclgd study table` without options lists them."


class Pivot:
    """The table that was asked for."""

    def __init__(self, plan: Plan, asked: Asked):
        self.asked, self.unfinished = asked, plan.unfinished
        self._groups: dict[tuple[Place, Place], dict[tuple[Label | None, ...], float]] = {}
        self._labels: dict[tuple[Place, Place], dict[str, Label]] = {}
        seen: set[tuple[str, Place]] = set()
        every_one = numbers(plan, asked.value)
        _known_labels(every_one, asked, plan)
        found = [(name, labels, value) for name, labels, value in every_one if asked.takes(labels)]
        if not found:
            raise Refusal("no number of this study has these labels: `iclgd study table` without options lists them.")
        every = sorted({name for _, labels, _ in found for name in labels})
        for name, labels, value in found:
            where = asked.place(labels, asked.rows), asked.place(labels, asked.columns)
            mine = (name, tuple(labels.get(one) for one in every if one != "part"))
            if mine in seen:  # one cell in two parts
                continue
            seen.add(mine)
            self._unmixed(self._labels.setdefault(where, dict(labels)), labels)
            self._groups.setdefault(where, {})[asked.place(labels, asked.over)] = value

    def _unmixed(self, first: Mapping[str, Label | None], labels: Labels) -> None:
        """Refuse to average over a label that nobody asked to average over."""
        for name in {**first, **labels}:
            if name not in (*self.asked.shown, *self.asked.over) and first.get(name) != labels.get(name):
                one, other = (_said(each.get(name)) for each in (first, labels))
                raise Refusal(
                    f"a mean would be over {name} ({one} and {other}): put {name} into `rows` or `columns`, or choose "
                    f"one with `where` {name}={'' if one == NONE else one}."
                )

    def _order(self, axis: int) -> list[Place]:
        return list(dict.fromkeys(place[axis] for place in self._groups))

    def _estimate(self, row: Place, column: Place) -> Estimate | None:
        """Over tasks where there are several, else over draws."""
        found = self._groups.get((row, column))
        if found is None:
            return None
        *outer, inner = (list(dict.fromkeys(place[i] for place in found)) for i in range(len(self.asked.over)))
        values = np.full((max(1, len(outer[0]) if outer else 1), len(inner), 1), np.nan)
        for place, number in found.items():
            values[outer[0].index(place[0]) if outer else 0, inner.index(place[-1]), 0] = number
        low, high = self._bounds(row, column)
        if (values < low).any() or (values > high).any():  # somebody else's number of that name
            return estimate(values)
        within = estimate(values, (low, high) if np.isfinite([low, high]).all() else None)
        return replace(within, low=max(within.low, low)) if np.isfinite(within.low) else within

    def _bounds(self, row: Place, column: Place) -> tuple[float, float]:
        """What the number in a place can be, where it is a metric of this package."""
        labels, ours = self._labels[row, column], {name for name, *_ in OWN}
        named = [str(labels[name]) for name in QUANTITIES if str(labels.get(name)) in ours]
        low, high = METRICS[named[0]].bounds if named else (-np.inf, np.inf)
        return float(low), float(high)

    def table(self) -> Table:
        """Rows by columns, a mean and its 95% interval in each place."""
        columns = self._order(1)
        header = [
            *self.asked.rows,
            *(" ".join(map(_said, column)) or (self.asked.value or "mean") for column in columns),
        ]
        rows = []
        for row in self._order(0):
            found = [self._estimate(row, column) for column in columns]
            numbers = [Size(one.mean, one.low, one.high, digits=3) if one is not None else "" for one in found]
            rows.append([*map(_said, row), *numbers])
        return Table(header, rows)

    def kinds(self) -> str:
        """What the intervals are over, and how many cells are done if some are not."""
        found = {one.kind for r, c in self._groups if (one := self._estimate(r, c)) is not None}
        draws = f"{self.asked.over[-1]}s (not over queries that these share)"
        over = {"tasks": f"{self.asked.over[0]}s", "draws": draws}
        said = [f"over {over[kind]}" for kind in ("tasks", "draws") if kind in found]
        kinds = f"Brackets are 95% intervals {' or '.join(said)}." if said else "One number a place has no interval."
        return " ".join(filter(None, [kinds, self.unfinished]))

    def records(self) -> list[dict[str, Any]]:
        """One line a place: its labels, the mean, the interval and what it is over."""
        found = []
        for row, column in self._groups:
            one = self._estimate(row, column)
            assert one is not None
            labels = dict(zip(self.asked.shown, (*row, *column), strict=True))
            ends = {"mean": one.mean, "low": one.low, "high": one.high}
            found.append({**labels, **finite(ends), "over": one.kind, "numbers": len(self._groups[row, column])})
        return found

    def written(self, form: str) -> str:
        """As text, markdown or latex the table; as csv or json its records."""
        if form == "json":
            return json.dumps(self.records(), ensure_ascii=False, allow_nan=False, indent=1)
        if form == "csv":
            records = self.records()
            return "\n".join(map(_csv, [list(records[0]), *(list(record.values()) for record in records)]))
        table = self.table()
        return {"markdown": table.markdown, "latex": lambda: latex(table), "text": table.text}[form]()

    def parquet(self) -> bytes:
        try:
            import pyarrow as arrow
            import pyarrow.parquet as parquet
        except ImportError:
            raise Refusal('writing Parquet needs pyarrow: pip install "iclgd[data]".') from None
        records = self.records()
        mixed = {
            name for name in self.asked.shown if len({type(record[name]) for record in records} - {type(None)}) > 1
        }
        columns = {n: [str(r[n]) if n in mixed else r[n] for r in records] for n in records[0]}
        sink = io.BytesIO()
        parquet.write_table(arrow.table(columns), sink)
        return sink.getvalue()


def _said(value: Label | None) -> str:
    return NONE if value is None else str(value)


def _csv(cells: Sequence[Any]) -> str:
    """One line; a text with any kind of line break in it stands in quotes."""
    text = io.StringIO()
    csv.writer(text).writerow(cells)
    return text.getvalue().removesuffix("\r\n")


def latex(table: Table) -> str:
    """A tabular with the rules of booktabs.

    Without T1 fonts a bare `|`, `<` or `>` is another letter, and the end of a row takes a `[` or `*` behind it for its
    own argument.
    """
    special = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", NONE: "--"}
    special |= {"|": r"\textbar{}", "<": r"\textless{}", ">": r"\textgreater{}", "\n": " "}
    special |= {letter: f"\\{letter}" for letter in "&%$#_{}"}

    def line(cells: Sequence[str]) -> str:
        texts = ["".join(special.get(letter, letter) for letter in visible(cell)) for cell in cells]
        guard = "{}" if texts[0].lstrip().startswith(("[", "*")) else ""
        return guard + " & ".join(texts) + r" \\"

    body = [line(list(table.header)), r"\midrule", *map(line, table.texts())]
    return "\n".join(
        [rf"\begin{{tabular}}{{{'l' * len(table.header)}}}", r"\toprule", *body, r"\bottomrule", r"\end{tabular}"]
    )
