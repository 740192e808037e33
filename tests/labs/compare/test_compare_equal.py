"""Learners at equal size of the weight change: planted curves, whose difference at one size is known."""

import numpy as np
import pytest
from planted_compare import likeness, planted

from iclgd.labs.compare.equal import NOTE, Curves, at_equal_size, common_size, over_layers
from iclgd.labs.compare.evidence import Evidence
from iclgd.labs.compare.page import page
from iclgd.results import array

FIELDS = {
    "task": "sentiment",
    "learners": "gd,lcgd",
    "rates": "0.01,0.1,1",
    "seeds": 4,
    "init": "trained",
    "nulls": "none",
    "metrics": "SimAOU,SimAM_delta,contrast-AOU,tau",
}
FASTER = 3.0  # how much farther lcgd goes at a rate


def curve(size: float) -> float:
    """A likeness that follows the size alone, on a straight line in its logarithm."""
    return 0.1 + 0.05 * np.log(size)


def plant(shift: float = 0.0, wobble: float = 0.02, farther=lambda labels: 1.0, lost=lambda labels: False):
    """Both learners on one curve, lcgd ``shift`` above it; draws differ in how far they go."""

    def planting(cell, random):
        if "learner" not in cell.labels or "versus" in cell.labels or lost(cell.labels):
            return []
        kind, rate = str(cell.labels["learner"]).split()
        causal, seed = kind == "lcgd", int(cell.labels["seed"])
        size = 100 * float(rate) * (FASTER if causal else 1) * (1 + 0.1 * seed) * farther(cell.labels)
        level = curve(size) + 0.03 * seed + (shift + wobble * (seed - 1.5) if causal else 0)
        return [
            array([0.6 * size, 0.8 * size], "layer", quantity="weight change"),
            likeness(level, random, spread=0, metric="SimAOU"),
            likeness(level / 2, random, spread=0, metric="SimAM_delta"),
            likeness(0.3, random, spread=0, metric="tau"),
        ]

    return planting


def rows(plant, position="prompt", **fields):
    table = at_equal_size(Evidence(planted(plant, **{**FIELDS, **fields}), position))
    return {row[0]: row[1:] for row in table.rows}, table


def test_two_learners_on_one_curve_are_alike_at_one_size_though_they_differ_at_every_rate():
    _, table = rows(plant())
    for row in (table.rows[1], table.rows[3]):
        assert row[4].value == pytest.approx(0, abs=1e-9)
        assert row[2].value == pytest.approx(row[3].value)
        assert row[6] == "undecided"
    causal, plain = ({"init": "trained", "learner": f"{name} 0.1", "metric": "SimAOU"} for name in ("lcgd", "gd"))
    at_rate = planted(plant(), **FIELDS).difference(["sentiment"], "prompt", causal, plain)
    assert at_rate.estimate.mean == pytest.approx(0.05 * np.log(FASTER))


def test_a_learner_shifted_by_a_constant_is_that_constant_above_with_an_interval_over_draws():
    """Student's t of four draws .02 apart: ± 3.18 · .0258 / 2."""
    _, table = rows(plant(shift=0.2))
    title, size, first, second, apart, _, verdict = table.rows[1]
    assert (title, verdict) == ("lcgd − gd", "above")
    assert apart.value == pytest.approx(0.2)
    assert (apart.high - apart.low) / 2 == pytest.approx(3.18 * 0.0258 / 2, rel=0.02)
    mean = np.mean([curve(size.value) + 0.03 * seed for seed in range(4)])
    assert second.value == pytest.approx(mean, abs=2e-3)
    assert first.value == pytest.approx(mean + 0.2, abs=2e-3)
    below = rows(plant(shift=-0.2))[1].rows[1]
    assert (below[4].value, below[6]) == (pytest.approx(-0.2), "below")


def test_the_size_is_the_middle_of_what_all_draws_of_both_reached():
    """gd goes from 1 to 100 and lcgd from 3 to 300, each up to 1.3 times as far: all were between 3.9 and 100."""
    found, table = rows(plant())
    assert found["lcgd − gd"][0].value == pytest.approx((3.9 * 100) ** 0.5)
    assert [row[0] for row in table.rows] == ["─ SimAOU", "lcgd − gd", "─ SimAM_Δ", "lcgd − gd"]
    assert str(table.rows[1][1]) == "19.7"


def test_p_values_are_corrected_for_all_rows_of_the_table():
    def p(**fields) -> str:
        return rows(plant(shift=0.045), **fields)[1].rows[1][5]

    alone, among = p(metrics="SimAOU"), p()
    assert float(among) == pytest.approx(2 * float(alone), abs=2e-3)


