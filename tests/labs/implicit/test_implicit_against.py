"""The patch for all queries against training of the same matrices, on results that were made up."""

from dataclasses import replace

import numpy as np
import pytest
from planted_implicit import ANSWERS, Plant, planted

from iclgd.labs.implicit.against import ACCURACY, AGREES, MISSED, RECOVERED, Against
from iclgd.labs.implicit.page import page
from iclgd.metrics.margins import missed
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


def test_one_draw_decides_nothing():
    found = against(*NEAR, {0.1: (FAR, FAR)}, seeds=1)
    assert found.said().startswith("Neither is shown to be the nearer one")
    assert {line[-1] for line in found.table().texts()} == {"undecided"}


def test_p_values_are_corrected_for_all_rows():
    found = against(*NEAR, {0.1: (FAR, FAR)}).differences
    assert all(one.corrected >= one.p for one in found.values())
    assert min(one.corrected for one in found.values()) == pytest.approx(4 * min(one.p for one in found.values()))


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
