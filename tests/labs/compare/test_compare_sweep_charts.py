"""Charts of a sweep whose numbers are planted: those of the figures, with the intervals of the tables."""

import pytest
from planted_compare import planted
from planted_tables import FIELDS, HALF, plant

from charted import charted, limits
from iclgd.labs.compare.sweep_charts import by_rate, by_size


@pytest.fixture(scope="module")
def comparison():
    return planted(plant, **FIELDS)


def test_likeness_goes_over_rates_with_its_interval_and_what_stands_beside_it(comparison):
    widget = by_rate(comparison)
    found = charted(widget, "panel", "name", "role")
    assert widget.data["points"] == [0.01, 0.1]
    assert found["SimAOU", "gd", "own"] == [0.2, 0.3]
    assert found["SimAOU", "lcgd: another query's update", "null"] == [0.11, 0.11]
    assert found["SimAOU", "gd: itself, in wider precision", "null"] == [0.7, 0.7]
    assert found["contrast, outputs", "lcgd", "own"] == [0.7, 0.8]


def test_the_band_of_a_line_is_the_interval_over_draws():
    one = planted(plant, **{**FIELDS, "task": "sentiment"})
    low, high = limits(by_rate(one), "name", panel="SimAOU")[("gd",)]
    assert low == pytest.approx([0.1 - HALF, 0.2 - HALF], abs=1e-3)
    assert high == pytest.approx([0.1 + HALF, 0.2 + HALF], abs=1e-3)


def test_accuracies_go_over_rates_beside_those_of_reading_and_of_no_demonstrations(comparison):
    found = charted(by_rate(comparison), "name", "role", panel="accuracy")
    assert found["gd", "own"] == [0.6, 0.7]
    assert found["icl", "null"] == [0.8, 0.8]
    assert found["zero-shot", "null"] == [0.4, 0.4]
    calibrated = charted(by_rate(comparison), "name", panel=comparison.metrics["calibrated"].title)
    assert list(calibrated) == [("gd",), ("lcgd",)]
    assert calibrated[("lcgd",)] == pytest.approx([2 / 3, 0.7], abs=1e-5)
    low, high = limits(by_rate(comparison), "name", panel="accuracy")[("gd",)]
    shown = comparison.estimate(comparison.spec.task, init="trained", learner="gd 0.1", metric="accuracy")
    assert (low[1], high[1]) == pytest.approx((shown.low, shown.high), abs=1e-5)


def test_a_learner_that_diverged_at_a_rate_has_no_number_there():
    comparison = planted(plant, **FIELDS)
    for cell, result in comparison.study.found():
        if cell.labels.get("learner") == "gd 0.01":
            result.facts["diverged"] = True
    found = charted(by_rate(comparison), "name", panel="SimAOU")
    assert str(found[("gd",)]) == "[nan, 0.3]"
    assert found[("lcgd",)] == [0.4, 0.5]


def test_sizes_are_each_learners_own_and_likeness_goes_from_the_smallest_change(comparison):
    """‖ΔW‖ is 5 / level: 50 and 25 of gd at .01 and .1, 16.667 and 12.5 of lcgd."""
    widget = by_size(comparison)
    assert widget.data["points"] == [12.5, 16.667, 25, 50]
    found = charted(widget, "name", panel="SimAOU")
    assert str(found[("lcgd",)]) == "[0.5, 0.4, nan, nan]"
    assert str(found[("gd",)]) == "[nan, nan, 0.3, 0.2]"
    assert set(charted(widget, "panel")) == {("SimAOU",), ("SimAM_Δ",), ("contrast, outputs",)}
    one = planted(plant, **{**FIELDS, "task": "sentiment"})
    low, high = limits(by_size(one), "name", panel="SimAOU")[("gd",)]
    assert low[2:] == pytest.approx([0.2 - HALF, 0.1 - HALF], abs=1e-3)
    assert high[2:] == pytest.approx([0.2 + HALF, 0.1 + HALF], abs=1e-3)


def test_weights_that_did_not_change_have_no_size_to_be_shown_at():
    def still(cell, random):
        return [one for one in plant(cell, random) if one.labels.get("quantity") != "weight change"]

    assert by_size(planted(still, **FIELDS)) is None
