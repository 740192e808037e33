"""What the figures of a comparison draw of planted numbers."""

import numpy as np
import pytest
from planted_compare import planted
from planted_tables import FIELDS, HALF, plant

from iclgd.labs.compare.figures import draw_alpha, draw_gradients, draw_layers, drawings
from iclgd.labs.compare.page import page
from iclgd.labs.compare.sweeps import draw_rates, draw_sizes
from iclgd.results import array


@pytest.fixture(scope="module")
def comparison():
    return planted(plant, **FIELDS)


def lines(axes) -> dict[str, list[float]]:
    return {str(line.get_label()): np.round(line.get_ydata(), 6).tolist() for line in axes.get_lines()}


def test_layers_are_drawn_for_the_rate_that_the_answer_speaks_of_with_its_untrained_model_and_null(comparison):
    first, second = draw_layers(comparison, "label").axes
    found = lines(first)
    assert found["gd 0.1"] == [0.4] * 3
    assert found["lcgd 0.1, random weights"] == [0.55] * 3
    assert found["gd: another query's update"] == [0.21] * 3
    assert "gd 0.01" not in found
    assert [0.0, 0.0] in found.values()  # where nothing is alike
    assert lines(second)["lcgd 0.1"] == [0.4] * 3
    assert (first.get_ylabel(), second.get_ylabel()) == ("cosine with the update of reading", "")
    assert first.get_lines()[0].get_xdata().tolist() == [0, 1, 2]
    assert lines(draw_layers(comparison, "prompt").axes[0])["gd 0.1"] == [0.3] * 3
    assert [line.get_color() for line in first.get_lines()[:4]].count(first.get_lines()[0].get_color()) == 3


def test_alpha_is_drawn_by_task_with_its_interval_pairs_side_by_side(comparison):
    (axes,) = draw_alpha(comparison).axes
    one, low, high, two, *_ = axes.get_lines()
    assert one.get_xydata() == pytest.approx(np.array([[-0.06, 0.15], [0.94, 0.35]]))
    assert two.get_xydata() == pytest.approx(np.array([[0.06, 0.2], [1.06, 0.4]]))
    assert low.get_ydata()[0] == pytest.approx(0.15 - HALF, abs=1e-3)
    assert high.get_ydata()[0] == pytest.approx(0.15 + HALF, abs=1e-3)
    assert [label.get_text() for label in axes.get_xticklabels()] == ["sentiment", "kinds"]


def test_gradients_are_drawn_of_the_first_task_and_draw_without_those_that_are_zero(comparison):
    gd, lcgd, *_ = draw_gradients(comparison).axes
    assert gd.get_title(loc="left") == "gd 0.1 on sentiment"
    assert gd.images[0].get_array().tolist() == [[1, 10], [None, 20]]
    assert gd.images[0].get_clim() == (1, 20)
    assert lcgd.images[0].get_clim() == (1, 40)


def test_rates_are_drawn_from_the_slowest_with_what_stands_beside_them(comparison):
    one, _, contrast, accuracy = draw_rates(comparison).axes
    assert lines(one)["gd"] == [0.2, 0.3]
    assert lines(one)["lcgd: another query's update"] == [0.11, 0.11]
    assert lines(one)["gd: itself, in wider precision"] == [0.7, 0.7]
    assert lines(contrast)["lcgd"] == [0.7, 0.8]
    assert lines(accuracy)["gd, accuracy"] == [0.6, 0.7]
    assert lines(accuracy)["lcgd, calibrated"] == [0.666667, 0.7]
    assert (lines(accuracy)["zero-shot"][0], lines(accuracy)["icl"][0]) == (0.4, 0.8)
    assert one.get_lines()[0].get_xdata().tolist() == [0.01, 0.1]
    titles = [axes.get_title(loc="left") for axes in draw_rates(comparison).axes]
    assert titles == ["SimAOU", "SimAM_Δ", "contrast, outputs", "accuracy"]


def test_sizes_are_drawn_from_the_smallest_change(comparison):
    grid = draw_sizes(comparison).axes
    assert [axes.get_title(loc="left") for axes in grid] == ["SimAOU", "SimAM_Δ", "contrast, outputs"]
    assert [axes.get_xscale() for axes in grid] == ["log"] * 3
    assert grid[0].get_lines()[0].get_xydata() == pytest.approx(np.array([[25, 0.3], [50, 0.2]]))


def test_figures_are_those_that_there_are_numbers_for():
    bare = planted(lambda cell, random: [], **{**FIELDS, "metrics": "accuracy", "learners": "gd", "rates": "0.1"})
    assert list(drawings(bare)) == []
    two = planted(lambda cell, random: [], **{**FIELDS, "metrics": "accuracy", "learners": "gd"})
    assert list(drawings(two)) == ["rates"]


def test_where_every_learner_diverged_what_is_drawn_has_no_gradients_and_the_page_comes_to_its_end():
    """With a rate as 1e38: the gradient before it diverged is known, and nobody speaks of the learner."""

    def lost(cell, random):
        return [array(np.ones((2, 2)), "layer", "demo", quantity="gradient norm")] if "learner" in cell.labels else []

    for rates in ("1e38", "1e37,1e38"):
        gone = planted(lost, facts={"diverged": "the loss is not a finite number"}, **{**FIELDS, "rates": rates})
        assert "gradients" not in drawings(gone)
        assert all(draw().axes for draw in drawings(gone).values())
        assert "Training diverged in some draws" in page(gone.study).answer
