"""Charts of planted trainings have the numbers and the intervals of their tables."""

import pytest
from planted_linear import replaced, study

from charted import charted, limits
from iclgd.labs.linear.figures import SHIFTS
from iclgd.labs.linear.page import layers_table, page, shifts_table
from iclgd.labs.linear.widgets import shifts


def widget(title, **fields):
    (found,) = [section.widget for section in page(study(**fields)).sections if section.title == title]
    return found


def test_every_loss_out_of_distribution_is_in_the_chart_with_the_interval_of_the_table():
    chart = widget("Out of distribution")
    found, ends = charted(chart, "panel", "name"), limits(chart, "panel", "name")
    assert found["Labels scaled: 5.0", "ridge"] == [23]
    assert found["Inputs of another law: sphere", "trained"] == [4]
    assert set(ends) == set(found)
    first = shifts_table(study()).rows[0][2]
    assert ends["Inputs scaled: 0.5", "trained"] == [
        [pytest.approx(first.low, 1e-4)],
        [pytest.approx(first.high, 1e-4)],
    ]
    assert len(found) == 8 * 4


def test_losses_that_grow_by_more_than_ten_have_a_logarithmic_scale_as_in_the_figure():
    kinds = ("Inputs scaled", "Labels scaled", "Inputs of another law")
    assert {panel.split(":")[0] for panel in widget("Out of distribution").data["log"]} == set(kinds)

    def logarithmic(largest):
        every = {name: [1.0, largest] for name in ("trained", "gd ×1", "ridge", "zero")}
        return bool(shifts(shifts_table(replaced(study(), "shifted loss", **every))).data["log"])

    assert [logarithmic(largest) for largest in (9.5, 10.5)] == [False, True]


def test_of_shifts_the_reader_chooses_what_is_changed():
    found = charted(widget("Out of distribution"), "shift", "panel")
    assert {shift for shift, _ in found} == {title for title, _ in SHIFTS.values()}
    assert all(panel.startswith(f"{shift}: ") for shift, panel in found)


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


def test_training_is_charted_as_loss_and_as_likeness_to_every_learner_beside_their_losses():
    chart = widget("Training")
    found = charted(chart, "panel", "name", seed="all seeds")
    assert found["loss, ½ squared error", "trained"] == [0.9, 0.6, 0.3]
    assert found["loss, ½ squared error", "ridge"] == [0.35] * 3
    assert found["cosine of sensitivities", "ridge"] == [0.41, 0.5, 0.9]
    assert found["distance of predictions", "ridge"] == [4, 3, 2]
    assert len(found) == 1 + 3 * 3
    assert charted(chart, "name", panel="cosine of sensitivities", seed="2")["gd ×1",] == [0.02, 0.5, 0.9]


@pytest.mark.parametrize("seeds", [1, 3])
def test_the_constructed_matrices_stand_beside_those_of_every_seed(seeds):
    pictures = widget("Weights", seeds=seeds).data["pictures"]
    corners = {title: {who: one[0][0] for who, one in sides.items()} for title, sides in pictures.items()}
    trained = {f"trained, seed {seed}": 1.5 + seed for seed in range(seeds)}
    assert corners["WₖᵀW_q"] == {"constructed": 1} | trained
    assert corners["P Wᵥ"] == {"constructed": -6} | {who: -6 * value for who, value in trained.items()}
