"""What is drawn is what was planted."""

import numpy as np
import pytest
from language_studies import planted_study
from matplotlib.colors import to_hex

from iclgd.labs.languages import figures, widgets
from iclgd.labs.languages.measures import TRAINED
from iclgd.labs.languages.reading import readings
from iclgd.report.figures import COLOURS
from iclgd.results import array

STEPS = (0, 10, 20)
LEARNERS = {
    TRAINED: {"accuracy": [0.8, 0.9], ("accuracy", True): [0.5, 0.6], "loss": [0.1, 0.2]},
    "gd": {"accuracy": [0.6, 0.8], "loss": [0.3, 0.5], "cosine": [0.2, 0.4], "mse": [0.1, 0.2]},
    "preconditioned gd": {"accuracy": [0.7, 0.9], "loss": [0.1, 0.3], "cosine": [0.9, 1.0], "mse": [0.01, 0.02]},
}
CURVES = {
    (TRAINED, "accuracy"): [[0.5, 0.7, 0.8], [0.5, 0.8, 0.9]],
    (TRAINED, "loss"): [[0.5, 0.2, 0.1], [0.5, 0.4, 0.2]],
    ("gd", "mse"): [[0.3, 0.2, 0.1], [0.5, 0.4, 0.2]],
    ("gd", "cosine"): [[0.9, 0.5, 0.2], [0.7, 0.5, 0.4]],
    ("preconditioned gd", "mse"): [[0.3, 0.1, 0.01], [0.5, 0.1, 0.02]],
    ("preconditioned gd", "cosine"): [[0.1, 0.8, 0.9], [0.3, 0.8, 1.0]],
}


def matrix(seed, scale):
    return scale * (np.arange(16.0).reshape(4, 4) - 7 + 2 * seed)


def more(seed):
    found = [
        array(rows[seed], "step", coordinates={"step": STEPS}, part="training", learner=name, quantity=quantity)
        for (name, quantity), rows in CURVES.items()
    ]
    for name, values in (("loss", [[2.0, 1.0, 0.5], [2.0, 1.5, 0.7]]), ("symbols", [[0.1, 0.4, 0.8], [0.3, 0.6, 1.0]])):
        found.append(array(values[seed], "step", coordinates={"step": STEPS}, part="encoder", quantity=name))
    for name, scale in (("gd", 1.0), ("preconditioned gd", 2.0), (TRAINED, -0.1)):
        for part in ("qk", "pv"):
            found.append(array(matrix(seed, scale), "row", "column", part="weights", learner=name, matrix=part))
    return found


@pytest.fixture
def reading():
    (found,) = readings(planted_study(LEARNERS, seeds=2, more=more))
    return found


def lines(axes):
    return {line.get_label(): line for line in axes.get_lines() if not line.get_label().startswith("_")}


def test_training_curves_are_means_with_the_range_of_seeds_and_references_are_levels(reading):
    made = figures.training([reading])
    accuracy, loss, mse, cosine = made.axes
    drawn = lines(accuracy)
    assert drawn[TRAINED].get_xdata().tolist() == list(STEPS)
    assert drawn[TRAINED].get_ydata() == pytest.approx([0.5, 0.75, 0.85])
    assert set(drawn) == {TRAINED, "gd", "preconditioned gd"}
    assert drawn["gd"].get_ydata() == pytest.approx([0.7, 0.7])
    assert lines(loss)["gd"].get_ydata() == pytest.approx([0.4, 0.4])
    assert lines(loss)[TRAINED].get_ydata() == pytest.approx([0.5, 0.3, 0.15])
    assert lines(mse)["gd"].get_ydata() == pytest.approx([0.4, 0.3, 0.15])
    assert lines(cosine)["preconditioned gd"].get_ydata() == pytest.approx([0.2, 0.8, 0.95])
    assert TRAINED not in lines(mse)
    assert mse.get_yscale() == "log"
    band = accuracy.collections[0].get_paths()[0].vertices
    for step, low, high in ((10, 0.7, 0.8), (20, 0.8, 0.9)):
        ends = band[band[:, 0] == step][:, 1]
        assert (ends.min(), ends.max()) == pytest.approx((low, high))
    assert accuracy.get_title(loc="left") == "((a|b)c)*, fixed labels"
    assert [axes.get_ylabel() for axes in made.axes] == [
        "accuracy", "½ squared error", "MSE of predictions", "cosine of sensitivities",
    ]  # fmt: skip
    assert mse.get_xlabel() == cosine.get_xlabel() == "training step"
    assert {label.get_text() for label in accuracy.get_figure().legends[0].get_texts()} == set(drawn)


def test_a_learner_has_one_colour_everywhere(reading):
    panels = made_colours(figures.training([reading]))
    assert panels["gd"] == {COLOURS[1].lower()}
    assert panels["preconditioned gd"] == {COLOURS[2].lower()}
    assert panels[TRAINED] == {COLOURS[0].lower()}


def made_colours(made):
    found = {}
    for axes in made.axes:
        for name, line in lines(axes).items():
            found.setdefault(name, set()).add(to_hex(line.get_color()))
    return found


def test_settings_stand_side_by_side(reading):
    made = figures.training([reading, reading, reading])
    assert len(made.axes) == 12
    rows = np.array(made.axes).reshape(4, 3)
    for axes in rows[2]:
        assert lines(axes)["gd"].get_ydata() == pytest.approx([0.4, 0.3, 0.15])
    assert [axes.get_xlabel() for axes in rows[3]] == ["training step"] * 3
    assert rows[0, 0].get_ylabel() == "accuracy"
    assert rows[0, 1].get_ylabel() == ""


