"""How sure: means with their intervals, as the pages of this lab print them."""

import math

import numpy as np
from numpy.typing import ArrayLike

from iclgd.metrics.statistics import half_width, share_interval
from iclgd.report.numbers import Number


def mean(values: ArrayLike, digits: int = 3, among: int = 1, lowest: float = -math.inf) -> Number:
    """The mean with Student's t interval, without one below two values.

    ``among``: of so many intervals shown together 95% hold all at once (Bonferroni). ``lowest``: what no value can
    be below.
    """
    found = np.asarray(values, dtype=float).ravel()
    middle, half = float(found.mean()), half_width(found.tolist(), 1 - 0.05 / among)
    return Number(middle, max(middle - half, lowest) if math.isfinite(half) else math.nan, middle + half, digits)


def share(right: ArrayLike, digits: int = 2) -> Number:
    """A share with Wilson's interval."""
    found = np.asarray(right, dtype=bool)
    return Number(float(found.mean()), *share_interval(int(found.sum()), found.size), digits)


def direction(difference: Number) -> int:
    """1 or −1 where the interval lies on one side of 0; 0 where it does not, or there is none."""
    return int(difference.low > 0) - int(difference.high < 0)
