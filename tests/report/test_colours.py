"""A learner keeps its colour; matrices and curves as data."""

import numpy as np
import pytest

from iclgd.report.charts import NULL, OWN
from iclgd.report.colours import USUAL, slots
from iclgd.report.curves import ALL, Curve, curves
from iclgd.report.figures import COLOURS
from iclgd.report.heat import rounded, wipe


def test_a_learner_has_its_place_at_any_rate_and_number_of_steps_and_others_take_what_is_left():
    found = slots(["trained", "gd ×2", "gd 0.001", "mine", "gd 1e-05 target=label"])
    assert found["gd ×2"] == found["gd 0.001"] == USUAL["gd"]
    assert found["trained"] == USUAL["trained"]
    others = [found["mine"], found["gd 1e-05 target=label"]]
    assert len({*others, *found.values()}) == len({*found.values()})
    assert len(set(others)) == 2
    assert not {USUAL["gd"], USUAL["trained"]} & set(others)


@pytest.mark.parametrize(
    "shown",
    [
        ("icl", "gd", "lcgd", "lcgd-paper", "gd target=label", "zero-shot"),
        ("trained", "gd", "preconditioned gd", "stored × hits", "ridge", "gd on learned features", "no context"),
        ("trained", "gd", "preconditioned", "gd++", "ridge", "kernel", "zero"),
        ("trained layer", "one gradient step", "constructed layer"),
    ],
)
def test_learners_that_are_shown_together_have_colours_of_their_own(shown):
    places = slots(shown)
    assert len(set(places.values())) == len(shown)
    assert set(places.values()) <= set(range(len(COLOURS)))


@pytest.mark.parametrize(
    "names",
    [
        ("icl", "trained", "trained layer"),
        ("gd", "one gradient step"),
        ("preconditioned", "preconditioned gd"),
        ("zero", "zero-shot", "no context"),
    ],
)
def test_one_thing_under_its_several_names_has_one_colour(names):
    assert len({USUAL[name] for name in names}) == 1


def test_more_names_than_places_begin_again():
    found = slots([f"mine-{letter}" for letter in "abcdefghijk"])
    assert set(found.values()) == set(range(8))


def test_curves_have_all_seeds_with_their_range_and_each_alone_and_levels_have_no_band():
    values = np.array([[3.0, 1.0], [5.0, 2.0]])
    made = [Curve("loss", "trained", values), Curve("loss", "gd ×1", np.array([0.5, 0.7]), "steps")]
    data = curves(lambda: made, (7, 8), [0, 10], "about", x="step", log=("loss",), groups="of").data
    names = {name: [data["names"][name][i] for i in codes] for name, codes in data["codes"].items()}
    assert names["seed"] == [ALL, "7", "8"] * 2
    assert names["role"] == [OWN] * 3 + [NULL] * 3
    assert names["group"] == [""] * 3 + ["steps"] * 3
    assert data["values"] == [4, 1.5, 3, 1, 5, 2, 0.6, 0.6, 0.5, 0.5, 0.7, 0.7]
    assert (data["limited"], data["low"], data["high"]) == ([0], [3, 1], [5, 2])
    assert (data["points"], data["log"], data["choose"]) == ([0, 10], ["loss"], {"seed": "seed", "group": "of"})
    alone = curves(lambda: [Curve("loss", "trained", values[:1])], (7,), [0, 10], "about").data
    assert (alone["count"], alone["limited"]) == (1, [])


def test_matrices_keep_four_digits_of_their_largest_entry():
    assert rounded(np.array([[123.456789, 0.00001]])) == [[123.46, 0.0]]
    assert rounded(np.array([[0.00123456, -0.0009]])) == [[0.0012346, -0.0009]]
    assert rounded(np.zeros((1, 2))) == [[0.0, 0.0]]
    assert rounded(np.array([[1234567.4, -3.6]])) == [[1234567.0, -4.0]]  # before the point none is left out
    data = wipe(lambda: {"qk": {"one": np.eye(2), "other": -np.eye(2)}}, [("x", 1), ("y", 1)], "about").data
    assert data == {
        "pictures": {"qk": {"one": [[1, 0], [0, 1]], "other": [[-1, 0], [0, -1]]}},
        "blocks": [["x", 1], ["y", 1]],
    }
