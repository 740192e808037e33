"""Charts of planted trainings have the numbers and the intervals of their tables."""

import pytest
from planted_linear import study

from charted import charted, limits
from iclgd.labs.linear.page import layers_table, page, shifts_table


def widget(title, **fields):
    (found,) = [section.widget for section in page(study(**fields)).sections if section.title == title]
    return found


def test_every_loss_out_of_distribution_is_in_the_chart_with_the_interval_of_the_table():
    chart = widget("Out of distribution")
    found, ends = charted(chart, "panel", "name"), limits(chart, "panel", "name")
    assert found["Labels scaled: 5.0", "ridge"] == [23]
    assert found["Inputs of another law: sphere", "trained"] == [4]
    assert set(ends) == {(panel, name) for panel, name in found if name == "trained"}
    first = shifts_table(study()).rows[0][2]
    assert ends["Inputs scaled: 0.5", "trained"] == [
        [pytest.approx(first.low, 1e-4)],
        [pytest.approx(first.high, 1e-4)],
    ]
    assert len(found) == 8 * 4


def test_losses_that_grow_by_more_than_ten_have_a_logarithmic_scale_as_in_the_figure():
    kinds = ("Inputs scaled", "Labels scaled", "Inputs of another law")
    assert {panel.split(":")[0] for panel in widget("Out of distribution").data["log"]} == set(kinds)


def test_one_draw_has_no_interval():
    assert limits(widget("Out of distribution", seeds=1), "panel", "name") == {}


def test_after_each_layer_every_learner_is_there_the_nearest_first_with_its_interval():
    chart = widget("After each layer")
    found = charted(chart, "after", "name")
    assert list(found) == [("1", n) for n in "bdca"] + [("2", n) for n in "abdc"]
    assert [found["1", name] for name in "bdca"] == [[1], [2], [3], [4]]
    nearest = layers_table(study()).rows[0]
    ((low,), (high,)) = limits(chart, "after", "name")["1", "b"]
    assert nearest[:2] == ["1", "b"]
    assert (low, high) == pytest.approx((nearest[2].low, nearest[2].high), rel=1e-4)
    assert low < 1 < high
