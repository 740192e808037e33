"""The cells of a comparison brought together: values over seeds, queries and layers, their means and intervals."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from iclgd.labs.compare.spec import CompareSpec
from iclgd.metrics.statistics import corrected, intervals, paired_p_values
from iclgd.report.numbers import Number
from iclgd.results import Array
from iclgd.study import Study

Values = np.ndarray  # (seed, query, layer) or (seed, query), nan where there is nothing
PLACE = ("init", "task", "learner", "versus", "metric", "quantity", "null", "floor")


@dataclass(frozen=True)
class Estimate:
    """A mean, its 95% interval over queries and demonstration seeds, and its spread over seeds."""

    mean: float
    low: float
    high: float
    seed_std: float  # standard deviation of the seeds' means (ddof 1), as the papers print it

    def number(self, digits: int = 3) -> Number:
        return Number(self.mean, self.low, self.high, digits)


NOTHING = Estimate(*[float("nan")] * 4)


@dataclass(frozen=True)
class Paired:
    """One learner against another on the same queries: mean difference, p-value, layers that differ."""

    difference: float
    p_value: float
    layers: int  # layers whose corrected p-value is below 0.05
    of: int


@dataclass(frozen=True, eq=False)
class Comparison:
    """A study of `compare`, its arrays found by their labels."""

    study: Study

    @property
    def spec(self) -> CompareSpec:
        assert isinstance(self.study.spec, CompareSpec)
        return self.study.spec

    @cached_property
    def _index(self) -> dict[tuple[object, ...], dict[int, Array]]:
        """By init, task, learner, …: the array of every seed that has it."""
        found: dict[tuple[object, ...], dict[int, Array]] = {}
        for one in self.study.arrays():
            place = tuple(one.labels.get(name) for name in PLACE)
            found.setdefault(place, {})[int(one.labels["seed"])] = one
        return found

    def arrays(self, **labels: str) -> dict[int, Array]:
        """An array of every seed that has it."""
        return self._index.get(tuple(labels.get(name) for name in PLACE), {})

    def known(self, name: str) -> list[str]:
        """Every value that a label has in the study, in order."""
        place = PLACE.index(name)
        return list(dict.fromkeys(str(key[place]) for key in self._index if key[place] is not None))

    def diverged(self, init: str, task: str, learner: str) -> int:
        """In how many seeds a learner's training diverged."""
        labels = {"init": init, "task": task, "learner": learner}
        return sum(
            bool(result.facts.get("diverged"))
            for cell, result in self.study.found()
            if all(cell.labels.get(name) == value for name, value in labels.items())
        )

    # values

    def values(self, tasks: Sequence[str], position: str | None, **labels: str) -> Values:
        """Numbers over (seed, query[, layer]), queries of several tasks side by side; empty where there are none.

        nan in the seeds that do not have it, so that a seed is the same one in every task and for every learner.
        """
        stacks = []
        for task in tasks:
            found = self.arrays(task=task, **labels)
            if found:
                picked = {
                    seed: one.at(position=position) if "position" in one.axes else one for seed, one in found.items()
                }
                nothing = np.full_like(next(iter(picked.values())).values, np.nan, dtype=float)
                rows = [picked[seed].values.astype(float) if seed in picked else nothing for seed in self.spec.seeds]
                stacks.append(np.stack(rows))
        return np.concatenate(stacks, axis=1) if stacks else np.empty((0, 0))

    def estimate(self, tasks: Sequence[str], position: str | None = None, **labels: str) -> Estimate:
        """Mean over layers (where there are any), queries, seeds."""
        values = _known_seeds(self.values(tasks, position, **labels))
        if not values.size:
            return NOTHING
        return estimates((_mean(values, -1) if values.ndim == 3 else values)[..., None])[0]

    def by_layer(self, tasks: Sequence[str], position: str, **labels: str) -> list[Estimate]:
        values = self.values(tasks, position, **labels)
        return estimates(_known_seeds(values)) if values.size else []

    def paired(self, tasks: Sequence[str], a: str, b: str, position: str, **labels: str) -> Paired:
        """Two learners query by query, averaged over seeds first, and layer by layer with correction.

        Only where both are known: a seed in which one of them diverged is left out of the other, too.
        """
        both = [t for t in tasks if all(self.arrays(task=t, learner=name, **labels) for name in (a, b))]
        one, two = (self.values(both, position, learner=name, **labels) for name in (a, b))
        if one.shape != two.shape or not one.size:
            return Paired(float("nan"), float("nan"), 0, 0)
        known = np.isfinite(one) & np.isfinite(two)
        one, two = (_mean(np.where(known, values, np.nan), 0) for values in (one, two))
        by_layer = corrected(paired_p_values(one, two))
        one, two = _mean(one, -1)[:, None], _mean(two, -1)[:, None]
        p_value = float(paired_p_values(one, two)[0])
        return Paired(float(_mean(one - two, 0)[0]), p_value, int((by_layer < 0.05).sum()), len(by_layer))

    def recall(self, init: str, task: str, learner: str) -> tuple[int, ...]:
        """Rec2FTP's four counts, added up over seeds."""
        found = self.arrays(init=init, task=task, learner=learner, quantity="Rec2FTP")
        return tuple(int(count) for count in sum((one.values for one in found.values()), np.zeros(4, dtype=int)))


def estimates(values: np.ndarray) -> list[Estimate]:
    """Of (seed, query, column) values, one for each column."""
    lows, highs = intervals(values)
    found = []
    for column, (low, high) in enumerate(zip(lows, highs, strict=True)):
        means = _mean(values[..., column], -1)
        std = float(np.nanstd(means, ddof=1)) if np.isfinite(means).sum() > 1 else float("nan")
        found.append(Estimate(float(_mean(values[..., column].ravel(), 0)), float(low), float(high), std))
    return found


def _known_seeds(values: Values) -> Values:
    """The seeds in which anything is known; all of them where nothing is."""
    known = np.isfinite(values).any(tuple(range(1, values.ndim)))
    return values[known] if known.any() else values


def _mean(values: np.ndarray, axis: int) -> np.ndarray:
    """The mean of what is known; nan where nothing is."""
    known = np.isfinite(values)
    count = known.sum(axis)
    total = np.where(known, values, 0).sum(axis)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)
