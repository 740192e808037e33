"""What an estimate says and over what, whatever the order, the scale and the gaps of its values."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from iclgd.metrics.estimates import COSINE, SHARE, estimate, estimates, over_seeds, share

QUICK = settings(max_examples=40, deadline=None)
shapes = st.tuples(st.integers(1, 5), st.integers(2, 12))
tasks = st.integers(2, 5)


def drawn(shape, seed=0) -> np.ndarray:
    random = np.random.default_rng(seed)
    return random.normal(size=shape) + random.normal(size=(*shape[:-1], 1))


def numbers(found) -> tuple[float, ...]:
    return found.mean, found.low, found.high, found.seed_std


def same(a, b) -> bool:
    counts = all(getattr(a, name) == getattr(b, name) for name in ("seeds", "queries", "tasks", "kind"))
    return counts and numbers(a) == pytest.approx(numbers(b), nan_ok=True)


def test_two_seeds_of_two_queries_by_hand():
    found = estimate([[1, 2], [3, 6]])
    half = stats.t.isf(0.025, 1) * 3**0.5
    assert numbers(found) == pytest.approx((3, 3 - half, 3 + half, 4.5**0.5))
    assert (found.seeds, found.queries, found.tasks, found.kind) == (2, 2, 1, "draws")


def test_a_mean_over_tasks_is_students_of_the_tasks_means_each_task_once():
    values = np.full((3, 2, 4), np.nan)
    values[0], values[1, :, :2], values[2, 0, 0] = 1.0, 2.0, 6.0  # the tasks differ in seeds and queries
    found = estimate(values)
    low, high = stats.t.interval(0.95, 2, loc=3, scale=stats.sem([1, 2, 6]))
    assert (found.mean, found.low, found.high) == pytest.approx((3, low, high))
    assert (found.seeds, found.queries, found.tasks, found.kind) == (2, 7, 3, "tasks")
    assert found.seed_std == pytest.approx(np.std([3, 1.5], ddof=1))


def test_one_seed_has_an_interval_over_queries_only_and_says_so():
    values = drawn((1, 30))
    found = estimate(values)
    low, high = stats.t.interval(0.95, 29, loc=values.mean(), scale=stats.sem(values[0]))
    assert (found.low, found.high) == pytest.approx((low, high))
    assert found.kind == "queries only"
    assert math.isnan(found.seed_std)


def test_one_seed_of_several_tasks_speaks_of_tasks():
    assert estimate(drawn((3, 1, 10))).kind == "tasks"


def test_one_task_is_no_sample_of_tasks():
    values = drawn((3, 10))
    alone = np.stack([np.full_like(values, np.nan), values])
    assert same(estimate(alone), estimate(values))
    assert estimate(alone).kind == "draws"


@pytest.mark.parametrize("values", [np.full((2, 3), np.nan), np.empty((0, 0)), np.empty((2, 0)), np.empty((0, 2, 3))])
def test_nothing_known_is_no_estimate(values):
    found = estimate(values)
    assert all(math.isnan(x) for x in numbers(found))
    assert (found.seeds, found.queries, found.tasks, found.kind) == (0, 0, 0, "none")


def test_a_single_value_is_its_own_mean_without_an_interval():
    found = estimate([[np.nan, 0.25]])
    assert (found.mean, found.kind) == (0.25, "none")
    assert math.isnan(found.low)
    assert math.isnan(found.high)


def test_a_constant_has_an_interval_of_no_width():
    assert numbers(estimate(np.full((3, 9), 0.25))) == (0.25, 0.25, 0.25, 0)


@QUICK
@given(shapes, st.booleans(), st.floats(-100, 100), st.floats(0.1, 10))
def test_an_estimate_moves_and_scales_with_its_values(shape, several, shift, scale):
    values = drawn((3, *shape) if several else shape)
    one, two = estimate(values), estimate(scale * values + shift)
    assert (two.mean, two.low, two.high) == pytest.approx([scale * x + shift for x in (one.mean, one.low, one.high)])
    assert two.seed_std == pytest.approx(scale * one.seed_std, nan_ok=True)
    flipped = estimate(-values)
    assert (flipped.low, flipped.high) == pytest.approx((-one.high, -one.low))


@QUICK
@given(tasks, shapes, st.integers(0, 99), st.booleans())
def test_the_order_of_tasks_seeds_and_queries_does_not_matter(number, shape, seed, several):
    random = np.random.default_rng(seed)
    values = drawn((number, *shape), seed) if several else drawn(shape, seed)
    values[..., 0] = np.nan if seed % 2 else 0
    mixed = values
    for axis in range(values.ndim):
        mixed = np.take(mixed, random.permutation(values.shape[axis]), axis)
    assert same(estimate(mixed), estimate(values))


@QUICK
@given(tasks, shapes, st.integers(0, 99), st.booleans())
def test_unknown_tasks_seeds_and_queries_are_as_if_they_were_not_there(number, shape, seed, several):
    values = drawn((number, *shape), seed) if several else drawn(shape, seed)
    wider = np.full([n + 2 for n in values.shape], np.nan)
    wider[tuple(slice(1, -1) for _ in values.shape)] = values
    assert same(estimate(wider), estimate(values))


@QUICK
@given(tasks, shapes, st.booleans())
def test_columns_do_not_see_each_other(number, shape, several):
    values = drawn((number, *shape, 4) if several else (*shape, 4))
    values[..., 2] = np.nan
    for column, found in enumerate(estimates(values)):
        if column != 2:
            assert same(found, estimate(values[..., column]))
        else:
            assert found.kind == "none"


def test_two_seeds_of_an_accuracy_have_an_interval_between_0_and_1():
    found = over_seeds([0.58, 0.744], SHARE)
    assert 0 < found.low < found.mean < found.high < 1
    plain = over_seeds([0.58, 0.744])
    assert plain.high > 1
    assert (plain.low, plain.high) == pytest.approx(stats.t.interval(0.95, 1, loc=0.662, scale=0.082))
    assert found.seed_std == pytest.approx(0.164 / 2**0.5)


def test_a_cosines_interval_is_that_of_the_share_it_maps_to():
    cosines = np.tanh(drawn((3, 8)))
    one, two = estimate(cosines, COSINE), estimate((1 + cosines) / 2, SHARE)
    assert (one.low, one.high) == pytest.approx((2 * two.low - 1, 2 * two.high - 1))


def test_values_outside_their_bounds_are_an_error_and_rounding_is_none():
    with pytest.raises(ValueError, match="outside the bounds"):
        estimate([[0.2, 1.1]], SHARE)
    with pytest.raises(ValueError, match="outside the bounds"):
        share([[0.2, -1.0]])
    rounded = estimate([[1.0000001, 1.0000001], [1, 1]], COSINE)
    assert rounded.low == pytest.approx(1)


def test_a_share_of_one_seed_is_wilsons():
    answers = np.arange(20)[None] < 7
    wanted = stats.binomtest(7, 20).proportion_ci(0.95, method="wilson")
    found = share(answers)
    assert (found.mean, found.low, found.high) == pytest.approx((0.35, wanted.low, wanted.high))
    assert found.kind == "queries only"


def test_a_share_of_several_seeds_is_the_bounded_estimate_of_its_answers():
    answers = (np.random.default_rng(0).random((4, 30)) < 0.8).astype(float)
    assert same(share(answers), estimate(answers, SHARE))
    several = (np.random.default_rng(0).random((3, 4, 30)) < 0.8).astype(float)
    assert same(share(several), estimate(several, SHARE))
    gaps = np.where(np.arange(30) < 20, answers, np.nan)
    assert same(share(gaps), share(answers[:, :20]))


def test_answers_that_are_all_alike_count_once_a_query_or_once_a_task():
    wanted = stats.binomtest(20, 20).proportion_ci(0.95, method="wilson")
    assert (share(np.ones((3, 20))).low, share(np.ones((3, 20))).high) == pytest.approx((wanted.low, 1))
    assert share(np.zeros((3, 20))).high == pytest.approx(1 - wanted.low)
    wanted = stats.binomtest(6, 6).proportion_ci(0.95, method="wilson")
    assert share(np.ones((6, 3, 20))).low == pytest.approx(wanted.low)


def test_two_queries_whose_answers_are_all_alike_count_twice_however_many_seeds_gave_them():
    wanted = stats.binomtest(2, 2).proportion_ci(0.95, method="wilson")
    assert share(np.ones((3, 2))).low == pytest.approx(wanted.low)
    wanted = stats.binomtest(3, 3).proportion_ci(0.95, method="wilson")
    assert share(np.ones((3, 1))).low == pytest.approx(wanted.low)


@pytest.mark.parametrize("seeds", [2, 3, 5])
def test_the_seeds_spread_is_that_of_their_means_with_one_degree_of_freedom_less(seeds):
    values = drawn((seeds, 7))
    assert estimate(values).seed_std == pytest.approx(np.std(values.mean(1), ddof=1))


def test_one_seed_is_not_divided_by_the_seeds_beside_it():
    with np.errstate(all="raise"):
        assert math.isnan(estimate(drawn((1, 5))).seed_std)


def test_a_share_of_nothing_has_no_interval():
    assert math.isnan(share([[np.nan, np.nan]]).low)
    assert math.isnan(share([[1.0]]).low)
