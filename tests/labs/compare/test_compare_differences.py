"""Numbers of planted comparisons: each in its row, differences paired, means over tasks, intervals within bounds."""

import numpy as np
import pytest
from planted_compare import likeness, planted
from planted_world import FIELDS, cell, world

from iclgd.lab import Cell
from iclgd.labs.compare.evidence import Evidence
from iclgd.metrics.differences import difference
from iclgd.results import array


def test_a_table_has_each_number_in_its_own_row_and_column():
    comparison = planted(world(), **FIELDS)
    at_prompt, at_label = (Evidence(comparison, where).one_task("sentiment") for where in ("prompt", "label"))
    assert cell(at_prompt, "gd 0.001", "SimAOU").value == pytest.approx(0.4, abs=0.02)
    assert cell(at_label, "gd 0.001", "SimAOU").value == pytest.approx(0.5, abs=0.02)
    assert cell(at_prompt, "gd 0.001: trained on wrong labels", "SimAOU").value == pytest.approx(0.1, abs=0.02)
    assert cell(at_prompt, "icl", "accuracy").value == pytest.approx(0.8)
    untrained = [row for row in at_prompt.rows if row[0] == "gd 0.001"][1]
    assert untrained[list(at_prompt.header).index("SimAOU")].value == pytest.approx(0.1, abs=0.02)


def test_the_labels_table_has_both_accuracies_the_share_and_the_contrast_with_its_null():
    table = Evidence(planted(world(), **FIELDS), "prompt").labels(["sentiment"])
    assert cell(table, "icl", "right labels").value == pytest.approx(0.8)
    assert cell(table, "icl", "wrong labels").value == pytest.approx(0.4)
    assert cell(table, "icl", "labels' share").value == pytest.approx(0.2, abs=0.02)
    assert cell(table, "gd 0.001", "contrast, outputs").value == pytest.approx(0.3, abs=0.02)
    assert cell(table, "  another query's update", "contrast, outputs").value == pytest.approx(0, abs=0.02)


def test_differences_have_a_sign_an_interval_a_p_value_and_layers_by_direction():
    table = Evidence(planted(world(own=0.1, untrained=0.4), **FIELDS), "prompt").differences(["sentiment"], "SimAOU")
    (row,) = (row for row in table.rows if row[0] == "gd 0.001: trained − random")
    difference, p, verdict, layers = row[1:]
    assert difference.value == pytest.approx(-0.3, abs=0.03)
    assert difference.high < 0
    assert (p, verdict, layers) == ("< .001", "below", "0 up, 3 down of 3")
    (same,) = (row for row in table.rows if row[0] == "gd 0.001 − trained on wrong labels")
    assert same[3] == "undecided"


def test_the_mean_over_tasks_weighs_tasks_alike_and_its_interval_is_over_tasks():
    def plant(cell: Cell, random: np.random.Generator):
        if "learner" not in cell.labels or "versus" in cell.labels:
            return []
        mean = {"sentiment": 0.0, "kinds": 0.6}[str(cell.labels["task"])]
        return [likeness(mean, random, spread=0.01, metric="SimAOU")]

    comparison = planted(plant, **{**FIELDS, "task": "sentiment,kinds", "init": "trained"})
    found = comparison.estimate(["sentiment", "kinds"], "prompt", init="trained", learner="gd 0.001", metric="SimAOU")
    assert found.mean == pytest.approx(0.3, abs=0.01)
    assert found.kind == "tasks"
    assert found.high - found.low > 1  # two tasks that differ by .6 say little about a third


def test_a_seed_without_a_number_is_left_out_of_both_sides_of_a_difference():
    def plant(cell: Cell, random: np.random.Generator):
        if "learner" not in cell.labels or "versus" in cell.labels:
            return []
        seed = int(cell.labels["seed"])
        own = [likeness(0.1 * seed, random, spread=0, metric="SimAOU")] if seed != 2 else []
        return [*own, likeness(0.1 * seed - 0.05, random, spread=0, metric="SimAOU", null="other-query")]

    comparison = planted(plant, **{**FIELDS, "init": "trained"})
    base = {"init": "trained", "learner": "gd 0.001", "metric": "SimAOU"}
    found = comparison.difference(["sentiment"], "prompt", base, {**base, "null": "other-query"})
    assert found.estimate.mean == pytest.approx(0.05)
    assert found.estimate.seeds == 4


