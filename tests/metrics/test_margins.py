"""Shares of an effect on label margins."""

import numpy as np
import pytest

from iclgd.metrics.estimates import intervals
from iclgd.metrics.margins import effect, missed, recovered


def test_recovery_is_one_for_the_effect_itself_and_scales_with_it():
    random = np.random.default_rng(0)
    wanted = random.standard_normal((9, 3))
    for part in (1.0, 0.3, -2.0):
        assert recovered(part * wanted, wanted, centred=False).mean() == pytest.approx(part)
        assert recovered(part * wanted + 5, wanted, centred=True).mean() == pytest.approx(part)


def test_a_shift_that_all_queries_share_counts_raw_and_not_after_centring():
    random = np.random.default_rng(0)
    wanted = 3 + random.standard_normal((40, 1)) * [1, -1]
    shift = np.broadcast_to(wanted.mean(0), wanted.shape)
    assert recovered(shift, wanted, centred=False).mean() > 0.8
    assert recovered(shift, wanted, centred=True).mean() == pytest.approx(0)


def test_one_answer_for_all_queries_recovers_what_the_base_says_of_them_and_is_not_told_by_recovery():
    """(Var z − Cov(z, one)) / Var(one − z), over queries, of margins of two labels; a distance tells it apart."""
    random = np.random.default_rng(2)
    z = random.standard_normal(50)
    one = 0.3 * z + 0.5 * random.standard_normal(50)
    base, icl, alike = (np.stack([-x / 2, x / 2], -1) for x in (z, one, np.full(50, 0.7)))
    found = effect(alike, base), effect(icl, base)
    expected = (np.var(z) - np.cov(z, one, ddof=0)[0, 1]) / np.var(one - z)
    assert expected > 0.5
    assert recovered(*found, centred=True).mean() == pytest.approx(expected)
    assert missed(*found, centred=True).mean() == pytest.approx(np.var(one) / np.var(one - z))


def test_the_values_of_queries_spread_as_the_ratio_does():
    """Their standard error is that of the ratio over fresh queries, which one value each of part and whole is not."""
    random = np.random.default_rng(1)

    def draw() -> np.ndarray:
        wanted = random.standard_normal((60, 1)) * (1 + random.random((60, 1))) * [1, -1]
        return recovered(0.5 * wanted + 0.4 * random.standard_normal((60, 2)), wanted, centred=False)

    found = [draw() for _ in range(400)]
    spread = np.std([one.mean() for one in found])
    said = np.mean([one.std(ddof=1) / np.sqrt(60) for one in found])
    assert said == pytest.approx(spread, rel=0.15)


def test_an_effect_of_nothing_has_no_share():
    assert np.isnan(recovered(np.ones((4, 2)), np.zeros((4, 2)), centred=False)).all()


def test_margins_do_not_know_what_all_labels_have_in_common():
    base = np.array([[0.0, 1.0]])
    assert effect(base + 7, base).tolist() == [[0.0, 0.0]]
    assert effect(base + np.array([1.0, 3.0]), base).tolist() == [[-1.0, 1.0]]


# for one query


@pytest.mark.parametrize(
    "varies, least, most", [(0.0, 0.93, 0.98), (0.3, 0.89, 0.96), (0.6, 0.74, 0.86), (1.0, 0.45, 0.65)]
)
def test_intervals_cover_less_the_more_draws_differ_in_how_much_there_is_to_miss(varies, least, most):
    """Half of an effect, and noise; the truth is ¼ + ¼ E[1/size²] (n − 1)/(n − 3), by the mean of inverse χ²."""
    random, draws, queries, studies = np.random.default_rng(3), 5, 60, 500
    truth = 0.25 + 0.25 * np.exp(2 * varies**2) * (queries - 1) / (queries - 3)
    values = np.empty((draws, queries, studies))
    for study in range(studies):
        by_query = random.standard_normal((queries, 1)) * [1, -1]
        for draw in range(draws):
            wanted = np.exp(varies * random.standard_normal()) * by_query
            found = 0.5 * wanted + 0.5 * random.standard_normal((queries, 1)) * [1, -1]
            values[draw, :, study] = missed(found, wanted, centred=True)
    _, low, high = intervals(values)
    assert least <= float(((low <= truth) & (truth <= high)).mean()) <= most
