"""Intervals and p-values, against scipy and against what they promise."""

import math

import numpy as np
import pytest
from scipy import stats

from iclgd.metrics.statistics import corrected, half_width, interval, intervals, paired_p_values, share_interval


@pytest.mark.parametrize("queries", [20, 100])
def test_with_one_seed_the_interval_is_scipys_percentile_bootstrap(queries):
    values = np.random.default_rng(0).gamma(2, 1, queries)
    wanted = stats.bootstrap((values,), np.mean, method="percentile", n_resamples=20_000, rng=1).confidence_interval
    low, high = interval(values)
    width = wanted.high - wanted.low
    assert low == pytest.approx(wanted.low, abs=0.08 * width)
    assert high == pytest.approx(wanted.high, abs=0.08 * width)


def test_the_interval_covers_the_mean_about_as_often_as_it_says():
    random = np.random.default_rng(0)
    samples = random.normal(1.0, 1.0, (1, 60, 400))  # 400 studies, a column each
    low, high = intervals(samples)
    assert 0.90 <= float(((low <= 1) & (high >= 1)).mean()) <= 0.98


def test_over_seeds_the_interval_covers_other_demonstrations_too():
    """Five seeds that differ by far more than their queries: an interval over queries alone would be far too narrow."""
    random = np.random.default_rng(1)
    studies = random.normal(0, 1, (5, 1, 300)) + random.normal(0, 0.1, (5, 80, 300))
    low, high = intervals(studies)
    assert float(((low <= 0) & (high >= 0)).mean()) > 0.7  # five things are few for a bootstrap
    pooled = np.array([interval(studies[:, :, i].ravel()) for i in range(50)])
    assert float(((pooled[:, 0] <= 0) & (pooled[:, 1] >= 0)).mean()) < 0.4


def test_columns_do_not_see_each_other():
    values = np.random.default_rng(2).normal(size=(3, 15, 4))
    low, high = intervals(values)
    for column in range(4):
        assert interval(values[:, :, column]) == (pytest.approx(low[column]), pytest.approx(high[column]))


def test_unknown_values_are_left_out():
    known = np.random.default_rng(3).normal(size=40)
    with_gaps = np.concatenate([known, np.full(40, np.nan)])
    low, high = interval(with_gaps)
    alone = interval(known)
    assert low == pytest.approx(alone[0], abs=0.2 * (alone[1] - alone[0]))
    assert high == pytest.approx(alone[1], abs=0.2 * (alone[1] - alone[0]))
    low, high = intervals(np.stack([known, np.full(40, np.nan)], -1)[None])
    assert np.isfinite(low[0])
    assert np.isnan(low[1])
    assert np.isnan(high[1])


@pytest.mark.parametrize("values", [[], [0.3], [np.nan, 0.3], [np.nan, np.nan]])
def test_below_two_values_there_is_no_interval(values):
    assert all(math.isnan(x) for x in interval(values))


def test_a_constant_has_an_interval_of_no_width():
    assert interval([0.25] * 9) == (0.25, 0.25)


def test_the_same_values_give_the_same_interval():
    values = np.random.default_rng(4).normal(size=(2, 30))
    assert interval(values) == interval(values.copy())


@pytest.mark.parametrize("shift", [0.0, 0.3, 0.8])
def test_paired_p_values_are_scipys_sign_flips(shift):
    random = np.random.default_rng(5)
    a = random.normal(shift, 1, 30)
    b = random.normal(0, 0.3, 30)
    wanted = stats.permutation_test(
        (a - b,), np.mean, permutation_type="samples", n_resamples=20_000, alternative="two-sided", rng=0
    ).pvalue
    assert float(paired_p_values(a[:, None], b[:, None])[0]) == pytest.approx(wanted, abs=0.012)


def test_paired_p_values_are_even_where_there_is_no_difference():
    random = np.random.default_rng(6)
    a, b = random.normal(size=(2, 25, 500))
    p = paired_p_values(a, b)
    assert 0.02 <= float((p < 0.05).mean()) <= 0.09
    assert 0.42 <= float(p.mean()) <= 0.58
    assert (p > 0).all()


def test_equal_values_differ_with_p_of_one():
    a = np.random.default_rng(7).normal(size=(10, 2))
    assert paired_p_values(a, a).tolist() == [1, 1]


def test_pairs_with_unknown_values_are_left_out_of_the_test():
    random = np.random.default_rng(8)
    a, b = random.normal(0.5, 1, 25), random.normal(0, 1, 25)
    gaps = np.concatenate([a, [np.nan, 9.0]]), np.concatenate([b, [100.0, np.nan]])
    found = paired_p_values(gaps[0][:, None], gaps[1][:, None])[0]
    assert float(found) == pytest.approx(float(paired_p_values(a[:, None], b[:, None])[0]), abs=0.02)
    assert math.isnan(paired_p_values([[1.0], [np.nan]], [[0.0], [0.0]])[0])


def test_correction_is_benjamini_and_hochbergs_and_leaves_unknown_ones_out():
    p = np.array([0.001, 0.04, np.nan, 0.03, 0.9])
    known = np.isfinite(p)
    found = corrected(p)
    ranked = np.sort(p[known])
    by_hand = [min(ranked[j] * 4 / (j + 1) for j in range(i, 4)) for i in range(4)]
    assert np.sort(found[known]) == pytest.approx(by_hand)
    assert found[known] == pytest.approx(stats.false_discovery_control(p[known]))
    assert np.isnan(found[2])
    assert np.isnan(corrected([np.nan, np.nan])).all()


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
