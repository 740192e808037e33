"""Paired differences: their p-values, their families, their verdicts, and Rec2FTP against its base rate."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from iclgd.metrics.differences import (
    Count,
    Difference,
    benjamini_hochberg,
    count,
    difference,
    differences,
    holm,
    nearest,
    recall_effects,
    recall_over_base,
)
from iclgd.metrics.estimates import Estimate, estimate

QUICK = settings(max_examples=40, deadline=None)


def known(mean: float, p: float, kind="draws", corrected=math.nan) -> Difference:
    return Difference(Estimate(mean, mean - 1, mean + 1, 0.1, 3, 40, 1, kind), p, corrected)


def test_a_difference_is_the_estimate_of_the_differences():
    a, b = np.random.default_rng(0).normal(size=(2, 3, 15))
    assert difference(a, b).estimate == estimate(a - b)
    assert difference(a, b, (-9, 9)).estimate == estimate(a - b, (-9, 9))


def test_over_tasks_the_p_value_is_students_of_the_tasks_differences():
    a, b = np.random.default_rng(1).normal(0.5, 1, (2, 6, 3, 15))
    a += np.array([1, -1, 1, -1, 1, -1.0])[:, None, None]
    wanted = stats.ttest_rel(a.mean((1, 2)), b.mean((1, 2))).pvalue
    assert difference(a, b).p == pytest.approx(wanted, rel=1e-9)
    assert difference(a, b).estimate.kind == "tasks"


def test_what_both_share_by_seed_and_query_does_not_widen_a_difference():
    random = np.random.default_rng(2)
    a, b = random.normal(size=(2, 3, 20))
    both = 100 * (random.normal(size=(3, 1)) + random.normal(size=(1, 20)))
    assert difference(a + both, b + both).p == pytest.approx(difference(a, b).p, rel=1e-6)


@QUICK
@given(st.integers(1, 4), st.integers(2, 20), st.integers(0, 99))
def test_exchanging_the_two_only_changes_the_sign(seeds, queries, seed):
    a, b = np.random.default_rng(seed).normal(size=(2, seeds, queries))
    one, two = difference(a, b), difference(b, a)
    assert one.p == pytest.approx(two.p)
    assert (one.estimate.low, one.estimate.high) == pytest.approx((-two.estimate.high, -two.estimate.low))


def test_pairs_with_an_unknown_value_are_left_out():
    a, b = np.random.default_rng(3).normal(size=(2, 3, 12))
    a[0, :], b[:, 4] = np.nan, np.nan
    rest = [1, 2], [0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11]
    assert difference(a, b).p == pytest.approx(difference(a[np.ix_(*rest)], b[np.ix_(*rest)]).p)
    assert difference(a, b).estimate.seeds == 2


def test_values_of_different_shapes_are_not_paired():
    with pytest.raises(ValueError, match="cannot be paired"):
        difference(np.zeros((3, 4)), np.zeros((3, 1)))


def test_right_and_wrong_answers_are_paired_too():
    right, wrong = np.ones((3, 12), dtype=bool), np.zeros((3, 12), dtype=bool)
    found = difference(right, wrong, (-1, 1))
    assert (found.estimate.mean, found.verdict) == (1, "above")
    assert difference(right, right, (-1, 1)).p == 1


def test_no_columns_are_no_differences():
    assert differences(np.empty((2, 3, 0)), np.empty((2, 3, 0))) == []


def test_columns_are_differences_of_their_own():
    a, b = np.random.default_rng(4).normal(size=(2, 3, 12, 5))
    for column, found in enumerate(differences(a, b)):
        assert found.p == pytest.approx(difference(a[..., column], b[..., column]).p)


def test_benjamini_and_hochberg_by_hand_and_unknown_ones_do_not_count():
    family = [known(1, p) for p in (0.001, 0.04, math.nan, 0.03, 0.9)]
    found = [c.corrected for c in benjamini_hochberg(family)]
    assert found == pytest.approx([0.004, 0.04 * 4 / 3, math.nan, 0.04 * 4 / 3, 0.9], nan_ok=True)
    assert [c.p for c in benjamini_hochberg(family)] == pytest.approx([c.p for c in family], nan_ok=True)


def test_holm_by_hand_and_unknown_ones_do_not_count():
    family = [known(1, p) for p in (0.01, 0.04, math.nan, 0.03, 0.5)]
    assert [c.corrected for c in holm(family)] == pytest.approx([0.04, 0.09, math.nan, 0.09, 0.5], nan_ok=True)
    assert [c.corrected for c in holm([known(1, 0.7), known(1, 0.6)])] == [1, 1]
    assert holm([]) == []


def at(mean: float) -> Estimate:
    return Estimate(mean, mean, mean, 0.1, 3, 40, 1, "draws")


def test_the_null_that_is_named_is_the_highest_that_a_value_is_not_shown_to_be_above():
    nulls = {"low": at(0.1), "middle": at(0.3), "high": at(0.5)}
    sure, unsure, under = known(0.2, 0.01), known(0.2, 0.2), known(-0.2, 0.01)
    assert nearest({"low": unsure, "middle": unsure, "high": sure}, nulls) == ("middle", False)
    assert nearest({"low": sure, "middle": sure, "high": sure}, nulls) == ("high", True)
    assert nearest({"low": sure, "middle": under, "high": sure}, nulls) == ("middle", False)
    assert nearest({}, nulls) is None


def test_the_null_that_is_named_is_the_lowest_that_a_distance_is_not_shown_to_be_below():
    nulls = {"low": at(0.1), "middle": at(0.3), "high": at(0.5)}
    sure, unsure = known(-0.2, 0.01), known(-0.2, 0.2)
    assert nearest({"low": sure, "middle": unsure, "high": unsure}, nulls, "below") == ("middle", False)
    assert nearest(dict.fromkeys(nulls, sure), nulls, "below") == ("low", True)
    assert nearest(dict.fromkeys(nulls, sure), nulls) == ("high", False)


@pytest.mark.parametrize(
    "of, verdict",
    [
        (known(0.2, 0.05), "above"),
        (known(-0.2, 0.01), "below"),
        (known(0.2, 0.051), "undecided"),
        (known(0.2, 0.01, corrected=0.06), "undecided"),
        (known(0.2, 0.01, corrected=0.05), "above"),
        (known(0.2, 0.01, kind="tasks"), "above"),
        (known(0.2, 0.001, kind="queries only"), "undecided"),
        (known(math.nan, math.nan, kind="none"), "undecided"),
    ],
)
def test_a_verdict_needs_more_than_one_draw_and_the_corrected_p_value(of, verdict):
    assert of.verdict == verdict


def test_layers_are_counted_by_direction():
    family = [known(1, 0.01), known(1, 0.02), known(-1, 0.02), known(-1, 0.9), known(math.nan, math.nan, "none")]
    assert count(family) == Count(up=2, down=1, of=4)


def test_recall_over_its_base_rate_by_hand():
    """Seed 1: wrong 0–3, training corrects 0 and 1, reading 0, 1 and 2. Seed 2: training corrects 3, reading 0."""
    zero = [[0, 0, 0, 0, 1], [0, 0, 0, 0, 1]]
    tuned = [[1, 1, 0, 0, 1], [0, 0, 0, 1, 0]]
    icl = [[1, 1, 1, 0, 0], [1, 0, 0, 0, 1]]
    found = recall_over_base(zero, icl, tuned)
    assert found.estimate.mean == pytest.approx(2 / 3 - (2 * 3 / 4 + 1 * 1 / 4) / 3)
    assert (found.estimate.seeds, found.estimate.queries) == (2, 5)


def test_an_answers_effect_on_the_recall_is_what_leaving_its_query_out_does():
    random = np.random.default_rng(5)
    zero = np.repeat(random.random((1, 200)) < 0.5, 2, axis=0)
    answers = np.stack([zero, *(random.random((2, 2, 200)) < 0.6)], axis=-1).astype(float)
    effects = recall_effects(answers).mean(0)
    left_out = [recall_effects(np.delete(answers, query, axis=1)).mean() for query in range(200)]
    jackknife = effects.mean() - 199 * (np.array(left_out) - effects.mean())
    assert np.corrcoef(jackknife, effects)[0, 1] > 0.999
    assert jackknife.std() == pytest.approx(effects.std(), rel=0.05)


def test_a_good_draw_that_helps_reading_and_training_alike_is_no_likeness():
    zero = np.zeros((2, 40))
    icl = np.array([[1, 1, 1, 0] * 10, [1, 0, 0, 0] * 10])
    tuned = np.array([[1] * 32 + [0] * 8, [1] * 8 + [0] * 32])  # independent of reading within each draw
    pooled = icl[tuned == 1].mean() - icl.mean()
    assert pooled > 0.1
    assert recall_over_base(zero, icl, tuned).estimate.mean == pytest.approx(0)


def test_recall_leaves_out_unknown_answers_and_tasks_in_which_training_corrected_nothing():
    random = np.random.default_rng(6)
    zero, icl, tuned = (random.random((3, 3, 2, 30)) < 0.5).astype(float)
    whole = recall_over_base(zero[:2], icl[:2], tuned[:2])
    tuned[2] = 0
    assert recall_over_base(zero, icl, tuned) == whole
    icl[1, :, 20:] = np.nan
    parts = [recall_over_base(zero[0], icl[0], tuned[0]), recall_over_base(*(x[1, :, :20] for x in (zero, icl, tuned)))]
    found = recall_over_base(zero, icl, tuned).estimate
    assert found.mean == pytest.approx(np.mean([part.estimate.mean for part in parts]))
    assert found.kind == "tasks"
    nothing = recall_over_base(zero[2], icl[2], tuned[2])
    assert math.isnan(nothing.p)
    assert nothing.estimate.kind == "none"


@pytest.mark.parametrize("turned", [False, True])
def test_no_limit_of_recall_over_its_base_rate_leaves_what_a_difference_of_shares_can_be(turned):
    """Two draws of eight queries: reading corrects what training does, once two more; turned, it corrects the others.

    The effect of one answer is beyond 1, which is no reason to refuse it.
    """
    zero, tuned = np.zeros((2, 8)), np.tile([1.0, 1, 1, 0, 0, 0, 0, 0], (2, 1))
    icl = np.array([[1.0, 1, 1, 0, 0, 0, 0, 0], [1, 1, 1, 1, 1, 0, 0, 0]])
    icl = 1 - icl if turned else icl
    effects = recall_effects(np.stack([zero, icl, tuned], axis=-1))
    assert np.abs(effects).max() > 1
    free, found = difference(effects, np.zeros_like(effects)), recall_over_base(zero, icl, tuned)
    assert max(-free.estimate.low, free.estimate.high) > 1.5
    limits = (-1, free.estimate.high) if turned else (free.estimate.low, 1)
    assert (found.estimate.low, found.estimate.high) == limits
    assert (found.estimate.mean, found.p) == (free.estimate.mean, free.p)


def test_a_seed_with_nothing_to_correct_takes_no_part_in_the_recall():
    zero, icl, tuned = [[0, 0, 0, 1], [1, 1, 1, 1]], [[1, 1, 0, 0], [0, 1, 1, 1]], [[1, 0, 0, 1], [1, 0, 1, 1]]
    effects = recall_effects(np.stack([zero, icl, tuned], axis=-1).astype(float))
    assert np.isfinite(effects).all()
    assert effects.mean() == pytest.approx(1 - 2 / 3)
    assert effects[1] == pytest.approx([1 - 2 / 3] * 4)


def test_answers_that_all_turned_are_as_sure_as_their_number():
    """Two queries that turn are one chance in two; ten are one in 512. How many draws turned them does not count."""
    for queries, p in ((2, 0.5), (5, 0.0625), (10, 2.0**-9)):
        right, wrong = np.ones((3, queries)), np.zeros((3, queries))
        up, down = difference(right, wrong, (-1, 1)), difference(wrong, right, (-1, 1))
        low = queries / (queries + 1.959963984540054**2)  # Wilson's for n of n
        assert (up.estimate.low, up.estimate.high) == pytest.approx((low, 1))
        assert (down.estimate.low, down.estimate.high) == pytest.approx((-1, -low))
        assert (up.p, down.p) == pytest.approx((p, p))
        assert up.verdict == ("above" if p <= 0.05 else "undecided")


def test_tasks_whose_answers_all_turned_count_once_each():
    found = difference(np.ones((3, 2, 40)), np.zeros((3, 2, 40)), (-1, 1))
    assert (found.p, found.verdict) == (0.25, "undecided")


def test_differences_that_are_all_half_keep_their_interval_of_no_width():
    found = difference(np.full((3, 9), 0.5), np.zeros((3, 9)))
    assert (found.estimate.low, found.estimate.high) == (0.5, 0.5)
