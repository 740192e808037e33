"""The variance of a mean over crossed seeds and queries, its interval and its p-value, by hand and against scipy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from iclgd.metrics.crossed import Spread, half_width, limits, p_value, spread, wilson

QUICK = settings(max_examples=40, deadline=None)
BY_HAND = np.array([[1.0, 2.0], [3.0, 6.0]])[..., None]  # mean 3, seeds 1.5 and 4.5, queries 2 and 4, residuals ±.5


def of_parts(mean, by_seed, total, seeds, queries) -> Spread:
    return Spread(*(np.atleast_1d(np.asarray(x)) for x in (mean, by_seed, total, seeds, queries)))


def test_the_parts_of_the_variance_are_those_worked_out_by_hand():
    found = spread(BY_HAND)
    assert found.mean == pytest.approx([3])
    assert found.by_seed == pytest.approx([4.5 / 2])
    assert found.total == pytest.approx([4.5 / 2 + 2 / 2 - 1 / 4])
    assert (found.seeds[0], found.queries[0]) == (2, 2)


def test_queries_that_differ_less_than_their_residuals_add_nothing():
    found = spread(np.array([[1.0, -1.0], [3.0, 5.0]])[..., None])  # seeds 0 and 4, queries 2 and 2, residuals ±1
    assert found.by_seed == pytest.approx([4])
    assert found.total == pytest.approx([4])


def test_seeds_and_queries_that_agree_by_luck_leave_a_fifth_of_the_residuals_variance():
    found = spread(np.array([[1.0, -1.0], [-1.0, 1.0]])[..., None])
    assert found.by_seed == pytest.approx([0])
    assert found.total == pytest.approx([0.2 * 4 / 4])


def test_a_gap_changes_the_weights_of_its_seed_and_its_query():
    gap = np.array([[1.0, 2.0, 3.0], [5.0, 4.0, np.nan]])[..., None]  # mean 3; totals about it −3, 3 and 0, 0, 0
    found = spread(gap)
    assert found.mean == pytest.approx([3])
    unbiased = (0.36 + 0.16) / (0.36 * (1 - 1.2 + 0.52) + 0.16 * (1 - 0.8 + 0.52))  # of weights 3/5 and 2/5
    assert found.by_seed == pytest.approx([unbiased * (9 + 9) / 25])
    assert found.total == pytest.approx([unbiased * (9 + 9) / 25])
    assert (found.seeds[0], found.queries[0]) == (2, 3)


def test_with_equal_degrees_of_freedom_the_interval_is_students():
    assert half_width(spread(BY_HAND)) == pytest.approx([stats.t.isf(0.025, 1) * 3**0.5])
    assert half_width(spread(BY_HAND), 0.2) == pytest.approx([stats.t.isf(0.1, 1) * 3**0.5])
    assert half_width(spread(BY_HAND), 0.01) == pytest.approx([stats.t.isf(0.005, 1) * 3**0.5])


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("miss", [0.05, 0.3])
def test_the_critical_value_is_mixed_by_a_smooth_step_of_the_seeds_share(share, miss):
    step = (
        integrate.quad(lambda x: x * (1 - x) ** 1.5, 0, share)[0]
        / integrate.quad(lambda x: x * (1 - x) ** 1.5, 0, 1)[0]
    )
    wanted = step * stats.t.isf(miss / 2, 2) + (1 - step) * stats.t.isf(miss / 2, 39)
    assert half_width(of_parts(0, 4 * share, 4, 3, 40), miss) == pytest.approx([2 * wanted], rel=1e-6)


def test_beyond_95_percent_the_interval_is_banerjees_and_never_narrower_than_the_95_percent_one():
    wanted = (stats.t.isf(0.005, 2) ** 2 * 1 + stats.t.isf(0.005, 39) ** 2 * 3) ** 0.5
    assert half_width(of_parts(0, 1, 4, 3, 40), 0.01) == pytest.approx([wanted])
    narrow = of_parts(0, 0.5, 1, 2, 40)
    misses = np.geomspace(1e-6, 1, 400)
    widths = np.array([half_width(narrow, miss)[0] for miss in misses])
    assert (np.diff(widths) <= 1e-12).all()


def test_one_number_a_seed_gives_students_interval_and_p_value():
    values = np.random.default_rng(0).normal(1, 1, (6, 1, 5)) * np.array([1e-3, 1, 1, 30, 1])
    found = spread(values)
    low, high = stats.t.interval(0.95, 5, loc=values[:, 0].mean(0), scale=stats.sem(values[:, 0]))
    assert limits(found.mean, half_width(found), None) == (pytest.approx(low), pytest.approx(high))
    assert p_value(found) == pytest.approx(stats.ttest_1samp(values[:, 0], 0).pvalue, rel=1e-9)


def test_one_seed_gives_students_interval_and_p_value_over_queries():
    values = np.random.default_rng(1).normal(0.3, 1, (1, 40, 5))
    found = spread(values)
    assert half_width(found) == pytest.approx(stats.t.isf(0.025, 39) * stats.sem(values[0]))
    assert p_value(found) == pytest.approx(stats.ttest_1samp(values[0], 0).pvalue, rel=1e-9)


def test_one_seed_has_no_spread_of_seeds_and_one_query_none_of_queries():
    values = np.array([0.1, 0.2, 0.4, 0.7])  # their distances from the mean do not cancel to the last bit
    assert spread(values[None, :, None]).by_seed.tolist() == [0]
    found = spread(values[:, None, None])
    assert found.total.tolist() == found.by_seed.tolist()


def test_what_is_not_known_at_all_is_divided_by_nothing():
    values = np.full((2, 3, 2), np.nan)
    values[:, :, 1] = [[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]
    with np.errstate(all="raise"):
        found = spread(values)
    assert np.isnan(found.mean).tolist() == [True, False]
    assert found.by_seed.tolist() == [0, 0]


def test_below_two_values_there_is_no_interval_and_no_p_value():
    for values in ([[0.3]], [[np.nan, 0.3]], [[np.nan], [0.3]], [[np.nan]]):
        found = spread(np.array(values)[..., None])
        assert np.isnan(half_width(found)).all()
        assert np.isnan(p_value(found)).all()


def test_a_difference_that_never_varies_has_the_smallest_p_value_and_no_difference_the_largest():
    assert p_value(spread(np.full((3, 5, 1), 0.5))) == pytest.approx([1e-16])
    assert p_value(spread(np.zeros((3, 5, 1)))) == pytest.approx([1])


@QUICK
@given(st.floats(0, 5), st.floats(0, 1), st.integers(2, 8), st.integers(2, 200), st.booleans())
def test_p_is_at_most_5_percent_exactly_where_the_interval_leaves_0_out(mean, share, seeds, queries, bounded):
    bounds = (-6.0, 6.0) if bounded else None
    of = of_parts(mean, share, 1.0, seeds, queries)
    low, high = limits(of.mean, half_width(of), bounds)
    if abs(low[0]) > 1e-9:
        assert (p_value(of, bounds)[0] <= 0.05) == (low[0] > 0 or high[0] < 0)


@pytest.mark.parametrize("miss", [0.001, 0.02, 0.1, 0.6])
def test_the_p_value_is_the_miss_of_the_interval_that_ends_at_0(miss):
    of = of_parts(0, 0.6, 1, 3, 60)
    ends = of_parts(half_width(of, miss), 0.6, 1, 3, 60)
    assert p_value(ends) == pytest.approx([miss], rel=1e-9)


@pytest.mark.parametrize("right, answers", [(7, 20), (0, 5), (5, 5), (1, 200)])
def test_wilsons_interval_is_scipys(right, answers):
    wanted = stats.binomtest(right, answers).proportion_ci(0.95, method="wilson")
    found = wilson(np.array([right / answers]), np.array([stats.norm.isf(0.025) ** 2 / answers]))
    assert found == (pytest.approx([wanted.low], abs=1e-12), pytest.approx([wanted.high]))


@QUICK
@given(st.floats(-0.99, 0.99), st.floats(0, 100))
def test_a_bounded_interval_holds_its_mean_and_stays_inside_at_any_width(mean, half):
    low, high = limits(np.array([mean]), np.array([half]), (-1, 1))
    assert -1 <= low[0] <= mean + 1e-12
    assert mean - 1e-12 <= high[0] <= 1


def test_the_bounds_only_matter_near_them():
    low, high = limits(np.array([0.2]), np.array([0.01]), (-1, 1))
    assert low == pytest.approx([0.19], abs=2e-4)
    assert high == pytest.approx([0.21], abs=2e-4)


def test_the_ends_of_a_bounded_interval_solve_wilsons_equation_in_the_bounds_own_units():
    mean, half = 0.8, 0.3
    for end in limits(np.array([mean]), np.array([half]), (-1, 1)):
        assert (mean - end) ** 2 == pytest.approx(half**2 * (1 - end**2) / (1 - mean**2))
