"""What a page of a comparison shows in the second place: names, the order of charts, intervals of few draws."""

import numpy as np
import pytest
from planted_compare import answers, planted
from planted_tables import FIELDS, plant
from planted_world import FIELDS as WORLD
from planted_world import world

from iclgd.labs.compare import charts
from iclgd.labs.compare.answer import _name
from iclgd.labs.compare.tables import ENOUGH_DRAWS, _above_base
from iclgd.labs.compare.view import _mean
from iclgd.metrics.differences import Difference
from iclgd.metrics.estimates import Estimate, shares


def test_a_learner_is_called_by_its_kind_unless_others_are_of_the_kind():
    comparison = planted(world(), **WORLD | {"learners": "gd,gd:target=label,lcgd"})
    assert [_name(comparison, choice) for choice in comparison.spec.trained] == [
        "gd 0.001", "gd 0.001 target=label", "lcgd",
    ]  # fmt: skip


def test_charts_show_what_labels_change_first_then_other_likeness_then_answers():
    shown = list(charts._ordered(planted(plant, **FIELDS)))
    assert shown[0] == "contrast-AOU"
    assert shown.index("SimAOU") < shown.index("accuracy")
    assert shown.index("label-share") < shown.index("agreement")


def test_an_accuracy_of_one_in_every_draw_is_no_certainty_in_a_chart():
    def all_right(cell, random):
        learner = "learner" in cell.labels and "versus" not in cell.labels
        return [answers(1.0, random, metric="accuracy")] if learner else []

    comparison = planted(all_right, **WORLD, metrics="accuracy")
    labels = {"init": "trained", "learner": "gd 0.001", "metric": "accuracy"}
    (found,) = comparison.several(["sentiment"], "prompt", [labels], layers=False)
    (expected,) = shares(comparison.values(["sentiment"], "prompt", **labels)[..., None])
    assert found[:, 0] == pytest.approx([1.0, expected.low, 1.0])
    assert 0.8 < expected.low < 1


@pytest.mark.parametrize("draws", [ENOUGH_DRAWS - 1, ENOUGH_DRAWS, ENOUGH_DRAWS + 1])
def test_what_is_recovered_above_the_base_rate_has_an_interval_from_five_draws_on(draws):
    found = Difference(Estimate(0.2, 0.1, 0.3, 0.05, draws, 30, 1, "draws"), 0.01)
    shown = _above_base(found)
    assert (shown.value, shown.low == 0.1) == (0.2, draws >= ENOUGH_DRAWS)


def test_the_mean_over_layers_of_which_one_is_known_is_that_one():
    values = np.array([[0.4, np.nan], [0.2, 0.4], [np.nan, np.nan]])
    np.testing.assert_allclose(_mean(values, -1), [0.4, 0.3, np.nan])