def test_ranges_that_do_not_overlap_give_no_row_and_no_number_beyond_them():
    _, table = rows(plant(farther=lambda labels: 1e4 if str(labels["learner"]).startswith("lcgd") else 1.0))
    assert table.rows == []
    titles = [s.title for s in page(planted(plant(), **{**FIELDS, "rates": "0.1"}).study).sections]
    assert not any("equal size" in title for title in titles)


def test_a_draw_that_went_elsewhere_is_left_out_said_and_nothing_is_decided():
    far = plant(shift=0.2, farther=lambda labels: 1e5 if labels["seed"] == 3 and labels["learner"][0] == "l" else 1.0)
    _, table = rows(far)
    assert table.rows[1][0] == "lcgd − gd, 3 of 4 draws"
    assert table.rows[1][4].value == pytest.approx(0.2 + 0.02 * (-0.5))
    assert table.rows[1][6] == "undecided"


def test_a_draw_without_one_of_its_rates_is_read_between_the_others():
    def lost(labels) -> bool:
        return labels["learner"] == "gd 0.1" and labels["seed"] == 2

    _, table = rows(plant(shift=0.2, lost=lost))
    assert table.rows[1][0] == "lcgd − gd"
    assert table.rows[1][4].value == pytest.approx(0.2)  # the curve is a straight line


def test_the_page_has_the_table_at_both_positions_and_says_what_it_is():
    study = planted(plant(), **FIELDS).study
    shown = page(study)
    titles = [section.title for section in shown.sections if "equal size of the weight" in section.title]
    assert titles == [
        "At equal size of the weight change, at the prompt's last token",
        "At equal size of the weight change, at the class-0 label word after the prompt",
    ]
    assert next(section.text for section in shown.sections if section.title == titles[0]) == NOTE
    prompt, label = (shown.table(title).rows[1][2].value for title in titles)
    assert label - prompt == pytest.approx(0.1)  # as planted
    assert max(map(len, shown.table(titles[0]).text(80).splitlines())) <= 80


# pure functions


def curves(sizes, values) -> Curves:
    """One query and one layer: (rate, task, seed) sizes and values."""
    return Curves(np.array(sizes, dtype=float), np.array(values, dtype=float)[..., None, None])


def test_a_likeness_between_two_rates_is_on_the_line_in_the_logarithm_of_the_size():
    one = curves([[[1.0]], [[100.0]], [[10.0]]], [[[0.0]], [[0.9]], [[0.3]]])  # rates in no order of size
    for size, wanted in ((1, 0.0), (10**0.5, 0.15), (10, 0.3), (10**1.5, 0.6), (100, 0.9)):
        assert one.at(size).item() == pytest.approx(wanted)
    for size in (0.99, 100.1):
        assert np.isnan(one.at(size)).all()


def test_a_rate_that_changed_nothing_or_has_no_likeness_is_no_end_of_a_range():
    one = curves([[[0.0]], [[1.0]], [[10.0]], [[100.0]]], [[[0.5]], [[0.1]], [[0.2]], [[np.nan]]])
    assert one.reach().ravel().tolist() == [1.0, 10.0]
    assert np.isnan(one.at(0.5)).all()
    lone = curves([[[np.nan]], [[1.0]]], [[[0.5]], [[0.1]]])
    assert np.isnan(lone.reach()).all()
    assert common_size(lone, one) is None


def test_two_rates_that_went_equally_far_are_no_division_by_nothing():
    one = curves([[[1.0]], [[2.0]], [[2.0]]], [[[0.1]], [[0.2]], [[0.4]]])
    assert one.at(2.0).item() in (pytest.approx(0.2), pytest.approx(0.4))


def test_the_common_size_is_where_most_draws_are_though_not_all_can_be():
    one = curves([[[1.0, 1.0, 1000.0]], [[100.0, 100.0, 4000.0]]], np.zeros((2, 1, 3)))
    two = curves([[[4.0, 1.0, 1000.0]], [[400.0, 25.0, 4000.0]]], np.zeros((2, 1, 3)))
    assert common_size(one, two) == pytest.approx(10.0)  # from 4 to 25, where two of three draws are
    assert common_size(two, one) == pytest.approx(10.0)


def test_a_draw_that_begins_beyond_a_stretch_is_not_counted_there():
    one = curves([[[1.0, 1.0, 5.0]], [[10.0, 10.0, 100.0]]], np.zeros((2, 1, 3)))
    assert common_size(one, one) == pytest.approx(50**0.5)  # from 5 to 10 all three are, from 1 to 5 two


def test_a_mean_over_layers_is_over_those_that_are_known():
    found = over_layers(np.array([[1.0, np.nan, 3.0], [np.nan, np.nan, np.nan]]))
    assert found[0] == 2
    assert np.isnan(found[1])
