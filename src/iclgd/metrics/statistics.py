"""How sure: intervals over queries and seeds, paired tests, correction for many layers."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

RESAMPLES = 2000
FLIPS = 9999


def interval(values: ArrayLike, level: float = 0.95, seed: int = 0) -> tuple[float, float]:
    """Bootstrap percentile interval of the mean of (query) or (seed, query) values; see ``intervals``."""
    low, high = intervals(np.atleast_2d(np.asarray(values, dtype=float))[..., None], level, seed)
    return float(low[0]), float(high[0])


def intervals(values: np.ndarray, level: float = 0.95, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """The same for many columns at once, (seed, query, column) → (column) and (column); nan values are left out.

    Demonstration seeds and queries are crossed (every seed asks the same queries), so both are resampled,
    independently: the interval covers other queries and other demonstrations. With one seed it is over queries alone.
    Drawn by a fixed seed, so the same values give the same interval; nan below two values.
    """
    seeds, queries, columns = values.shape
    if not seeds * queries:
        return np.full(columns, np.nan), np.full(columns, np.nan)
    known = np.isfinite(values)
    by_seed, by_query = _weights(seeds, seed), _weights(queries, seed + 1)
    total, count = np.zeros((RESAMPLES, columns)), np.zeros((RESAMPLES, columns))
    for row, sample, there in zip(by_seed.T, np.where(known, values, 0), known, strict=True):
        total += row[:, None] * (by_query @ sample)
        count += row[:, None] * (by_query @ there.astype(float))
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.where(count > 0, total / count, np.nan)
    enough = known.sum((0, 1)) >= 2
    bounds = np.full((2, columns), np.nan)
    if enough.any():
        bounds[:, enough] = np.nanquantile(means[:, enough], [(1 - level) / 2, (1 + level) / 2], axis=0)
    return bounds[0], bounds[1]


@lru_cache(maxsize=64)
def _weights(count: int, seed: int) -> np.ndarray:
    """How often each of ``count`` things is drawn in each resample."""
    draws = np.random.default_rng(seed).multinomial(count, np.full(count, 1 / count), size=RESAMPLES)
    return draws.astype(float)


def half_width(values: Sequence[float], level: float = 0.95) -> float:
    """Half of Student's t interval of the mean of a few values, as over seeds; nan below two."""
    if len(values) < 2:
        return float("nan")
    return float(stats.t.ppf((1 + level) / 2, len(values) - 1) * np.std(values, ddof=1) / len(values) ** 0.5)


def share_interval(successes: int, total: int, level: float = 0.95) -> tuple[float, float]:
    """Wilson's interval of a share."""
    found = stats.binomtest(successes, total).proportion_ci(level, method="wilson")
    return float(found.low), float(found.high)


def paired_p_values(a: ArrayLike, b: ArrayLike, seed: int = 0) -> np.ndarray:
    """Two-sided sign-flip p-values that paired values have the same mean, (query, column) → (column).

    The signs of the differences are flipped at random, the same flips in every column. Pairs with nan are left out;
    nan below two pairs.
    """
    difference = np.asarray(a, dtype=float) - np.asarray(b, dtype=float)
    known = np.isfinite(difference)
    difference = np.where(known, difference, 0)
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], size=(FLIPS, len(difference)))
    flipped, observed = np.abs(signs @ difference), np.abs(difference.sum(0))
    extreme = (flipped >= observed * (1 - 1e-12)).sum(0)
    return np.where(known.sum(0) >= 2, (1 + extreme) / (1 + FLIPS), np.nan)


def corrected(p_values: ArrayLike) -> np.ndarray:
    """p-values of many layers, corrected by Benjamini and Hochberg; nan stays nan and does not count."""
    p = np.asarray(p_values, dtype=float)
    known = np.isfinite(p)
    adjusted = np.full_like(p, np.nan)
    if known.any():
        adjusted[known] = stats.false_discovery_control(p[known])
    return adjusted
