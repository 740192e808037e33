"""Shares of an effect on label margins."""

import numpy as np
import pytest

from iclgd.metrics.estimates import intervals
from iclgd.metrics.margins import effect, missed, over_draws, recovered, shares_over_draws, whole


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


@pytest.mark.parametrize("measure", [recovered, missed])
def test_once_centred_no_query_s_value_knows_a_shift_that_all_share(measure):
    """Not their mean alone: an interval would be too wide or too narrow."""
    random = np.random.default_rng(7)
    found, wanted = random.standard_normal((2, 9, 3))
    values = measure(found, wanted, True)
    assert values.std() > 0.1
    for shift in (np.array([5.0, -2.0, 0.3]), np.full(3, -4.0)):
        assert measure(found + shift, wanted, True) == pytest.approx(values)
        assert measure(found, wanted + shift, True) == pytest.approx(values)
        assert measure(found + shift, wanted, False) != pytest.approx(values, abs=0.1)


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


# over draws


def drawn(random, draws: int, queries: int, varies: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A study of half of an effect, and noise; draws' effects differ in size. Missed, recovered, and of how much."""
    by_query = random.standard_normal((queries, 1)) * [1, -1]
    found = []
    for _ in range(draws):
        wanted = np.exp(varies * random.standard_normal()) * by_query
        half = 0.5 * wanted + 0.5 * random.standard_normal((queries, 1)) * [1, -1]
        found.append((missed(half, wanted, True), recovered(half, wanted, True), whole(wanted, True)))
    return tuple(np.stack(part) for part in zip(*found, strict=True))


@pytest.mark.parametrize("draws", [3, 5, 8])
@pytest.mark.parametrize("varies, least", [(0.0, 0.93), (0.3, 0.93), (0.6, 0.9), (1.0, 0.84)])
def test_intervals_over_draws_cover_a_share_whatever_there_is_to_have_a_share_of(draws, varies, least):
    """Of the sum over draws: E Σ‖½ wanted − noise‖² / E Σ‖wanted‖² = ¼ + ¼ exp(−2 varies²), and ½."""
    random, truths = np.random.default_rng(3), (0.25 + 0.25 * np.exp(-2 * varies**2), 0.5)
    studies = [drawn(random, draws, 40, varies) for _ in range(500)]
    for kind, truth in enumerate(truths):
        values = np.stack([over_draws(one[kind][None], one[2][None])[0] for one in studies], -1)
        _, low, high = intervals(values)
        covered = float(((low <= truth) & (truth <= high)).mean())
        assert least <= covered <= 0.99


def left_out(parts: np.ndarray, wholes: np.ndarray) -> np.ndarray:
    """The ratio of sums without each of the draws."""
    return np.array([np.delete(parts, i).sum() / np.delete(wholes, i).sum() for i in range(len(parts))])


@pytest.mark.parametrize("draws", [2, 3])
def test_a_draw_with_most_of_the_whole_does_not_seem_to_lie_next_to_the_ratio_that_it_makes(draws):
    """The spread of a jackknife: the ratio without a draw is as far from the ratio as the draw's values say."""
    shares, wholes = np.array([0.2, 0.9, 0.5])[-draws:], np.array([1.0, 2.0, 9.0])[-draws:]
    ratio = (shares * wholes).sum() / wholes.sum()
    values = over_draws(shares[None, :, None], wholes[None, :, None])[0, :, 0]
    pseudo = ratio + (draws - 1) * (ratio - left_out(shares * wholes, wholes))
    assert values == pytest.approx(pseudo - pseudo.mean() + ratio, rel=1e-12)


def test_a_lone_draw_has_the_values_that_it_has_by_itself():
    random = np.random.default_rng(8)
    found, wanted = random.standard_normal((2, 6, 2))
    shares, wholes = recovered(found, wanted, False), whole(wanted, False)
    assert over_draws(shares[None, None], wholes[None, None])[0, 0] == pytest.approx(shares, rel=1e-12)


def test_a_draw_with_fewer_queries_counts_by_those_that_it_has():
    random, counts = np.random.default_rng(6), np.array([5, 3, 4])
    pairs = [random.standard_normal((2, count, 2)) for count in counts]
    of_draws = [(recovered(*pair, False), whole(pair[1], False)) for pair in pairs]
    values = shares_over_draws(("a",), (0, 1, 2), lambda _task, seed: of_draws[seed])[0]
    assert np.isfinite(values).sum(1).tolist() == counts.tolist()
    parts = np.array([(found * wanted).sum() for found, wanted in pairs])
    wholes = np.array([(wanted**2).sum() for _, wanted in pairs])
    ratio = parts.sum() / wholes.sum()
    assert np.nanmean(values) == pytest.approx(ratio, rel=1e-12)
    apart = 2 / 3 * 12 * (ratio - left_out(parts, wholes))  # of a draw's queries together
    assert np.nansum(values - ratio, 1) == pytest.approx(apart - counts * apart.sum() / 12, rel=1e-9)


@pytest.mark.parametrize("varies, least", [(0.0, 0.93), (0.3, 0.92), (0.6, 0.89), (1.0, 0.86)])
def test_intervals_cover_where_draws_differ_in_size_and_in_their_share(varies, least):
    """Without a jackknife's weights 82% at .6, and 65% at 1."""
    random = np.random.default_rng(5)
    wholes = np.exp(2 * varies * random.standard_normal((1000, 5, 1)))
    shares = 0.6 + 0.12 * random.standard_normal((1000, 5, 1))
    _, low, high = intervals(np.moveaxis(over_draws(shares, wholes), 0, -1))
    assert least <= ((low <= 0.6) & (high >= 0.6)).mean() <= 0.985


@pytest.mark.parametrize("varies, least, most", [(0.3, 0.8, 0.92), (0.6, 0.55, 0.7)])
def test_shares_that_grow_with_the_effect_are_not_covered(varies, least, most):
    """Of five draws: the few large ones that make the truth are seldom among them."""
    random = np.random.default_rng(6)
    wholes = np.exp(2 * varies * random.standard_normal((1000, 5, 1)))
    truth = np.exp(2 * varies**2 * (1.3**2 - 1))  # E wholes^1.3 / E wholes
    _, low, high = intervals(np.moveaxis(over_draws(wholes**0.3, wholes), 0, -1))
    assert least <= ((low <= truth) & (high >= truth)).mean() <= most


def test_the_truth_lies_above_intervals_of_skewed_shares_that_miss_it():
    random = np.random.default_rng(7)
    wholes = np.exp(2 * 0.3 * random.standard_normal((2000, 5, 1)))
    shares = np.exp(0.6 * random.standard_normal((2000, 5, 1)) - 0.18)  # of mean 1
    _, low, high = intervals(np.moveaxis(over_draws(shares, wholes), 0, -1))
    assert 0.8 <= ((low <= 1) & (high >= 1)).mean() <= 0.92
    assert (high < 1).mean() > 4 * (low > 1).mean()


def test_draws_count_by_what_there_is_to_have_a_share_of():
    random = np.random.default_rng(4)
    sizes = np.array([0.1, 1.0, 5.0])[:, None, None]
    wanted, found = sizes * random.standard_normal((3, 20, 2)), random.standard_normal((3, 20, 2))
    shares = np.stack([recovered(f, w, False) for f, w in zip(found, wanted, strict=True)])
    wholes = np.stack([whole(w, False) for w in wanted])
    pooled = over_draws(shares[None], wholes[None])
    assert pooled.mean() == pytest.approx((found * wanted).sum() / (wanted**2).sum(), rel=1e-12)
    assert abs(pooled.mean() - shares.mean()) > 0.1
    alike = wanted / np.sqrt((wanted**2).sum((1, 2), keepdims=True))  # draws of one size count as one of all queries
    shares_alike = np.stack([recovered(f, w, False) for f, w in zip(found, alike, strict=True)])
    flat = recovered(found.reshape(60, 2), alike.reshape(60, 2), False)
    assert over_draws(shares_alike[None], (alike**2).sum(-1)[None]).ravel() == pytest.approx(flat, rel=1e-9)
    twice = over_draws(np.stack([shares, 2 * shares], -1)[None], wholes[None])
    assert twice[..., 1] == pytest.approx(2 * pooled, rel=1e-12)


def test_tasks_have_shares_of_their_own_and_draws_without_one_are_left_out():
    shares, wholes = np.array([[[0.2], [0.4], [np.nan]], [[1.0], [3.0], [2.0]]]), np.ones((2, 3, 1))
    wholes[0, 1], wholes[1, 2] = 3, np.nan
    found = over_draws(shares, wholes)
    assert np.isnan(found[0, 2])
    assert np.isnan(found[1, 2])
    assert np.nanmean(found[0]) == pytest.approx((0.2 + 3 * 0.4) / 4)
    assert np.nanmean(found[1]) == pytest.approx(2)
    assert np.isnan(over_draws(shares, 0 * wholes)).all()


def test_episodes_without_scores_are_nan_and_the_rest_is_pooled():
    known = {("a", 0): 0.2, ("a", 1): 0.4, ("b", 1): 0.7}

    def value(task: str, seed: int) -> tuple[np.ndarray, np.ndarray] | None:
        share = known.get((task, seed))
        return None if share is None else (np.full(2, share), np.full(2, 1.0 + 2 * seed))

    found = shares_over_draws(("a", "b"), (0, 1), value)
    assert found.shape == (2, 2, 2)
    assert found[0].mean() == pytest.approx((0.2 + 3 * 0.4) / 4)
    assert np.isnan(found[1, 0]).all()
    assert found[1, 1] == pytest.approx(0.7)
