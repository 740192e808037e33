"""The patch for all queries against training of the same matrices, on results that were made up."""

from dataclasses import replace

import numpy as np
import pytest
from planted_implicit import ANSWERS, Plant, planted

from iclgd.labs.implicit.against import ACCURACY, AGREES, MISSED, RECOVERED, Against
from iclgd.labs.implicit.page import page
from iclgd.labs.implicit.view import number
from iclgd.metrics.margins import missed
from iclgd.report.numbers import p_value
from iclgd.results import Result

NEAR, FAR = (0.9, 1.0), (0.5, -2.0)  # shares of reading's shift, and of what it does by the query


class Uneven(Plant):
    """Draws and queries that differ a little, so that intervals have a width."""

    def __call__(self, cell):
        found = super().__call__(cell)
        random = np.random.default_rng([cell.labels.get("seed", 0), int(1000 * cell.labels.get("rate", 0))])

        def moved(one):
            if one.labels["quantity"] != "scores" or one.labels["patch"] in ("zero-shot", "icl"):
                return one
            return replace(one, values=one.values + 0.1 * random.standard_normal(one.values.shape))

        return Result(found.facts, [moved(one) for one in found.arrays])


def against(shift: float, by_query: float, gd: dict, kind: type[Plant] = Uneven, **fields) -> Against:
    plant = kind(shift=shift, by_query=by_query)
    plant.gd = gd
    return Against(planted(plant, **{"rates": tuple(gd), "seeds": 4, "init": "trained", **fields}))


def test_missed_is_a_distance_which_recovered_is_not():
    random = np.random.default_rng(0)
    wanted = random.standard_normal((9, 3))
    for part, left in ((1.0, 0.0), (0.0, 1.0), (10.0, 81.0), (-1.0, 4.0)):
        assert missed(part * wanted, wanted, centred=False).mean() == pytest.approx(left)
        assert missed(part * wanted + 5, wanted, centred=True).mean() == pytest.approx(left)
    assert np.isnan(missed(wanted, np.zeros_like(wanted), centred=False)).all()


def test_the_rate_is_chosen_on_calibration_queries_and_not_on_those_that_are_shown():
    """0.01 is the better one on held-out queries, 0.1 on the others."""
    found = against(*NEAR, {0.01: (NEAR, FAR), 0.1: (FAR, NEAR)})
    assert [found.view.nearest_rate("trained", "sentiment", seed) for seed in range(4)] == [0.1] * 4
    assert found.rates == "0.1 in 4 of 4"
    assert np.nanmean(found.pairs[RECOVERED][1]) == pytest.approx(-2, abs=0.1)


def test_an_effect_far_too_large_is_not_the_nearest_one():
    found = against(*NEAR, {0.01: (NEAR, (1, 0.5)), 0.1: (FAR, (1, 5.0))})
    assert found.rates == "0.01 in 4 of 4"


def test_a_rate_that_diverged_is_not_chosen():
    class Diverges(Uneven):
        def _trained(self, cell):
            self.diverged = cell.labels["rate"] == 0.1
            return super()._trained(cell)

    found = against(*NEAR, {0.01: (FAR, FAR), 0.1: (NEAR, NEAR)}, Diverges)
    assert found.rates == "0.01 in 4 of 4"


def test_a_draw_that_training_lost_counts_for_neither():
    """As if it had not been drawn: each is a share of the effect of the draws that both have."""

    class Loses(Uneven):
        def __call__(self, cell):
            self.shift, self.diverged = (NEAR[0] + cell.labels.get("seed", 0)), cell.labels.get("seed") == 0
            return super().__call__(cell)

    gd = {0.01: (FAR, FAR)}
    some, all_of_them = (against(*NEAR, gd, Loses, seeds=seeds) for seeds in ((0, 1, 2), (1, 2)))
    assert some.rates == "0.01 in 2, none in 1, where it diverged at every rate of 3"
    for name, (patch, trained) in some.pairs.items():
        assert np.isnan(patch[0, 0]).all()
        assert patch[:, 1:] == pytest.approx(all_of_them.pairs[name][0], rel=1e-12)
        assert some.differences[name].estimate.mean == pytest.approx(np.nanmean(patch) - np.nanmean(trained))


