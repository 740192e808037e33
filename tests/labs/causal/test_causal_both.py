"""Whether training's heads are reading's: on results that were made up."""

from dataclasses import replace

import numpy as np
import pytest
from planted_causal import AT, HEADS, LAYERS, SHUFFLED, Plant, margins, planted
from scipy import stats

from iclgd.labs.causal.answer import answer, carried, trained
from iclgd.labs.causal.heads import Heads, foremost
from iclgd.labs.causal.tables import NULLS
from iclgd.labs.causal.view import shares_of
from iclgd.metrics.margins import effect, recovered
from iclgd.report.numbers import Number, p_value

ALL = LAYERS * HEADS


def with_heads(**trained) -> Plant:
    plant = Plant()
    plant.trained |= {{"own": None, "other": "other query"}.get(name, name): one for name, one in trained.items()}
    return plant


# what is planted


def test_shares_of_all_heads_at_once_are_the_mean_of_what_each_recovers():
    random = np.random.default_rng(0)
    found, zero, end = (random.standard_normal(shape) for shape in ((3, 2, 7, 4), (7, 4), (7, 4)))
    for queries in (slice(None), slice(1, None, 2)):
        expected = [
            [recovered(effect(one, zero)[queries], effect(end, zero)[queries], False).mean() for one in row]
            for row in found
        ]
        np.testing.assert_allclose(shares_of((found, zero, end), queries), expected, atol=1e-12)
    assert np.isnan(shares_of((found, zero, zero))).all()


def test_heads_that_carry_both_effects_alike_have_a_rank_correlation_of_one():
    found = Heads(planted(seeds=3))
    np.testing.assert_allclose(found.correlation(0.01), np.ones((1, 3, 1)))
    np.testing.assert_allclose(found.correlation(0.01, "random"), -np.ones((1, 3, 1)))
    expected = stats.spearmanr(np.arange(ALL), SHUFFLED)[0]
    np.testing.assert_allclose(found.correlation(0.01, "other query"), np.full((1, 3, 1), expected))


def test_training_is_measured_by_its_own_effect_and_by_reading_s():
    """Training goes half of reading's way, so that its heads carry half as much of it."""
    view = planted(seeds=2)
    own, along = (shares_of(view.head_runs("sentiment", 0, 0.01, of=of)) for of in ("gd", "icl"))
    np.testing.assert_allclose(own.ravel(), np.arange(ALL) / 100, atol=1e-12)
    np.testing.assert_allclose(along, own / 2, rtol=0.05)
    table = Heads(view).listed()
    assert [str(entry) for entry in table.rows[0]][:2] == ["gd 0.01: layer 3, head 2", ".110"]
    assert str(table.rows[0][2]) in (".055", ".056", ".054")
    assert str(table.rows[0][3]) == ".110"
    assert len(table.rows) == 10


def test_foremost_heads_in_common_are_counted():
    trained = np.zeros(ALL)
    trained[[ALL - 1, 0, 1]] = (0.5, 0.4, 0.3)  # one of the three is among reading's
    found = Heads(planted(with_heads(own=trained), seeds=2, heads=3))
    np.testing.assert_allclose(found.common(0.01), np.full((1, 2, 1), 1 / 3))
    np.testing.assert_allclose(found.common(0.01, "random"), 0)


def test_the_foremost_are_the_largest_and_no_more_than_there_are():
    shares = np.array([[0.1, -0.9, 0.3], [0.2, 0.0, 0.3]])
    assert foremost(shares, 2).tolist() == [[False, False, True], [False, False, True]]
    assert foremost(shares, 3).tolist() == [[False, False, True], [True, False, True]]
    assert foremost(shares, 99).all()


def test_what_the_foremost_carry_is_not_measured_on_the_queries_that_chose_them():
    """A head that moves every other query alone is chosen on these, and carries nothing on the rest."""

    class Chance(Plant):
        def _trained_heads(self, seed):
            for one in super()._trained_heads(seed):
                values = np.broadcast_to(margins(AT["zero-shot"], seed), one.values.shape).copy()
                values[2, 1, ::2] = margins(AT["gd"], seed)[::2]
                yield replace(one, values=values)

    found = Heads(planted(Chance(), seeds=2, heads=1))
    np.testing.assert_allclose(found.together(0.01), 0, atol=1e-12)
    honest = Heads(planted(seeds=2, heads=2))
    np.testing.assert_allclose(honest.together(0.01), 0.11 + 0.10)
    np.testing.assert_allclose(honest.together(), 0.11 + 0.10)


def test_the_table_has_reading_training_and_the_nulls_of_training_with_differences():
    found = Heads(planted(seeds=3, rates="0.01,0.1")).table()
    names = [str(row[0]).strip() for row in found.rows]
    assert names == [
        "icl", "gd 0.01", "another query's update", "random, as long", "gd 0.1", "another query's update",
        "random, as long",
    ]  # fmt: skip
    assert [str(entry) for entry in found.rows[1]][1:4] == ["1.00 [1.00 1.00]", "", ""]
    assert str(found.rows[3][1]).startswith("-1.00")
    assert str(found.rows[3][2]).startswith("2.00")


def test_no_interval_reaches_beyond_what_a_correlation_or_a_share_of_heads_can_be():
    """Two draws: training's heads are reading's in one and their reverse in the other."""

    class Turned(Plant):
        def _trained_heads(self, seed):
            heads = np.arange(ALL) / 100
            self.trained = {None: heads * (-1) ** seed, "random": heads}
            return super()._trained_heads(seed)

    found = Heads(planted(Turned(), seeds=2, heads=3))
    less = found.beside.differences[0.01, "random, as long"].estimate
    assert less.mean == pytest.approx(-1)
    assert -2 <= less.low < less.high <= 2
    common = found.table().rows[1][4]
    assert common.value == pytest.approx(0.5)
    assert 0 <= common.low < common.high <= 1