def test_a_layer_counts_in_a_difference_only_where_both_sides_know_it():
    def plant(cell: Cell, random: np.random.Generator):
        if "learner" not in cell.labels or "versus" in cell.labels:
            return []
        levels = np.array([-0.3, 0.1, 0.2])  # the layers differ, the learner and its null do not
        own = np.broadcast_to(levels, (2, 30, 3)) + 0.02 * random.standard_normal((2, 30, 3))
        null = own + 0.001 * random.standard_normal(own.shape)
        own = np.where(np.arange(3) == 0, np.nan, own)  # no direction in the first layer
        where = {"position": ("prompt", "label")}
        axes = ("position", "query", "layer")
        return [
            array(own, *axes, coordinates=where, metric="SimAOU"),
            array(null, *axes, coordinates=where, metric="SimAOU", null="other-query"),
        ]

    comparison = planted(plant, **{**FIELDS, "init": "trained"})
    base = {"init": "trained", "learner": "gd 0.001", "metric": "SimAOU"}
    found = comparison.difference(["sentiment"], "prompt", base, {**base, "null": "other-query"})
    assert abs(found.estimate.mean) < 0.002
    assert found.verdict == "undecided"


def test_layers_that_are_apart_are_counted_after_a_correction_for_their_number():
    """Student's t with two degrees of freedom: p = .04 of the first of three layers, which is no more than chance."""

    def plant(cell: Cell, random: np.random.Generator):
        if "learner" not in cell.labels or "versus" in cell.labels:
            return []
        draw = int(cell.labels["seed"]) - 1  # -1, 0, 1
        levels = np.array([4.85 * 0.02 / 3**0.5 + 0.02 * draw, 0.02 * draw, 0.02 * (draw**2 - 2 / 3)])
        where = {"coordinates": {"position": ("prompt", "label")}}
        axes, shape = ("position", "query", "layer"), (2, 30, 3)
        return [
            array(np.broadcast_to(levels, shape), *axes, metric="SimAOU", **where),
            array(np.zeros(shape), *axes, metric="SimAOU", null="other-query", **where),
        ]

    comparison = planted(plant, **{**FIELDS, "init": "trained", "seeds": 3})
    base = {"init": "trained", "learner": "gd 0.001", "metric": "SimAOU"}
    null = {**base, "null": "other-query"}
    values = comparison.values(["sentiment"], "prompt", **base)
    first = difference(values[..., 0], np.zeros_like(values[..., 0]))
    assert (first.verdict, first.p) == ("above", pytest.approx(0.04, abs=0.001))
    found = comparison.layers_apart(["sentiment"], "prompt", base, null)
    assert (found.up, found.down, found.of) == (0, 0, 3)


def test_no_interval_reaches_below_what_the_quantity_can_be():
    def plant(cell: Cell, random: np.random.Generator):
        seed = int(cell.labels["seed"])
        return (
            [likeness(0.9 * seed, random, spread=0, metric="label-share", learner="icl")]
            if len(cell.labels) == 3
            else []
        )

    comparison = planted(plant, **{**FIELDS, "init": "trained", "seeds": 2})
    found = comparison.estimate(["sentiment"], "prompt", init="trained", learner="icl", metric="label-share")
    assert (found.mean, found.low) == (pytest.approx(0.45), 0)
    labels = {"init": "trained", "learner": "icl", "metric": "label-share"}
    for layers in (False, True):
        (ends,) = comparison.several(["sentiment"], "prompt", [labels], layers)
        assert ends[1].tolist() == [0.0] * ends.shape[1]
    assert [one.low for one in comparison.by_layer(["sentiment"], "prompt", **labels)] == [0.0] * 3


def test_the_difference_of_right_and_wrong_labels_is_between_these_two():
    table = Evidence(planted(world(right=0.9, wrong=0.3), **FIELDS), "prompt").differences(["sentiment"], "accuracy")
    found = {row[0]: row[1].value for row in table.rows}
    assert found["gd 0.001: right − wrong labels"] == pytest.approx(0.6)
    assert found["icl: right − wrong labels"] == pytest.approx(0.4)
    assert found["icl − zero-shot"] == pytest.approx(0.3)