def test_where_training_diverged_at_every_rate_there_is_no_difference():
    class Diverges(Uneven):
        def _trained(self, cell):
            self.diverged = True
            return super()._trained(cell)

    found = against(*NEAR, {0.01: (FAR, FAR)}, Diverges)
    assert found.rates == "none in 4, where it diverged at every rate of 4"
    assert found.said() == ""
    assert found.table().rows == []


def test_differences_are_of_the_same_queries_patch_minus_training():
    found = against(*NEAR, {0.1: ((1.0, 0.4), (1.0, 0.4))}, Plant).differences
    assert list(found) == [AGREES, MISSED, RECOVERED, ACCURACY]
    assert found[RECOVERED].estimate.mean == pytest.approx(1.0 - 0.4)
    assert found[MISSED].estimate.mean == pytest.approx(0 - 0.6**2)
    half = float((ANSWERS == 0).mean())  # with .4 of what reading does by the query, class 0 is still called 1
    assert found[AGREES].estimate.mean == found[ACCURACY].estimate.mean == pytest.approx(half)


@pytest.mark.parametrize(
    "patch, gd, says",
    [
        (NEAR, FAR, "The patch is nearer to reading than training"),
        (FAR, NEAR, "The patch is farther from reading than training"),
        (NEAR, NEAR, "Neither is shown to be the nearer one to reading"),
        ((0.0, 1.0), (0.4, 0.0), "The patch is nearer to reading by one of two, margins missed, than training"),
    ],
)
def test_the_answer_says_only_what_the_differences_support(patch, gd, says):
    said = against(*patch, {0.1: (gd, gd)}).said()
    assert said.startswith(f"{says}: the patch misses ")


def test_of_several_rates_the_answer_says_how_one_was_chosen():
    said = against(*NEAR, {0.1: (FAR, FAR), 0.01: (FAR, FAR)}).said()
    assert " than training (training at the rate that misses least on the others): the patch misses " in said


def test_the_answer_has_the_table_s_means_and_p_values():
    found = against(*NEAR, {0.1: (FAR, FAR)})
    for name in (MISSED, AGREES):
        (shown,) = [line for line in found.table().texts() if line[0] == name]
        patch, gd = (level.split(" ")[0] for level in shown[1:3])
        assert f"{patch}, training {gd} (p {shown[4]})" in found.said()


def test_differences_of_shares_keep_to_their_bounds_and_those_of_margins_have_none():
    """The patch is near in one of two draws and far in the other; Student's t of two reaches beyond one."""

    class Turns(Plant):
        def _static(self, cell):
            self.shift, self.by_query = (NEAR, FAR)[cell.labels["seed"]]
            return super()._static(cell)

    found = against(*NEAR, {0.1: (NEAR, NEAR)}, Turns, seeds=2).differences
    for name in (AGREES, ACCURACY):
        assert found[name].estimate.mean == pytest.approx(-0.5)
        assert -1 < found[name].estimate.low < found[name].estimate.high < 1
    for name in (MISSED, RECOVERED):
        assert found[name].estimate.high - found[name].estimate.low > 10


def test_one_draw_decides_nothing():
    found = against(*NEAR, {0.1: (FAR, FAR)}, seeds=1)
    assert found.said().startswith("Neither is shown to be the nearer one")
    assert {line[-1] for line in found.table().texts()} == {"undecided"}


def test_p_values_are_corrected_for_all_rows():
    found = against(*NEAR, {0.1: (FAR, FAR)}).differences
    assert all(one.corrected >= one.p for one in found.values())
    assert min(one.corrected for one in found.values()) == pytest.approx(4 * min(one.p for one in found.values()))