@pytest.mark.parametrize(
    "other, says",
    [(SHUFFLED / 100, ", more than the "), (np.arange(ALL) / 100, ", not shown to be more than the 1.00 [1.00 1.00]")],
)
def test_the_answer_is_no_surer_than_beside_the_nearest_null(other, says):
    found = Heads(planted(with_heads(other=other), seeds=3)).said()
    assert says in found
    assert found.endswith("of the nearest null, another query's update.")
    assert found in answer(planted(with_heads(other=other), seeds=3))


def test_the_answer_has_the_null_s_interval_as_the_table_has_it():
    """Of a correlation, which has bounds: two draws of 1 and .3 would reach far beyond them."""

    class Varying(Plant):
        def __call__(self, cell):
            near = np.arange(ALL) / 100
            self.trained["other query"] = near if cell.labels["seed"] == 0 else (near + SHUFFLED / 100) / 2
            return super().__call__(cell)

    class Both(Varying):
        def __call__(self, cell):
            found = np.arange(ALL) / 100
            self.trained[None] = found if cell.labels["seed"] else (found + SHUFFLED / 100) / 2
            return super().__call__(cell)

    heads = Heads(planted(Both(), seeds=2))
    own = str(heads.table().rows[1][1])
    assert own.endswith(" 1.00]")
    assert f"has a rank correlation of {own}, " in heads.said()
    heads = Heads(planted(Varying(), seeds=2))
    shown = str(heads.table().rows[2][1])
    assert shown.endswith(" 1.00]")
    assert f"the {shown} of the nearest null" in heads.said()


def test_one_draw_decides_nothing_and_training_that_diverged_has_no_heads():
    assert "not shown to be more than" in Heads(planted(seeds=1)).said()
    plant = Plant()
    plant.diverged = True
    view = planted(plant)
    assert Heads(view).said() == ""
    assert Heads(view).listed().rows == []
    assert [str(entry) for entry in Heads(view).table().rows[1]][1:] == ["n/a", "", "", "n/a", "n/a"]


class ByRate(Plant):
    """At .1 training carries more of reading's effect, and its heads are not reading's; at .01 they are."""

    def __init__(self, *diverged: tuple[float, int]):
        super().__init__()
        self.where = diverged

    def __call__(self, cell):
        rate, heads = cell.labels.get("rate"), np.arange(ALL) / 100
        self.diverged = (rate, cell.labels["seed"]) in self.where
        self.at["gd"] = 0.4 if rate == 0.1 else -0.6
        noise = np.random.default_rng([cell.labels["seed"], int(100 * (rate or 0))]).random(ALL)
        self.trained[None] = heads[SHUFFLED[::-1]] + 0.02 * noise if rate == 0.1 else heads
        self.trained["other query"] = heads[SHUFFLED] + 0.05 * noise
        return super().__call__(cell)


def test_heads_are_spoken_of_at_their_own_rate_which_is_said_to_be_chosen():
    view = planted(ByRate(), seeds=3, rates="0.01,0.1", init="trained")
    (attention, heads) = trained(view).split(". What single heads carry in ")
    chosen = "(of 2 rates the one with most, chosen after the fact)"
    assert attention.startswith(f"Training's attention at 0.1 {chosen} carries .7")
    assert heads.startswith(f"training at 0.01 {chosen} and in reading has a rank")
    assert "correlation of 1.00 [1.00 1.00], " in heads


def test_p_values_of_a_rate_that_was_chosen_are_corrected_for_all_rates():
    found = Heads(planted(ByRate(), seeds=4, rates="0.01,0.1", init="trained"))
    apart = found.beside.differences
    assert set(apart) == {(rate, title) for rate in (0.01, 0.1) for title in NULLS.values()}
    least = min((one for one in apart.values() if one.p > 0), key=lambda one: one.p)
    rest = sum(one.p >= least.p for one in apart.values())
    assert least.corrected == pytest.approx(rest * least.p)
    assert rest > 2
    for rate, first in ((0.01, 2), (0.1, 5)):
        for place, null in enumerate(NULLS.values()):
            shown, one = found.table().rows[first + place], apart[rate, null]
            assert [str(entry) for entry in shown[2:4]] == [
                str(Number(one.estimate.mean, one.estimate.low, one.estimate.high, 2)), p_value(one.corrected)
            ]  # fmt: skip


def test_rates_at_which_a_draw_diverged_are_chosen_only_where_there_is_no_other():
    view = planted(ByRate((0.1, 1)), seeds=3, rates="0.01,0.1", init="trained")
    assert carried(view).chosen() == (
        " at 0.01 (of 2 rates the one with most where no draw diverged, chosen after the fact)"
    )
    view = planted(ByRate((0.1, 1), (0.01, 0), (0.01, 1)), seeds=3, rates="0.01,0.1", init="trained")
    assert carried(view).chosen() == (
        " at 0.1 (of 2 rates the one with most, chosen after the fact; diverged in 1 of 3 draws, which are left out)"
    )


def test_training_that_diverged_in_the_first_weights_alone_has_no_difference():
    class First(Plant):
        def __call__(self, cell):
            self.diverged = cell.labels["init"] == "trained"
            return super().__call__(cell)

    view = planted(First(), seeds=2)
    assert carried(view).differences == {}
    assert trained(view) == "Finetuning diverged at every rate."


# on a model
