"""The cells of a comparison brought together: values over tasks, seeds, queries and layers; estimates, differences."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from iclgd.labs.compare.spec import WHOLE, CompareSpec
from iclgd.metrics import METRICS
from iclgd.metrics.compared import Metric
from iclgd.metrics.differences import (
    Count,
    Difference,
    benjamini_hochberg,
    bounds_apart,
    count,
    differences,
    recall_over_base,
)
from iclgd.metrics.estimates import Bounds, Estimate, estimates, intervals, shares
from iclgd.metrics.margins import over_draws
from iclgd.nulls import NULLS
from iclgd.report.numbers import Number
from iclgd.results import Array
from iclgd.study import Study

Values = np.ndarray  # (task, seed, query, layer) or (task, seed, query), nan where there is nothing
PLACE = ("init", "task", "learner", "versus", "metric", "quantity", "null", "floor")
Labels = Mapping[str, str]
Made = TypeVar("Made")


def number(found: Estimate, digits: int = 3) -> Number:
    """An estimate as a table shows it; one seed's interval is over queries only, which the page says once."""
    return Number(found.mean, found.low, found.high, digits)


def is_control(null: str) -> bool:
    """Whether what stands under a null's label is a positive control."""
    kind = null.split()[0]
    return kind in NULLS and bool(getattr(NULLS[kind], "control", False))


def title_of(null: str) -> str:
    """What a null is called where people read it, with the options that are not the default."""
    kind, _, options = null.partition(" ")
    title = str(NULLS[kind].title) or kind if kind in NULLS else kind
    return f"{title} ({options})" if options else title