def test_the_table_and_the_sentence_have_the_corrected_p_value_of_their_own_row():
    found = against(*NEAR, {0.1: ((0.9, 0.7), (0.9, 0.7))})
    assert all(
        p_value(found.differences[name].corrected) != p_value(found.differences[name].p) for name in (AGREES, MISSED)
    )
    lines = {line[0]: line for line in found.table().texts()}
    for name, one in found.differences.items():
        assert lines[name][3:5] == [str(number(one.estimate)), p_value(one.corrected)]
    agrees, missed_ = (found.differences[name] for name in (AGREES, MISSED))
    assert f" (p {p_value(missed_.corrected)}), and answers as reading does in " in found.said()
    assert found.said().endswith(f" (p {p_value(agrees.corrected)}).")
    assert p_value(agrees.corrected) != p_value(missed_.corrected)
    assert str(number(agrees.estimate)) != str(number(missed_.estimate))


def test_of_one_draw_there_is_no_p_value():
    found = against(*NEAR, {0.1: (FAR, FAR)}, seeds=1)
    assert {line[4] for line in found.table().texts()} == {"n/a"}


def test_accuracy_is_of_the_right_answers_and_agreement_of_reading_s():
    """All answers are class 1, and reading says 0 to every other query: who always says 1 is right and disagrees."""

    class One(Plant):
        def _static(self, cell):
            found = super()._static(cell)
            ones = [
                replace(one, values=np.ones_like(one.values)) if one.labels["quantity"] == "answers" else one
                for one in found.arrays
            ]
            return Result(found.facts, ones)

    found = against(1.0, 1.0, {0.1: ((1.0, 0.4), (1.0, 0.4))}, One)
    agrees, right = ([float(np.nanmean(one)) for one in found.pairs[name]] for name in (AGREES, ACCURACY))
    assert (agrees, right) == ([1.0, 0.5], [0.5, 1.0])


def test_what_is_missed_has_no_interval_below_nothing_in_the_table():
    class Turns(Plant):
        def _static(self, cell):
            self.by_query = (0.9, 0.3)[cell.labels["seed"]]
            return super()._static(cell)

    lines = {line[0]: line for line in against(*NEAR, {0.1: (NEAR, NEAR)}, Turns, seeds=2).table().texts()}
    assert lines[MISSED][1].startswith(".25 [.00 ")
    assert lines[RECOVERED][1].startswith(".60 [-")


def test_a_draw_is_left_out_where_training_diverged_at_every_rate_and_only_there():
    class Some(Uneven):
        def _trained(self, cell):
            self.diverged = (cell.labels["rate"], cell.labels["seed"]) in {(0.01, 0), (0.01, 1), (0.1, 1)}
            return super()._trained(cell)

    found = against(*NEAR, {0.01: (NEAR, NEAR), 0.1: (FAR, FAR)}, Some)
    assert found.rates == "0.01 in 2, 0.1 in 1, none in 1, where it diverged at every rate of 4"
    assert "(1 of 4 draws, where it diverged at every rate, are left out)" in found.said()


def test_the_page_has_the_table_and_says_how_the_rate_was_chosen_and_who_saw_what():
    shown = page(against(*NEAR, {0.01: (FAR, FAR), 0.1: (NEAR, NEAR)}).view.study)
    (section,) = [section for section in shown.sections if section.title == "The patch against training"]
    assert [line[0] for line in section.table.texts()] == [AGREES, MISSED, RECOVERED, ACCURACY]
    assert "misses least on the calibration queries (draws by rate: 0.1 in 4 of 4)" in section.text
    assert "gd has seen the demonstrations alone" in section.text


def test_the_figure_by_layer_is_of_the_rate_that_the_answer_speaks_of():
    """Cosines grow with the rate here: 0.5 is the most alike, and neither the first nor the last."""
    shown = page(planted(rates=(0.01, 0.5, 0.1), seeds=2).study)
    assert "matrices at 0.5 (of 3 rates" in shown.answer
    own, whole = shown.drawings["layers"].figure.axes
    assert own.get_ylabel() == "cosine with gd 0.5"
    (line,) = [line for line in whole.lines if line.get_label() == "gd"]
    assert line.get_ydata() == pytest.approx([0.02 * 1.5] * 3)
