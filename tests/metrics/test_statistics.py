"""Two textbook intervals, against scipy."""

import math

import numpy as np
import pytest
from scipy import stats

from iclgd.metrics.statistics import half_width, share_interval


def test_the_interval_of_a_share_is_wilsons():
    successes, total, z = 7, 20, stats.norm.ppf(0.975)
    middle = (successes + z**2 / 2) / (total + z**2)
    half = z / (total + z**2) * math.sqrt(successes * (total - successes) / total + z**2 / 4)
    assert share_interval(successes, total) == (pytest.approx(middle - half), pytest.approx(middle + half))
    assert share_interval(0, 5)[0] == 0


def test_the_half_width_of_a_mean_over_seeds_is_students():
    values = np.random.default_rng(3).normal(2, 0.5, 5)
    low, high = stats.t.interval(0.95, 4, loc=values.mean(), scale=stats.sem(values))
    assert half_width(values.tolist()) == pytest.approx((high - low) / 2, rel=1e-12)
    assert math.isnan(half_width([1.0]))
    assert math.isnan(half_width([1.0, math.nan]))
