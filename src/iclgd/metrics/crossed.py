"""How far the mean of crossed values may lie from the truth: its variance, its interval, its p-value.

Every demonstration seed s asks the same queries q, so y_sq = μ + a_s + b_q + e_sq with three random parts. Cornfield
and Tukey (1956) give the mean squares their expectations, hence the variance of the mean without bias:

    V = V_seeds + (V_queries − V_cells)

where V_seeds = var(seed means)/S, V_queries = var(query means)/Q and V_cells = var(residuals)/(SQ). The two terms
are the two samples of a Behrens–Fisher problem with S − 1 and Q − 1 degrees of freedom. Satterthwaite (1946) would
take one Student t with degrees of freedom estimated from the data: with two seeds such an interval covers 87%, because
seeds that agree by luck lower the variance and raise its degrees of freedom at once. Cochran and Cox (1950) mix the
two critical values instead, t = g t_{S−1} + (1 − g) t_{Q−1} with g = w, the seeds' share of V: 94 to 98%. Here
g = I_w(2, 2.5), the same mixture with a smooth step: 93.3 to 96.9% for 2 to 8 seeds of 40 queries or more, whatever
the shares of the parts (simulated in tests/metrics/test_coverage.py). Where seeds and queries both agree by luck, V is
kept at a fifth of V_cells or more, so that no interval shrinks to a point; Student's t at two seeds has no such floor.
Tasks that agree by luck have the same floor: a fifth of the variance that their own values would give the mean. Two
tasks with as many right answers are no rarity: without it two tasks of 40 queries each cover 83% at an accuracy of .93.

Beyond 95% no mixture keeps its level at two seeds, so smaller p-values are Banerjee's (1960): the half width
√(t²_{S−1} V_seeds + t²_{Q−1} (V − V_seeds)) keeps at least its level at every level. Nor do seeds or tasks that agree
by luck: one more right answer in each of two seeds would have p = .004, in each of three tasks .002. So there the floor
is all of that variance. A p-value of .05 or less belongs to a 95% interval without 0.

Not covered: parts that are far from normal (a draw in ten that fails; of answers of which one in fifty differs, two
seeds of 100 queries show a difference that is not there 10% of the time; seeds as skewed as the exponential of a normal
number are, which more seeds do not cure: 89 to 83% at two to eight), queries that were chosen
rather than drawn, seeds that ask different queries (safe, but wider than need be), values that do not vary at all
(an interval of no width, as Student's; right and wrong answers that are all alike, or all turned, are counted instead:
`estimates.shares`, `differences`).
"""

from dataclasses import dataclass

import numpy as np
from scipy import special

MISS = 0.05  # how often an interval may leave the truth out
SMALLEST_P = 1e-16
FLOOR = 0.2  # of the variance that independent cells would give
STEP = (2, 2.5)  # of the incomplete beta function that mixes the critical values

Bounds = tuple[float, float]


@dataclass(frozen=True)
class Spread:
    """The mean of each column and the parts of its variance; every field is (column)."""

    mean: np.ndarray
    by_seed: np.ndarray  # V_seeds; 0 with one seed
    total: np.ndarray  # V
    seeds: np.ndarray
    queries: np.ndarray
    inside: np.ndarray | float = 0.0  # the least that V can truly be: V_cells, or what values inside tasks give it

    @property
    def known(self) -> np.ndarray:
        """Where there is more than one value to tell a spread from."""
        return (self.seeds > 1) | (self.queries > 1)


def spread(values: np.ndarray) -> Spread:
    """Of (seed, query, column) values; nan values are left out.

    Exact moments where every seed knows the same queries, as in every lab here. Gaps change the weights of seeds and
    queries; where one of three seeds knows a tenth of the queries that the others know, the rest is a sample of two,
    and an interval covers 90%.
    """
    known = np.isfinite(values)
    count = known.sum((0, 1))
    some = np.maximum(count, 1)
    mean = np.where(count > 0, np.where(known, values, 0).sum((0, 1)) / some, np.nan)
    rest = np.where(known, values - mean, 0)
    in_seed, in_query = known.sum(1), known.sum(0)
    seeds, queries = (in_seed > 0).sum(0), (in_query > 0).sum(0)
    of_seed, of_query = rest.sum(1), rest.sum(0)
    by_seed = (of_seed**2).sum(0) / some**2 * _unbiased(in_seed / some)
    by_query = (of_query**2).sum(0) / some**2 * _unbiased(in_query / some)
    rest -= (of_seed / np.maximum(in_seed, 1))[:, None]
    rest -= of_query / np.maximum(in_query, 1)
    free = count - seeds - queries + 1
    by_cell = np.where(free > 0, (rest**2 * known).sum((0, 1)) / np.maximum(free, 1) / some, 0)
    return Spread(mean, by_seed, total(by_seed, by_query, by_cell), seeds, queries, inside=by_cell)


