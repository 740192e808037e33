"""How sure: intervals over queries and seeds, paired tests, correction for many layers."""

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

RESAMPLES = 2000


def interval(values: ArrayLike, level: float = 0.95, seed: int = 0) -> tuple[float, float]:
    """Bootstrap percentile interval of the mean of (query) or (seed, query) values; nan values are left out.

    Demonstration seeds and queries are crossed (every seed asks the same queries), so both are resampled,
    independently: the interval covers other queries and other demonstrations. With one seed it is over queries alone.
    Drawn by a fixed seed, so the same values give the same interval; (nan, nan) below two values.
    """
    sample = np.atleast_2d(np.asarray(values, dtype=float))
    known = np.isfinite(sample)
    if known.sum() < 2:
        return float("nan"), float("nan")
    random = np.random.default_rng(seed)
    rows, columns = (random.multinomial(n, np.full(n, 1 / n), size=RESAMPLES).astype(float) for n in sample.shape)
    total = np.einsum("rs,sq,rq->r", rows, np.where(known, sample, 0), columns, optimize=True)
    count = np.einsum("rs,sq,rq->r", rows, known.astype(float), columns, optimize=True)
    low, high = np.quantile(total[count > 0] / count[count > 0], [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def share_interval(successes: int, total: int, level: float = 0.95) -> tuple[float, float]:
    """Wilson's interval of a share."""
    found = stats.binomtest(successes, total).proportion_ci(level, method="wilson")
    return float(found.low), float(found.high)


def paired_p_value(a: ArrayLike, b: ArrayLike, seed: int = 0) -> float:
    """Two-sided sign-flip p-value that paired values have the same mean; nan pairs are left out, nan below two."""
    difference = np.asarray(a, dtype=float).ravel() - np.asarray(b, dtype=float).ravel()
    difference = difference[np.isfinite(difference)]
    if len(difference) < 2:
        return float("nan")
    found = stats.permutation_test(
        (difference, np.zeros_like(difference)),
        lambda x, y, axis: np.mean(x - y, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=9999,
        rng=np.random.default_rng(seed),
    )
    return float(found.pvalue)


def corrected(p_values: ArrayLike) -> np.ndarray:
    """p-values of many layers, corrected by Benjamini and Hochberg; nan stays nan and does not count."""
    p = np.asarray(p_values, dtype=float)
    known = np.isfinite(p)
    adjusted = np.full_like(p, np.nan)
    if known.any():
        adjusted[known] = stats.false_discovery_control(p[known])
    return adjusted