@dataclass(frozen=True, eq=False)
class Comparison:
    """A study of `compare`, its arrays found by their labels."""

    study: Study

    @property
    def spec(self) -> CompareSpec:
        assert isinstance(self.study.spec, CompareSpec)
        return self.study.spec

    @cached_property
    def metrics(self) -> dict[str, Metric]:
        return {choice.label: choice.make() for choice in self.spec.metrics}

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

    @cached_property
    def _known(self) -> dict[str, list[str]]:
        columns = zip(*self._index, strict=True) if self._index else [()] * len(PLACE)
        return {
            name: [str(value) for value in dict.fromkeys(column) if value is not None]
            for name, column in zip(PLACE, columns, strict=True)
        }

    @cached_property
    def _shared(self) -> dict[Hashable, Any]:
        return {}

    def shared(self, what: Hashable, make: Callable[[], Made]) -> Made:
        """What several parts of a page rest on, made once."""
        if what not in self._shared:
            self._shared[what] = make()
        found: Made = self._shared[what]
        return found

    def known(self, name: str) -> list[str]:
        """Every value that a label has in the study, in order."""
        return self._known[name]

    @cached_property
    def _diverged(self) -> dict[tuple[object, ...], set[int]]:
        found: dict[tuple[object, ...], set[int]] = {}
        for cell, result in self.study.found():
            if result.facts.get("diverged"):
                place = tuple(cell.labels.get(name) for name in ("init", "task", "learner"))
                found.setdefault(place, set()).add(int(str(cell.labels["seed"])))
        return found

    def lost(self, init: str, task: str, learner: str) -> set[int]:
        """The seeds in which a learner's training diverged."""
        return self._diverged.get((init, task, learner), set())

    def diverged(self, init: str, task: str, learner: str) -> int:
        """In how many seeds it did."""
        return len(self.lost(init, task, learner))

    @property
    def balanced(self) -> bool:
        """Whether every class had as many demonstrations, so that wrong labels have the frequencies of right ones."""
        facts = [result.facts for _, result in self.study.found()]
        whole = all(f["demonstrations"] % len(f["labels"]) == 0 and not f["demonstrations_dropped"] for f in facts)
        return self.spec.balanced and whole

    # values

    def values(self, tasks: Sequence[str], position: str | None, **labels: str) -> Values:
        """Numbers over (task, seed, query[, layer]), nan where a seed or a query is not there; empty where none is.

        A seed is the same one in every task and for every learner; tasks with fewer queries are filled up with nan.
        Of shares, draws count by how much there is to have a share of (`margins.over_draws`).
        """
        return self._of_all_draws(self._stacked(tasks, position, labels), tasks, labels)

    def _of_all_draws(self, values: Values, tasks: Sequence[str], labels: Labels) -> Values:
        metric = self._metric(labels)
        if metric is None or metric.whole is None or not values.size:
            return values
        place = {"init": labels["init"], "learner": "icl", "quantity": WHOLE.format(labels["metric"])}
        wholes = self._stacked(tasks, None, place)
        if not wholes.size:  # the cell that has them is not there
            return np.empty((0, 0, 0))
        width = max(values.shape[2], wholes.shape[2])
        return over_draws(_padded(values, width), _padded(wholes, width))

    def _stacked(self, tasks: Sequence[str], position: str | None, labels: Labels) -> Values:
        found = [self.arrays(task=task, **labels) for task in tasks]
        picked = [{seed: _at(one, position).astype(float) for seed, one in arrays.items()} for arrays in found]
        shapes = [array.shape for arrays in picked for array in arrays.values()]
        if not shapes:
            return np.empty((0, 0, 0))
        queries = max(shape[0] for shape in shapes)
        values = np.full((len(tasks), len(self.spec.seeds), queries, *shapes[0][1:]), np.nan)
        for task, arrays in enumerate(picked):
            for place, seed in enumerate(self.spec.seeds):
                if seed in arrays:
                    values[task, place, : len(arrays[seed])] = arrays[seed]
        return values

    def bounds(self, labels: Labels) -> Bounds | None:
        metric = self._metric(labels)
        return metric.bounds if metric is not None and np.isfinite(metric.bounds).all() else None

    def _metric(self, labels: Labels) -> Metric | None:
        name = labels.get("metric", "")
        return self.metrics.get(name) or (METRICS["SimAM_delta"] if name == "alpha" else None)

    def estimate(self, tasks: Sequence[str], position: str | None = None, **labels: str) -> Estimate:
        """The mean over layers (where there are any), queries, seeds and tasks; its interval is over draws or tasks."""
        values = self.values(tasks, position, **labels)
        if not values.size:
            return NOTHING
        flat = _flat(values)
        if (metric := self._metric(labels)) is not None and metric.by == "query" and metric.bounds == (0, 1):
            return shares(flat)[0]
        return self._within(estimates(flat, self.bounds(labels))[0], labels)

    def _within(self, found: Estimate, labels: Labels) -> Estimate:
        """No interval reaches below what the quantity can be."""
        metric = self._metric(labels)
        return (
            found if metric is None or found.low != found.low else replace(found, low=max(found.low, metric.bounds[0]))
        )

    def by_layer(self, tasks: Sequence[str], position: str, **labels: str) -> list[Estimate]:
        values = self.values(tasks, position, **labels)
        found = estimates(values, self.bounds(labels)) if values.size else []
        return [self._within(one, labels) for one in found]

    def several(self, tasks: Sequence[str], position: str, who: Sequence[Labels], layers: bool) -> list[np.ndarray]:
        """`estimate`, or with ``layers`` `by_layer`, of several that have one metric, in one go: a page has thousands.

        Each is (3, column): mean, low, high; without columns for what the tasks do not have.
        """
        found = [self.values(tasks, position, **labels) for labels in who]
        columns = [values if layers else _flat(values) for values in found]
        there = [bool(one.size) and one.ndim == 4 for one in columns]
        known = [one for one, is_ in zip(columns, there, strict=True) if is_]
        if not known:
            return [np.empty((3, 0)) for _ in who]
        ends = np.stack(self._intervals(_side_by_side(known), who[0]))
        cuts = np.cumsum([one.shape[-1] if is_ else 0 for one, is_ in zip(columns, there, strict=True)])
        return np.split(ends, cuts[:-1], axis=1)

    def _intervals(self, block: np.ndarray, labels: Labels) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        metric = self._metric(labels)
        if metric is not None and metric.by == "query" and metric.bounds == (0, 1):
            found = shares(block)
            return (
                np.array([e.mean for e in found]),
                np.array([e.low for e in found]),
                np.array([e.high for e in found]),
            )
        mean, low, high = intervals(block, self.bounds(labels))
        return mean, low if metric is None else np.maximum(low, metric.bounds[0]), high

    # differences

    def difference(self, tasks: Sequence[str], position: str | None, one: Labels, two: Labels) -> Difference | None:
        """One minus two on the same tasks, seeds and queries, mean over layers; none where either is not there."""
        pair = self._pair(tasks, position, one, two)
        if pair is None:
            return None
        apart = pair[0] - pair[1]  # layer by layer, and only then the mean: a layer counts where both know it
        apart = _flat(apart)
        return differences(apart, np.zeros_like(apart), self._apart(one))[0]

    def layers_apart(self, tasks: Sequence[str], position: str, one: Labels, two: Labels) -> Count:
        """How many layers are above and below, corrected for their number."""
        pair = self._pair(tasks, position, one, two)
        if pair is None or pair[0].ndim < 4:
            return Count(0, 0, 0)
        return count(benjamini_hochberg(differences(*pair, self._apart(one))))

    def _pair(
        self, tasks: Sequence[str], position: str | None, one: Labels, two: Labels
    ) -> tuple[Values, Values] | None:
        both = [t for t in tasks if all(self.arrays(task=t, **labels) for labels in (one, two))]
        first, second = (self._stacked(both, position, labels) for labels in (one, two))
        if not first.size or first.shape != second.shape:
            return None
        known = np.isfinite(first) & np.isfinite(second)  # a draw that one of them lost counts for neither
        pair = [self._of_all_draws(np.where(known, v, NAN), both, at) for v, at in ((first, one), (second, two))]
        return (pair[0], pair[1]) if pair[0].size and pair[1].size else None

    def _apart(self, labels: Labels) -> Bounds | None:
        """The bounds of a difference of two numbers that have bounds."""
        bounds = self.bounds(labels)
        return None if bounds is None else bounds_apart(bounds)

    def recall(self, init: str, tasks: Sequence[str], learner: str) -> tuple[tuple[int, ...], Difference]:
        """Rec2FTP's four counts, added up over seeds and tasks, and how far the recall is above its base rate."""
        found = [self.arrays(init=init, task=t, learner=learner, quantity="Rec2FTP") for t in tasks]
        counts = sum((one.values for arrays in found for one in arrays.values()), np.zeros(4, dtype=int))
        who = ("zero-shot", "icl", learner)
        right = [self.values(tasks, None, init=init, learner=name, metric="accuracy") for name in who]
        known = all(values.size and values.shape == right[0].shape for values in right)  # else it diverged everywhere
        above = recall_over_base(*right) if known else Difference(NOTHING, NAN)
        return tuple(int(count) for count in counts), above