def total(by_seed: np.ndarray, by_query: np.ndarray, by_cell: np.ndarray) -> np.ndarray:
    """V from V_seeds, V_queries and V_cells."""
    return np.maximum(by_seed + np.maximum(by_query - by_cell, 0), FLOOR * by_cell)


def _unbiased(weights: np.ndarray) -> np.ndarray:
    """Σw² / Σw²(1 − 2w + Σw²) of weights that sum to 1: n / (n − 1) where all are alike; 0 for one, without a spread.

    That many times the weighted squares about the weighted mean are the variance of that mean.
    """
    square = (weights**2).sum(0)
    free = (weights**2 * (1 - 2 * weights + square)).sum(0)
    return np.where(free > 0, square / np.where(free > 0, free, 1), 0)


def half_width(of: Spread, miss: float | np.ndarray = MISS) -> np.ndarray:
    """Half of the interval that misses the truth with probability ``miss``; nan where nothing tells the spread."""
    wide = np.maximum(miss, MISS)
    share = np.where(of.total > 0, of.by_seed / np.where(of.total > 0, of.total, 1), 0)
    step = special.betainc(*STEP, share)
    half = (step * student(wide, of.seeds - 1) + (1 - step) * student(wide, of.queries - 1)) * np.sqrt(of.total)
    if np.any(np.asarray(miss) < MISS):
        seeds, queries = student(miss, of.seeds - 1), student(miss, of.queries - 1)
        safe = np.sqrt(seeds**2 * of.by_seed + queries**2 * (of.total - of.by_seed))
        half = np.where(np.asarray(miss) < MISS, np.maximum(half, safe), half)
    floor = np.where(np.asarray(miss) < MISS, 1, FLOOR) * of.inside
    half = np.maximum(half, -special.ndtri(np.asarray(miss) / 2) * np.sqrt(floor))
    return np.where(of.known, half, np.nan)


def student(miss: float | np.ndarray, freedom: np.ndarray) -> np.ndarray:
    """The two-sided critical value of Student's t; computed once for each number of degrees of freedom."""
    freedom = np.maximum(freedom, 1)
    if np.ndim(miss):
        return -special.stdtrit(freedom, np.asarray(miss) / 2)
    distinct, back = np.unique(freedom, return_inverse=True)
    return -special.stdtrit(distinct, miss / 2)[back]


def p_value(of: Spread, bounds: Bounds | None = None) -> np.ndarray:
    """Two-sided, of a mean of 0: the largest ``miss`` whose interval still holds 0; at least 1e-16.

    Bisection on its logarithm, from .05 down or from .05 up, so that p ≤ .05 exactly where the interval leaves 0 out.
    """
    distance = np.abs(of.mean)
    if bounds is not None:  # the interval is Wilson's: the spread it has at 0, not at the mean
        low, high = bounds
        room = np.maximum((of.mean - low) * (high - of.mean), 0) / (-low * high)
        distance = np.where(of.total > 0, distance * np.sqrt(room), distance)
    clear = distance > half_width(of)
    below = np.where(clear, SMALLEST_P, MISS)
    above = np.where(clear, MISS, 1.0)
    for _ in range(60):
        middle = np.sqrt(below * above)
        out = distance > half_width(of, middle)
        below, above = np.where(out, below, middle), np.where(out, middle, above)
    return np.where(of.known, above, np.nan)


def limits(mean: np.ndarray, half: np.ndarray, bounds: Bounds | None) -> tuple[np.ndarray, np.ndarray]:
    """The two ends of an interval; inside the bounds where the quantity has some (``wilson``)."""
    if bounds is None:
        return mean - half, mean + half
    low, high = bounds
    share = np.clip((mean - low) / (high - low), 0, 1)
    room = share * (1 - share)
    ratio = np.where(room > 0, (half / (high - low)) ** 2 / np.where(room > 0, room, 1), 0 * half)
    bottom, top = wilson(share, ratio)
    return low + (high - low) * bottom, low + (high - low) * top


def wilson(share: np.ndarray, ratio: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The shares p with (share − p)² ≤ ratio · p(1 − p) (Wilson 1927, where ratio = z²/n); always inside [0, 1].

    The spread of a bounded mean shrinks towards its bounds as p(1 − p) does; half² / share(1 − share) as the ratio puts
    any half width on that footing.
    """
    middle = (share + ratio / 2) / (1 + ratio)
    half = np.sqrt(ratio * share * (1 - share) + ratio**2 / 4) / (1 + ratio)
    return np.maximum(middle - half, 0), np.minimum(middle + half, 1)
