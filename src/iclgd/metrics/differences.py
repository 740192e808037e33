"""Paired differences with p-values, and families of them corrected.

Queries are never treated as if they were draws: signs flipped over queries after averaging seeds call a quarter of all
null differences significant when seeds vary by a tenth of the queries' spread. The p-value here belongs to the
difference's interval (iclgd.metrics.estimates): .05 or less where that leaves 0 out.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from iclgd.metrics import crossed
from iclgd.metrics.crossed import MISS, Bounds
from iclgd.metrics.estimates import SHARE, Estimate, checked, estimates, sample_of, share

Verdict = Literal["above", "below", "undecided"]


@dataclass(frozen=True)
class Difference:
    """A paired difference, its two-sided p-value, and that p-value corrected for its family."""

    estimate: Estimate
    p: float
    corrected: float = float("nan")  # filled in by ``holm`` or ``benjamini_hochberg``

    @property
    def verdict(self) -> Verdict:
        """Whether the first is above the second, by the corrected p-value where there is one.

        One seed decides nothing: its p-value is about other queries with the same demonstrations.
        """
        p = self.p if np.isnan(self.corrected) else self.corrected
        if self.estimate.kind not in ("draws", "tasks") or not p <= MISS:
            return "undecided"
        return "above" if self.estimate.mean > 0 else "below"


@dataclass(frozen=True)
class Count:
    """How many differences of a family go up and down for sure, of how many that have an interval."""

    up: int
    down: int
    of: int


def difference(a: ArrayLike, b: ArrayLike, bounds: Bounds | None = None) -> Difference:
    """The first minus the second on the same tasks, seeds and queries; pairs with an unknown value are left out.

    The bounds are those of the difference: (−1, 1) for shares.
    """
    return differences(np.asarray(a)[..., None], np.asarray(b)[..., None], bounds)[0]


def differences(a: np.ndarray, b: np.ndarray, bounds: Bounds | None = None) -> list[Difference]:
    """The same for each column; ``benjamini_hochberg`` corrects them."""
    if a.shape != b.shape:
        raise ValueError(f"values of shapes {a.shape} and {b.shape} cannot be paired")
    difference = a.astype(float) - b.astype(float)
    p_values = crossed.p_value(sample_of(difference).spread, checked(difference, bounds))
    found = [Difference(e, float(p)) for e, p in zip(estimates(difference, bounds), p_values, strict=True)]
    return [_all_turned(one, difference[..., i]) for i, one in enumerate(found)]


def _all_turned(found: Difference, values: np.ndarray) -> Difference:
    """Where every answer turned, from wrong to right or back, no spread tells how sure that is: their number does.

    The interval is Wilson's for that share, the p-value that of as many signs that all agree (``estimates.shares``:
    queries, or tasks, count once).
    """
    known = values[np.isfinite(values)]
    if found.estimate.kind == "none" or not (np.all(known == 1) or np.all(known == -1)):
        return found
    turned = share(np.where(np.isfinite(values), 1.0, np.nan))
    units = turned.tasks if turned.kind == "tasks" else turned.queries if turned.queries > 1 else turned.seeds
    up = found.estimate.mean > 0
    low, high = (turned.low, 1.0) if up else (-1.0, -turned.low)
    return Difference(replace(found.estimate, low=low, high=high), max(found.p, 2.0 ** (1 - units)))


def recall_over_base(zero: ArrayLike, icl: ArrayLike, tuned: ArrayLike) -> Difference:
    """Rec2FTP minus its base rate, from who was right (1) on (seed, query) or (task, seed, query).

    Of the queries that zero-shot had wrong, the share that reading corrected: among those that training corrected,
    minus among all. The base rate is taken seed by seed, as often as training corrected something with that seed:
    a good draw helps reading and training alike, which is no likeness of the two. A task in which training corrected
    nothing is left out. No limit leaves [−1, 1], where the difference of two shares lies.
    """
    answers = np.stack([np.asarray(right, dtype=float) for right in (zero, icl, tuned)], axis=-1)
    tasks = answers if answers.ndim == 4 else answers[None]
    effects = np.stack([recall_effects(task) for task in tasks])
    found = difference(effects, np.zeros_like(effects))  # single effects may leave the bounds, unlike their mean
    low, high = np.clip([found.estimate.low, found.estimate.high], *bounds_apart(SHARE))
    return replace(found, estimate=replace(found.estimate, low=float(low), high=float(high)))


def bounds_apart(bounds: Bounds) -> Bounds:
    """Of the difference of two quantities that have these bounds."""
    return bounds[0] - bounds[1], bounds[1] - bounds[0]


def recall_effects(answers: np.ndarray) -> np.ndarray:
    """(seed, query, who) right answers → (seed, query) values whose mean is the recall minus its base rate.

    Both are ratios of sums over the same answers, so each answer enters by its first-order effect on their difference
    (Taylor linearisation, Woodruff 1971), which is then crossed like any other value.
    """
    known = np.isfinite(answers).all(-1)
    zero, icl, tuned = np.moveaxis(np.where(known[..., None], answers, 0), -1, 0)
    wrong = known & (zero == 0)
    fixed = wrong & (tuned == 1)  # corrected by training
    if not fixed.any():
        return np.full(known.shape, np.nan)
    in_seed = np.maximum(wrong.sum(1, keepdims=True), 1)
    above_base = icl - (wrong * icl).sum(1, keepdims=True) / in_seed
    difference = above_base[fixed].mean()
    effect = fixed * (above_base - difference) - fixed.sum(1, keepdims=True) / in_seed * wrong * above_base
    return np.where(known, difference + effect * known.sum() / fixed.sum(), np.nan)


# families


def over_draws(found: Difference) -> Difference:
    """With a p-value only where it is about other draws or tasks: a lone draw is no member of their family."""
    return found if found.estimate.kind in ("draws", "tasks") else replace(found, p=float("nan"))


def benjamini_hochberg(family: Sequence[Difference]) -> list[Difference]:
    """With p-values corrected for the false discovery rate, as for layers; unknown ones stay and do not count."""
    return _with(family, stats.false_discovery_control)


def holm(family: Sequence[Difference]) -> list[Difference]:
    """With p-values corrected for any false discovery, as for the few differences that a sentence relies on."""
    return _with(family, _holm)


def nearest(
    apart: Mapping[str, Difference], nulls: Mapping[str, Estimate], way: Verdict = "above"
) -> tuple[str, bool] | None:
    """The null that a sentence on all of them has to name, and whether the value is shown to be above even that one.

    ``apart`` has the value minus each null. It is the highest one that the value is not shown to be above; where it is
    above all of them the highest of all. With ``way="below"`` likewise the lowest.
    """
    level = [title for title, one in apart.items() if one.verdict != way]
    sign = 1 if way == "above" else -1
    title = max(level or apart, key=lambda title: sign * nulls[title].mean, default=None)
    return None if title is None else (title, not level)


def count(family: Sequence[Difference]) -> Count:
    """How many go up and how many down, by their verdicts."""
    verdicts = [difference.verdict for difference in family]
    return Count(verdicts.count("above"), verdicts.count("below"), sum(not np.isnan(c.p) for c in family))


def _with(family: Sequence[Difference], correction: Callable[[np.ndarray], np.ndarray]) -> list[Difference]:
    p = np.array([difference.p for difference in family])
    known = np.isfinite(p)
    adjusted = np.full(len(p), np.nan)
    if known.any():
        adjusted[known] = correction(p[known])
    return [replace(difference, corrected=float(q)) for difference, q in zip(family, adjusted, strict=True)]


def _holm(p: np.ndarray) -> np.ndarray:
    """The i-th smallest of n times n − i + 1, never below a smaller one (Holm 1979)."""
    order = np.argsort(p)
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(stepped, 1)
    return adjusted
