"""The cells of a study brought together: what patches do to label margins, how alike matrices are, with intervals."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from iclgd.labs.implicit.alike import SIDES
from iclgd.labs.implicit.spec import ImplicitSpec
from iclgd.metrics.crossed import Bounds
from iclgd.metrics.estimates import COSINE, Estimate, estimate, share
from iclgd.metrics.margins import Scores, effect, missed, over_episodes, recovered, shares_over_draws, whole
from iclgd.report.numbers import Number
from iclgd.study import Study

LAYERS = ("layers", "first", "last")  # a patch in these layers alone, or in all up to the last of them
Values = np.ndarray  # (task, seed, query), nan where there is nothing
Measure = Callable[[Scores, Scores, bool], np.ndarray]  # of two effects: a value for each query
PLACE = ("quantity", "init", "task", "seed", "rate", "asked", "patch", "fitted", "null", "demos", *LAYERS)
WHOLE = "matrix"  # the patch of any rank
CONSTANT = "constant"  # a patch that tells no query from another: for all of them reading's mean over the calibration
CHOSEN = "chosen"  # a rate: of each episode's, the one that is nearest to reading on the calibration queries


def number(found: Estimate, digits: int = 2) -> Number:
    return Number(found.mean, found.low, found.high, digits)


@dataclass(frozen=True, eq=False)
class View:
    """A study of `implicit`, its arrays found by their labels."""

    study: Study

    @property
    def spec(self) -> ImplicitSpec:
        assert isinstance(self.study.spec, ImplicitSpec)
        return self.study.spec

    @property
    def most(self) -> int:
        return self.spec.calibration[-1]

    @property
    def draws(self) -> int:
        return len(self.spec.task) * len(self.spec.seeds)

    @cached_property
    def _index(self) -> dict[tuple[Any, ...], np.ndarray]:
        return {tuple(one.labels.get(name) for name in PLACE): one.values for one in self.study.arrays()}

    def one(self, **labels: Any) -> np.ndarray | None:
        """The array with these labels and no others of those that place one; none where there is none."""
        return self._index.get(tuple(labels.get(name) for name in PLACE))

    def scores(self, init: str, task: str, seed: int, **labels: Any) -> Scores | None:
        if labels.get("rate") == CHOSEN:
            labels["rate"] = self.nearest_rate(init, task, seed)
        if labels.get("patch") == CONSTANT:
            return self._constant(init, task, seed)
        return self.one(quantity="scores", init=init, task=task, seed=seed, **{"asked": "held", **labels})

    def _constant(self, init: str, task: str, seed: int) -> Scores | None:
        """The mean of reading's scores of the calibration queries, as the answer to every held-out one."""
        known, icl = (self.scores(init, task, seed, patch="icl", asked=asked) for asked in ("calibration", "held"))
        return None if known is None or icl is None else np.broadcast_to(known.mean(0), icl.shape)

    # of several rates, one

    def nearest_rate(self, init: str, task: str, seed: int) -> float | None:
        """Where training misses least of reading's margins on the calibration queries, which no table shows.

        After the mean shift is taken off; none where training diverged at every rate.
        """
        far: dict[float, float] = {}
        for rate in self.spec.rates:
            gd: dict[str, Any] = {"patch": "gd", "rate": rate, "demos": "right"}
            effects = self._effects(init, task, seed, "calibration", **gd)
            if effects is not None and np.isfinite(found := missed(*effects, centred=True)).all():
                far[rate] = float(found.mean())
        return min(far, key=lambda rate: far[rate], default=None)

    def steady(self, init: str) -> tuple[float, ...]:
        """The rates at which no draw diverged."""
        return tuple(rate for rate in self.spec.rates if not self.diverged(init, rate))

    def eligible(self, init: str) -> tuple[float, ...]:
        """The rates that one is chosen from after the fact: of the steady ones, where there is one.

        What survives at another rate is not the same draws.
        """
        return self.steady(init) or self.spec.rates

    def most_alike(self, init: str) -> float | None:
        """The rate whose update has the largest cosine with the patch for all queries: chosen after the fact."""
        known = {rate: self.cosine(init, "cosine", WHOLE, rate).mean for rate in self.eligible(init)}
        known = {rate: one for rate, one in known.items() if one == one}
        return max(known, key=lambda rate: known[rate], default=None)

    # values over tasks, seeds and queries

    def values(self, value: Callable[[str, int], np.ndarray | None]) -> Values:
        """Of every episode, side by side."""
        return over_episodes(self.spec.task, self.spec.seeds, value)

    def recovery(self, init: str, centred: bool, asked: str = "held", **labels: Any) -> Values:
        """How much of reading's effect on the label margins a patch (or training) brings back: of all draws' effect."""
        return self.shares_of(recovered, centred, init, asked, labels)[0]

    def missing(self, init: str, centred: bool = True, asked: str = "held", **labels: Any) -> Values:
        """How much of it a patch (or training) misses, without the mean shift or with it."""
        return self.shares_of(missed, centred, init, asked, labels)[0]

    def shares_of(self, measure: Measure, centred: bool, init: str, asked: str, *each: dict[str, Any]) -> list[Values]:
        """The same of several: a draw that one of them lost counts for none, as a share is of all draws' effect."""
        found = {
            (task, seed): [self._effects(init, task, seed, asked, **labels) for labels in each]
            for task in self.spec.task
            for seed in self.spec.seeds
        }

        def of(place: int) -> Values:
            def value(task: str, seed: int) -> tuple[np.ndarray, np.ndarray] | None:
                known = [one for one in found[task, seed] if one is not None]
                if len(known) < len(each):
                    return None
                return measure(*known[place], centred), whole(known[place][1], centred)

            return shares_over_draws(self.spec.task, self.spec.seeds, value)

        return [of(place) for place in range(len(each))]

    def _effects(self, init: str, task: str, seed: int, asked: str, **labels: Any) -> tuple[Scores, Scores] | None:
        """The effect of a patch (or training) on the label margins in one episode, and reading's."""
        place = (init, task, seed)
        zero, icl = (self.scores(*place, asked=asked, patch=name) for name in ("zero-shot", "icl"))
        found = self.scores(*place, asked=asked, **labels)
        if zero is None or icl is None or found is None:
            return None
        return effect(found, zero), effect(icl, zero)

    def label_recovery(self, init: str, centred: bool, right: dict[str, Any], wrong: dict[str, Any]) -> Values:
        """The same of what labels change: right minus wrong ones, in the patch and in reading."""

        def value(task: str, seed: int) -> tuple[np.ndarray, np.ndarray] | None:
            names = ({"patch": "icl"}, {"patch": "icl, wrong labels"}, right, wrong)
            icl, icl_wrong, one, two = (self.scores(init, task, seed, **name) for name in names)
            if icl is None or icl_wrong is None or one is None or two is None:
                return None
            wanted = effect(icl, icl_wrong)
            return recovered(effect(one, two), wanted, centred), whole(wanted, centred)

        return shares_over_draws(self.spec.task, self.spec.seeds, value)

    def right(self, init: str, **labels: Any) -> Values:
        """1 where the answer is right, 0 where it is wrong."""

        def value(task: str, seed: int) -> np.ndarray | None:
            found = self.scores(init, task, seed, **labels)
            answers = self.one(quantity="answers", init=init, task=task, seed=seed)
            return None if found is None or answers is None else (found.argmax(-1) == answers).astype(float)

        return self.values(value)

    def agreeing(self, init: str, **labels: Any) -> Values:
        """1 where the answer is reading's."""

        def value(task: str, seed: int) -> np.ndarray | None:
            found, icl = self.scores(init, task, seed, **labels), self.scores(init, task, seed, patch="icl")
            return None if found is None or icl is None else (found.argmax(-1) == icl.argmax(-1)).astype(float)

        return self.values(value)

    def cosines(self, init: str, quantity: str, patch: str, rate: float, null: str | None = None) -> Values:
        """Mean over layers of the cosines with the update of training."""

        def value(task: str, seed: int) -> np.ndarray | None:
            labels = {"quantity": quantity, "patch": patch, "rate": rate, "null": null}
            found = self.one(init=init, task=task, seed=seed, **labels)
            return None if found is None else found.mean(-1)

        return self.values(value)

    def by_layer(self, init: str, quantity: str, patch: str, rate: float, null: str | None = None) -> np.ndarray:
        """Cosines by layer, mean over all else; empty where there is none."""
        places = [(task, seed) for task in self.spec.task for seed in self.spec.seeds]
        labels = {"quantity": quantity, "patch": patch, "rate": rate, "null": null, "init": init}
        found = [self.one(task=task, seed=seed, **labels) for task, seed in places]
        known = [one.mean(0) for one in found if one is not None]
        return np.mean(known, axis=0) if known else np.empty(0)

    def overlaps(
        self, init: str, rate: float, rank: int, side: str, patch: str | None = None, null: str | None = None
    ) -> Values:
        """How much of a subspace is shared, mean over layers: a value an episode."""

        def value(task: str, seed: int) -> np.ndarray | None:
            labels = {"quantity": "overlap", "patch": patch, "rate": rate, "null": null}
            found = self.one(init=init, task=task, seed=seed, **labels)
            place = self.spec.ranks.index(rank), SIDES.index(side)
            return None if found is None else found[place[0], :, place[1]].mean(keepdims=True).clip(0, 1)  # rounding

        return self.values(value)

    def depths(self) -> list[tuple[int, int]]:
        """The first and last layers of the parts of the stack in which patches were written."""
        return sorted({(one.labels["first"], one.labels["last"]) for one in self.study.arrays(layers="alone")})  # type: ignore[misc]  # both are numbers

    # estimates

    def cosine(self, *args: Any, **more: Any) -> Estimate:
        values = self.cosines(*args, **more)
        return estimate(values, COSINE) if values.size else NOTHING

    def diverged(self, init: str, rate: float) -> int:
        """In how many episodes training diverged."""
        found = [
            result.facts.get("diverged")
            for cell, result in self.study.found()
            if cell.labels.get("init") == init and cell.labels.get("rate") == rate
        ]
        return sum(map(bool, found))


NAN = float("nan")
NOTHING = Estimate(NAN, NAN, NAN, NAN, 0, 0, 0, "none")


def mean(values: Values, bounds: Bounds | None = None) -> Estimate:
    return estimate(values, bounds) if np.isfinite(values).any() else NOTHING


def distance(values: Values) -> Estimate:
    """The same of what cannot be below 0, nor can its interval."""
    found = mean(values)
    return replace(found, low=max(found.low, 0.0)) if found.low == found.low else found


def shares(values: Values) -> Estimate:
    return share(values) if np.isfinite(values).any() else NOTHING
