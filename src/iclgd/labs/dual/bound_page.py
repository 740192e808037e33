"""The page of `dual bound`: theorem 3.2 against the number of demonstrations."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from iclgd.labs.dual.bound import DELTA
from iclgd.labs.dual.run import SPLITS
from iclgd.labs.dual.spec import BoundSpec
from iclgd.report.charts import OWN, Looks, Series, lines
from iclgd.report.figures import COLOURS, band, figure, legend, styled
from iclgd.report.numbers import Number, counted, significant
from iclgd.report.page import Drawing, Entry, Page, Section, Table
from iclgd.report.widgets import Widget
from iclgd.study import Study

# what a quantity is called; one that is not here is shown by its own name
NAMES = {"split": "split t", "trace": "Tr K_S", "weight": "w = ‖W‖", "radius": "ρ", "gap": "measured gap"}
READ = (
    f"Medians over heads and queries, δ = {DELTA}; the gap is that of the held-out demonstrations. w, ρ and the best "
    "split are taken after the fact, where the theorem has them before: a generous reading."
)
TITLES = {
    "own": "The head's own split of scores into keys and query",
    "best": "The split with the smallest bound, head by head: keys divided, the query multiplied by one number",
}


@dataclass(frozen=True)
class Power(Number):
    """A number too large or small for a double, held by its logarithm: `48.3`, `330`, `10^37.4`."""

    note: str = "log10"

    def __str__(self) -> str:
        return power(self.value)


def power(log10: float) -> str:
    if math.isnan(log10):
        return "n/a"
    if math.isinf(log10):
        return "∞" if log10 > 0 else "0"
    return significant(10**log10, 3) if abs(log10) < 4 else f"10^{log10:.1f}"


class Sweep:
    """log₁₀ of the bound's quantities: [query, demonstrations, layer, head] by split and name."""

    def __init__(self, study: Study):
        found = [(cell.labels["query"], result) for cell, result in study.found() if result.arrays]
        self.queries, (_, first) = [query for query, _ in found], found[0]
        self.facts = first.facts
        self.counts = [int(count) for count in first.arrays[0].coordinates["demonstrations"]]
        self.names = [str(one.labels["quantity"]) for one in first.select(split=SPLITS[0])]
        self.values = {
            (split, name): study.stack("query", self.queries, quantity=name, split=split)
            for split in SPLITS
            for name in self.names
        }

    def quantile(self, split: str, name: str, q: float = 0.5) -> list[float]:
        """By number of demonstrations, over heads and queries that see one; nan where none does."""
        values = np.moveaxis(self.values[split, name], 1, 0).reshape(len(self.counts), -1)
        seen = [row[~np.isnan(row)] for row in values]
        return [float(np.quantile(row, q, method=_method(row))) if row.size else math.nan for row in seen]

    @property
    def above(self) -> int:
        """Cases in which the measured gap is above the bound."""
        return sum(int((self.values[s, "bound"] < self.values[s, "gap"]).sum()) for s in SPLITS)

    @property
    def cases(self) -> int:
        return sum(int(np.isfinite(self.values[s, "bound"]).sum()) for s in SPLITS)

    @property
    def blind(self) -> int:
        """Heads whose window leaves out all demonstrations, or all that are held out, at the largest number of them."""
        return int(np.isnan(self.values[SPLITS[0], "bound"][0, -1]).sum())


def page(study: Study) -> Page:
    sweep = Sweep(study)
    spec = study.spec
    assert isinstance(spec, BoundSpec)
    subtitle = f"{spec.what(sweep.facts, len(sweep.queries))} · {spec.held} held out"
    unseen = f" {counted(sweep.blind, 'head')} with no demonstration in view left out." if sweep.blind else ""
    sections = [
        Section(
            TITLES[split],
            f"{READ}{unseen}",
            table(sweep, split),
            Drawing("bound", lambda: drawing(sweep)) if split == SPLITS[0] else None,
            brief=True,
            widget=quantities(sweep, split),
        )
        for split in SPLITS
    ]
    return Page("The dual's generalisation bound", subtitle, answer(sweep), sections, picture=picture(sweep))


