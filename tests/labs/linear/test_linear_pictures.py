"""Pictures of planted trainings: what is drawn, in which colour and on which axis."""

import pytest
from planted_linear import replaced, study

from iclgd.labs.linear import figures
from iclgd.report.figures import COLOURS


def line(axes, label):
    (found,) = [one for one in axes.lines if one.get_label() == label]
    return found


def test_the_picture_of_training_draws_means_ranges_and_references():
    left, middle, right = figures.training(study()).axes
    trained = line(left, "trained")
    assert list(trained.get_xdata()) == [0, 10, 20]
    assert trained.get_ydata() == pytest.approx([0.9, 0.6, 0.3])
    levels = [line(left, name).get_ydata()[0] for name in ("gd ×1", "ridge", "zero")]
    assert levels == pytest.approx([0.29, 0.35, 0.5])
    low, high = left.collections[0].get_paths()[0].get_extents().get_points()[:, 1]
    assert (low, high) == pytest.approx((0.29, 0.91))
    assert middle.lines[0].get_ydata() == pytest.approx([0.01, 0.5, 0.9])
    assert middle.lines[0].get_color() == line(left, "gd ×1").get_color()
    assert middle.get_ylim() == pytest.approx((2 * 0.9 - 1.05, 1.005))
    assert right.lines[0].get_ydata() == pytest.approx([4, 3, 2])
    assert right.get_yscale() == "log"
    assert left.get_yscale() == "linear"


def test_the_picture_of_weights_lays_constructed_beside_learned_of_the_first_seed():
    panels = [axes for axes in figures.weights(study()).axes if axes.images]
    values = [axes.images[0].get_array()[0, 0] for axes in panels]
    assert values == [1.0, 1.5, -6.0, -9.0]
    assert [axes.get_title(loc="left").split(", ")[1] for axes in panels] == ["constructed", "learned"] * 2
    assert [axes.images[0].get_clim() for axes in panels] == [(-1.0, 1.0)] * 2 + [(-6.0, 6.0)] * 2
    assert list(panels[0].get_xticks()) == list(panels[0].get_yticks()) == [0.5, 2.0]
    assert panels[0].lines[0].get_ydata()[0] == 1.5


def test_the_picture_of_shifts_draws_every_learner_at_every_value():
    panels = figures.shifts(study()).axes
    assert [axes.get_title(loc="left") for axes in panels] == [title for title, _ in figures.SHIFTS.values()]
    assert line(panels[1], "trained").get_ydata() == pytest.approx([2.0, 3.0])
    assert list(line(panels[1], "trained").get_xdata()) == [1.0, 5.0]
    assert line(panels[3], "ridge").get_ydata() == pytest.approx([24.0, 25.0])
    assert [label.get_text() for label in panels[2].get_xticklabels()] == ["normal", "sphere"]
    assert [axes.lines[0].get_linestyle() for axes in panels] == ["-", "-", "None", "-"]  # laws have no order
    assert [axes.get_ylabel() for axes in panels] == ["½ squared error", "", "", ""]
    assert [axes.get_yscale() for axes in panels] == ["log", "log", "log", "linear"]  # by a factor of ten or more


def test_one_seed_is_enough_for_every_picture():
    for draw in (figures.training, figures.weights, figures.shifts, figures.learners):
        assert draw(study(seeds=1)).axes


def test_the_picture_of_learners_puts_the_nearest_of_the_last_layer_on_top_and_rings_it():
    (axes,) = figures.learners(study()).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["c", "d", "b", "a"]
    first, ring, second, last_ring = axes.lines
    assert first.get_xdata() == pytest.approx([3, 2, 1, 4])
    assert (ring.get_xdata()[0], ring.get_ydata()[0]) == pytest.approx((1, 2))
    assert second.get_xdata() == pytest.approx([5, 2, 1, 0.5])
    assert (last_ring.get_xdata()[0], last_ring.get_ydata()[0]) == pytest.approx((0.5, 3))
    assert second.get_label() == "after layer 2"


def test_a_learner_has_the_same_colour_in_every_picture_and_the_trained_model_its_own():
    left = figures.training(study()).axes[0]
    shifted = figures.shifts(study()).axes[1]
    for name, place in {"trained": 0, "gd ×1": 1, "ridge": 4, "zero": 6}.items():
        assert line(left, name).get_color() == line(shifted, name).get_color() == COLOURS[place]


def test_axes_are_logarithmic_where_the_largest_is_many_times_the_smallest():
    def scale(times):
        made = replaced(study(), "loss by step", trained=[2.0 * times, 2.0, 2.0])
        return figures.training(made).axes[0].get_yscale()

    assert [scale(times) for times in (4.9, 5, 5.1)] == ["linear", "linear", "log"]

    def shifted(largest):
        every = {name: [1.0, largest] for name in ("trained", "gd ×1", "ridge", "zero")}
        return figures.shifts(replaced(study(), "shifted loss", **every)).axes[1].get_yscale()

    assert [shifted(largest) for largest in (9.5, 10.5)] == ["linear", "log"]


def test_the_axis_of_cosines_ends_at_minus_one():
    every = {name: [[-0.9, 1, 1]] * 3 for name in ("gd ×1", "ridge", "zero")}
    middle = figures.training(replaced(study(), "likeness by step", **every)).axes[1]
    assert middle.get_ylim() == pytest.approx((-1, 1.005))
    assert middle.lines[-1].get_ydata()[0] == 1