NAN = float("nan")
NOTHING = Estimate(NAN, NAN, NAN, NAN, 0, 0, 0, "none")


def _at(one: Array, position: str | None) -> np.ndarray:
    return one.at(position=position).values if position is not None and "position" in one.axes else one.values


def _side_by_side(blocks: Sequence[np.ndarray]) -> np.ndarray:
    """Columns of (task, seed, query, column) arrays in one; nan where one has fewer queries."""
    width = max(one.shape[2] for one in blocks)
    return np.concatenate([_padded(one, width) for one in blocks], -1)


def _padded(values: Values, width: int) -> Values:
    """With as many queries, those that are not there nan."""
    missing = [(0, width - size if axis == 2 else 0) for axis, size in enumerate(values.shape)]
    return np.pad(values, missing, constant_values=NAN) if values.shape[2] < width else values


def _flat(values: Values) -> np.ndarray:
    """The mean over layers, where there are any, as one column."""
    return (_mean(values, -1) if values.ndim == 4 else values)[..., None]


def _mean(values: np.ndarray, axis: int) -> np.ndarray:
    """The mean of what is known; nan where nothing is."""
    known = np.isfinite(values)
    some = known.sum(axis)
    return np.where(some > 0, np.where(known, values, 0).sum(axis) / np.maximum(some, 1), np.nan)