def picture(sweep: Sweep) -> Widget | None:
    """log₁₀ of the bound and of the gap against demonstrations: medians, and 10% to 90% of heads."""
    if len(sweep.counts) < 2:
        return None

    def made() -> list[Series]:
        return [
            Series(
                {"panel": f"log₁₀, {split} split", "name": NAMES.get(name, name), "role": OWN},
                *(sweep.quantile(split, name, q) for q in (0.5, 0.1, 0.9)),
            )
            for split in SPLITS
            for name in ("bound", "gap")
        ]

    about = "The bound and the measured gap against the number of demonstrations; bands hold 10% to 90% of heads."
    return lines(made, sweep.counts, Looks(colour="name", x="demonstrations", apart=True), about)


def quantities(sweep: Sweep, split: str) -> Widget | None:
    """Everything that the bound of a split is made of, as in its table, and the gap: log₁₀, but a count of tokens."""
    if len(sweep.counts) < 2:
        return None

    def made() -> Iterator[Series]:
        for name in sweep.names:
            title = NAMES.get(name, name)
            ends = [sweep.quantile(split, name, q) for q in (0.5, 0.1, 0.9)]
            if np.isfinite(ends[0]).any():  # not a split of infinity
                panel = title if name == "tokens" else f"log₁₀ {title}"
                yield Series({"panel": panel, "name": "median head", "quantity": title, "role": OWN}, *ends)

    about = f"What the bound of the {split} split is made of; medians, and bands that hold 10% to 90% of heads."
    return lines(lambda: list(made()), sweep.counts, Looks(colour="quantity", x="demonstrations", apart=True), about)


def table(sweep: Sweep, split: str) -> Table:
    columns = {name: sweep.quantile(split, name) for name in sweep.names}
    rows: list[list[Entry]] = [
        [
            str(count),
            *(Number(at[i], digits=0) if name == "tokens" else Power(at[i]) for name, at in columns.items()),
        ]
        for i, count in enumerate(sweep.counts)
    ]
    return Table(["demonstrations", *(NAMES.get(name, name) for name in sweep.names)], rows)


def answer(sweep: Sweep) -> str:
    """What the bound is worth where it is best: against the gap, and against the number of demonstrations."""
    bound, gap = (sweep.quantile("best", name) for name in ("bound", "gap"))
    if not math.isfinite(bound[-1]):
        return "No head sees both the demonstrations and those held out, so there is nothing to bound."
    held = (
        "The bound is never exceeded"
        if not sweep.above
        else f"The measured gap is above the bound in {sweep.above} of {sweep.cases} cases"
    )
    split = sweep.quantile("best", "split")[-1]
    flat = " (keys so short that the kernel is the same between any two)" if math.isinf(split) else ""
    ratio = np.nanmedian((sweep.values["best", "bound"] - sweep.values["best", "gap"])[:, -1])
    more = f" and {_moves(bound)} from {power(bound[0])} at {sweep.counts[0]}" if len(bound) > 1 else ""
    return (
        f"{held}; with the best split of each head{flat} it is {power(float(ratio))} times the measured gap in the "
        f"median head at {counted(sweep.counts[-1], 'demonstration')}{more}{f' to {power(bound[-1])}' if more else ''}"
        f"{f', while the gap {_moves(gap)} from {power(gap[0])} to {power(gap[-1])}' if more else ''}."
    )


def _method(row: np.ndarray) -> Any:
    """Between two infinite numbers there is no middle: then one of the values is taken."""
    return "linear" if np.isfinite(row).all() else "inverted_cdf"


def _moves(log10: Sequence[float]) -> str:
    """What a median does as demonstrations are added; where it turns on the way, only its ends are told."""
    steps = np.diff(log10)
    return "grows" if (steps > 0).all() else "falls" if (steps < 0).all() else "goes"


@styled
def drawing(sweep: Sweep) -> Figure:
    made, grid = figure(columns=len(SPLITS), width=4.2)
    for split, axes in zip(SPLITS, grid[0], strict=True):
        for name, colour in (("bound", COLOURS[0]), ("gap", COLOURS[1])):
            low, middle, high = (sweep.quantile(split, name, q) for q in (0.1, 0.5, 0.9))
            band(axes, [float(c) for c in sweep.counts], middle, low, high, colour, NAMES.get(name, name))
        axes.set(xscale="log", xlabel="demonstrations", title=f"{split} split, 10% to 90% of heads")
        axes.set_ylabel("log₁₀")
        axes.set_xticks(sweep.counts, [str(c) for c in sweep.counts])
        axes.minorticks_off()
    legend(made, grid[0])
    return made
