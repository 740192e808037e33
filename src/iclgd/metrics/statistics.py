"""How sure: intervals over queries and seeds, paired tests, correction for many layers. scipy does the work."""

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

RESAMPLES = 2000


def interval(values: ArrayLike, level: float = 0.95, seed: int = 0) -> tuple[float, float]:
    """Bootstrap percentile interval of the mean over the first axis, nan left out; (nan, nan) below two values.

    The resamples are drawn by a fixed seed, so the same values give the same interval.
    """
    sample = np.asarray(values, dtype=float).ravel()
    sample = sample[np.isfinite(sample)]
    if len(sample) < 2:
        return float("nan"), float("nan")
    if np.ptp(sample) == 0:
        return float(sample[0]), float(sample[0])
    found = stats.bootstrap(
        (sample,),
        np.mean,
        confidence_level=level,
        n_resamples=RESAMPLES,
        method="percentile",
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return float(found.low), float(found.high)


def share_interval(successes: int, total: int, level: float = 0.95) -> tuple[float, float]:
    """Wilson's interval of a share."""
    found = stats.binomtest(successes, total).proportion_ci(level, method="wilson")
    return float(found.low), float(found.high)
