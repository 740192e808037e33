"""Learners where their weights have gone equally far, rather than at one rate.

At one rate two learners go different distances, and a likeness that follows the distance says little by itself. A draw
ran a learner at some rates; between two of them, and never beyond, its likeness is taken from the straight line in
log ‖ΔW‖, query by query and layer by layer, so that differences are paired as everywhere else.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np

from iclgd.choices import Choice
from iclgd.labs.compare.absent import said_of
from iclgd.labs.compare.sweeps import swept, swept_metrics
from iclgd.labs.compare.tables import Tables
from iclgd.labs.compare.view import Comparison, number
from iclgd.metrics.differences import Difference, difference, holm
from iclgd.metrics.estimates import Bounds, estimate
from iclgd.report.numbers import Number, Size, p_value
from iclgd.report.page import Entry, Table

TITLE = "At equal size of the weight change"
NOTE = (
    "Each pair of learners where both have changed their weights by one length ‖ΔW‖: the middle of what most draws of "
    "both reached, whatever the likeness is there. Likeness is taken from the straight line in log ‖ΔW‖ between the "
    "two nearest rates of a draw, never beyond them; rates far apart make it rough. First minus second is paired by "
    "task, draw and query; p-values are corrected for all rows (Holm). There is no such table at equal training loss: "
    "one learner's is of other things than another's."
)


@dataclass(frozen=True)
class Curves:
    """A learner at several rates, in every draw of every task: how far it went, and how alike it was there."""

    sizes: np.ndarray  # (rate, task, seed), nan where there is nothing
    values: np.ndarray  # (rate, task, seed, query, layer)

    def known(self, task: int, seed: int) -> np.ndarray:
        """The rates of one draw that went anywhere and have a likeness, from the smallest change to the largest."""
        sizes, values = self.sizes[:, task, seed], self.values[:, task, seed]
        order = np.argsort(sizes)
        return order[(sizes > 0)[order] & np.isfinite(values).any((1, 2))[order]]

    def reach(self) -> np.ndarray:
        """(end, task, seed): the smallest and the largest size of every draw; nan where there are not two."""
        ends = np.full((2, *self.sizes.shape[1:]), np.nan)
        for draw in np.ndindex(*self.sizes.shape[1:]):
            rates = self.known(*draw)
            if len(rates) > 1:
                ends[:, *draw] = self.sizes[rates[[0, -1]], *draw]
        return ends

    def at(self, size: float) -> np.ndarray:
        """(task, seed, query, layer): the likeness at a size, nan in draws that did not reach it or went beyond."""
        found = np.full(self.values.shape[1:], np.nan)
        low, high = self.reach()
        for draw in map(tuple, np.argwhere((low <= size) & (size <= high)).tolist()):
            rates = self.known(*draw)
            logs = np.log(self.sizes[rates, *draw])
            right = int(np.clip(np.searchsorted(logs, np.log(size)), 1, len(rates) - 1))
            apart = logs[right] - logs[right - 1]
            share = (np.log(size) - logs[right - 1]) / apart if apart else 0.0
            one, two = self.values[rates[right - 1], *draw], self.values[rates[right], *draw]
            found[*draw] = (1 - share) * one + share * two
        return found


def common_size(one: Curves, two: Curves) -> float | None:
    """The middle, in logarithms, of the stretch of sizes that most draws of both reached; of several the longest."""
    ends = np.stack([one.reach(), two.reach()])
    low, high = (np.log(found).ravel() for found in (ends[:, 0].max(0), ends[:, 1].min(0)))
    both = low < high  # False where one is nan
    edges = np.unique([low[both], high[both]])
    stretches = list(pairwise(edges))
    if not stretches:
        return None
    begin, end = max(stretches, key=lambda s: (((low <= s[0]) & (s[1] <= high)).sum(), s[1] - s[0]))
    return float(np.exp((begin + end) / 2))


# of a comparison


@dataclass(frozen=True)
class Pair:
    """Two learners at one size: both means, their difference, and of how many draws, where not of all."""

    title: str
    size: float
    means: tuple[float, float]
    apart: Difference
    part: str


def at_equal_size(tables: Tables) -> Table:
    """The main likenesses of every pair of learners with several rates, at one ‖ΔW‖."""
    found = {name: list(_pairs(tables, name)) for name in swept_metrics(tables.comparison)}
    corrected = iter(holm([pair.apart for some in found.values() for pair in some]))
    header = ["", "‖ΔW‖", "first", "second", "difference", "p", "first is"]
    rows: list[list[Entry]] = []
    for name, some in found.items():
        rows += [[f"─ {tables.comparison.metrics[name].title}", *[""] * (len(header) - 1)]] if some else []
        for pair in some:
            one = next(corrected)
            verdict = "undecided" if pair.part else one.verdict  # what is left may be a selection
            beside = [Number(mean) for mean in pair.means]
            title, size = f"{pair.title}{pair.part}", Size(pair.size, digits=3)
            rows.append([title, size, *beside, number(one.estimate), p_value(one.corrected), verdict])
    return Table(header, rows)


def _pairs(tables: Tables, metric: str) -> Iterator[Pair]:
    comparison = tables.comparison
    curves: dict[str, Curves] = {}
    for name, chosen in swept(comparison).items():
        if (found := curves_of(tables, chosen, metric)) is not None:
            curves[name] = found
    for second, first in combinations(curves, 2):
        size = common_size(curves[first], curves[second])
        if size is None:
            continue
        values = np.stack([curves[name].at(size) for name in (first, second)])
        values = np.where(np.isfinite(values).all(0), values, np.nan)  # a layer counts where both know it
        one, two = (over_layers(part) for part in values)
        part = said_of(comparison, np.isfinite(one).any(-1).sum(1).tolist())
        means = [estimate(side).mean for side in (one, two)]
        apart = difference(one, two, _bounds(comparison, metric))
        yield Pair(f"{first} − {second}", size, (means[0], means[1]), apart, f", {part}" if part else "")


def curves_of(tables: Tables, chosen: Sequence[Choice], metric: str) -> Curves | None:
    """A learner's curves from the cells of its rates; none where fewer than two rates have the metric."""
    comparison, tasks = tables.comparison, tables.comparison.spec.task
    sizes, values = [], []
    for choice in chosen:
        labels = {"init": tables.first, "learner": choice.label}
        changes = comparison.values(tasks, None, **labels, quantity="weight change")
        likeness = comparison.values(tasks, tables.position, **labels, metric=metric)
        if changes.size and likeness.size:
            sizes.append(np.linalg.norm(changes, axis=-1))
            values.append(likeness)
    return Curves(np.stack(sizes), np.stack(values)) if len(sizes) > 1 else None


def _bounds(comparison: Comparison, metric: str) -> Bounds | None:
    bounds = comparison.bounds({"metric": metric})
    return None if bounds is None else (bounds[0] - bounds[1], bounds[1] - bounds[0])


def over_layers(values: np.ndarray) -> np.ndarray:
    known = np.isfinite(values)
    return np.where(known.any(-1), np.where(known, values, 0).sum(-1) / np.maximum(known.sum(-1), 1), np.nan)