def test_the_autoencoders_curves(reading):
    loss, symbols = figures.autoencoder([reading]).axes
    assert lines(loss)["((a|b)c)*"].get_ydata() == pytest.approx([2.0, 1.25, 0.6])
    assert lines(symbols)["((a|b)c)*"].get_ydata() == pytest.approx([0.2, 0.5, 0.9])
    assert loss.get_ylim()[0] == 0
    assert [axes.get_title(loc="left") for axes in (loss, symbols)] == [
        "Autoencoder validation loss", "Positions restored",
    ]  # fmt: skip


def test_weights_are_the_first_seeds_scaled_and_turned_so_that_the_label_entry_is_negative(reading):
    made = figures.weights(reading)
    images = {axes: axes.get_images()[0].get_array() for axes in made.axes if axes.get_images()}
    assert len(images) == 6
    base = matrix(0, 1.0)
    for shown in images.values():  # planted: pv's last entry is positive for GD (turned) and negative for the layer
        assert np.abs(shown).max() == pytest.approx(1)
        assert np.allclose(shown, -base / 8)
    assert made.axes[0].get_title(loc="left") == "constructed:\ngd"
    assert made.axes[2].get_title(loc="left") == "\ntrained"
    assert made.axes[0].get_ylabel() == "$W_K^T W_Q$"
    assert made.axes[3].get_ylabel() == "$P\\,W_V$"
    for axes in images:  # three coordinates of a code, then the label
        assert list(axes.get_xticks()) == list(axes.get_yticks()) == [1.0, 3.0]


def test_the_summary_has_a_dot_for_every_seed_and_the_mean(reading):
    left, right = figures.summary([reading, reading]).axes
    for axes, colour, marker, values in (
        (left, COLOURS[0], "o", [0.8, 0.9]),
        (left, COLOURS[6], "x", [0.5, 0.6]),
        (right, COLOURS[1], "o", [0.2, 0.4]),
        (right, COLOURS[2], "o", [0.9, 1.0]),
    ):
        mine = [
            line
            for line in axes.get_lines()
            if line.get_color() == colour and line.get_marker() == marker and len(line.get_xdata())
        ]
        assert len(mine) == 4  # seeds and mean, twice
        assert sorted(mine[0].get_xdata()) == values
        assert mine[1].get_xdata() == pytest.approx([np.mean(values)])
        assert [line.get_ydata()[0] for line in mine] == [1, 1, 0, 0]
    assert [label.get_text() for label in left.get_yticklabels()] == [reading.setting.name()] * 2
    assert key(left) == {"labels as they are": (COLOURS[0], "o"), "labels shuffled": (COLOURS[6], "x")}
    assert {name: key(right)[name] for name in ("gd", "preconditioned gd")} == {
        "gd": (COLOURS[1], "o"),
        "preconditioned gd": (COLOURS[2], "o"),
    }
    for axes in (left, right):  # the legend hides no setting
        assert axes.get_legend().get_bbox_to_anchor().y1 < axes.bbox.y0


def key(axes):
    """Colour and mark of each name in the legend."""
    handles, names = axes.get_legend_handles_labels()
    return {name: (one.get_color(), one.get_marker()) for one, name in zip(handles, names, strict=True)}


def test_the_curves_that_a_reader_chooses_from_are_every_learners_by_seed(reading):
    curves = {(one.panel, one.name): one.values for one in widgets._curves(reading)}
    assert curves["accuracy", TRAINED].tolist() == CURVES[TRAINED, "accuracy"]
    assert curves["½ squared error", TRAINED].tolist() == CURVES[TRAINED, "loss"]
    for name in ("gd", "preconditioned gd"):
        assert curves["accuracy", name].tolist() == LEARNERS[name]["accuracy"]  # levels, by seed
        assert curves["½ squared error", name].tolist() == LEARNERS[name]["loss"]
        assert curves["MSE of predictions", name].tolist() == CURVES[name, "mse"]
        assert curves["cosine of sensitivities", name].tolist() == CURVES[name, "cosine"]
    assert len(curves) == 10
    data = widgets.widget([reading], "training").data
    assert (data["points"], data["log"]) == ([0.0, 10.0, 20.0], ["MSE of predictions"])
    encoder = widgets.widget([reading], "autoencoder").data
    assert encoder["names"]["panel"] == ["validation loss", "positions restored"]


def test_the_matrices_with_a_border_to_move_are_the_nearest_every_seeds_and_a_gradient_steps(reading):
    data = widgets.widget([reading], "weights").data
    assert data["blocks"] == [["code", 3], ["y", 1]]
    assert list(data["pictures"]) == list(widgets.MATRICES)
    for sides in data["pictures"].values():
        assert list(sides) == ["preconditioned gd", "trained, seed 0", "trained, seed 1", "gd"]
        assert np.allclose(sides["trained, seed 0"], -matrix(0, 1.0) / 8)
        assert np.allclose(sides["trained, seed 1"], -matrix(1, 1.0) / 10)
        assert np.allclose(sides["gd"], -matrix(0, 1.0) / 8)


def test_of_several_languages_a_reader_chooses_one_and_sees_every_autoencoder(reading):
    (other,) = readings(planted_study(LEARNERS, seeds=2, more=more, language="a*bc*"))
    data = widgets.widget([reading, other], "training").data
    assert data["choose"] == {"seed": "seed", "group": "language"}
    assert data["names"]["group"] == ["((a|b)c)*", "a*bc*"]
    assert data["count"] == 2 * 10 * 3  # curves of both, over all seeds and of each of two
    coded = widgets.widget([reading, other], "autoencoder").data
    assert coded["names"]["name"] == ["((a|b)c)*", "a*bc*"]
