"""Charts of a comparison whose numbers are planted: every series is found by its labels and has its numbers."""

import numpy as np
import pytest
from planted_compare import LAYERS, QUERIES, planted
from planted_tables import FIELDS as PLANTED_TABLES
from planted_tables import HALF
from planted_tables import plant as plant_tables

from charted import charted, limits
from iclgd.labs.compare import charts
from iclgd.prompts import WHERE
from iclgd.results import array

FIELDS = {"learners": "gd", "nulls": "other-query,two-wrongs", "metrics": "SimAOU", "floor": False, "contrast": False}
RISE = 0.1 * np.arange(LAYERS)


def rising(value, **labels):
    """The same for every query, a tenth more with each layer; at the label twice as much."""
    values = np.stack([np.tile(value + RISE, (QUERIES, 1)), 2 * np.tile(value + RISE, (QUERIES, 1))])
    where = {"position": ("prompt", "label")}
    return array(values, "position", "query", "layer", coordinates=where, metric="SimAOU", **labels)


def plant(cell, _random):
    """Draws differ by .02, tasks by .04, untrained weights have half."""
    if "learner" not in cell.labels or "versus" in cell.labels:
        return []
    value = 0.2 + 0.02 * cell.labels["seed"] + 0.04 * (cell.labels["task"] == "kinds")
    if cell.labels["init"] != "trained":
        return [rising(value / 2)]
    return [rising(value), rising(0.05, null="other-query")]


def found(series, **labels):
    """The only series with these labels."""
    (one,) = [one for one in series if labels.items() <= one.labels.items()]
    return one


def by_layer(**more):
    comparison = planted(plant, **FIELDS, **more)
    return list(charts._lines(comparison, comparison.metrics))


def test_a_line_is_a_mean_over_draws_with_its_interval_and_every_draw_has_its_own():
    drawn, here = by_layer(seeds=3, init="trained,random"), "at the prompt's last token"
    whole = found(drawn, name="gd 0.001", position=here)
    assert whole.labels["role"] == "own"
    assert whole.values == pytest.approx(0.22 + RISE)
    assert (whole.low < whole.values).all()
    assert (whole.values < whole.high).all()
    for seed in range(3):
        one = found(drawn, seed=str(seed), position=here)
        assert one.values == pytest.approx(0.2 + 0.02 * seed + RISE)
        assert (one.labels["name"], len(one.low)) == (f"gd 0.001, seed {seed}", 0)
    assert found(drawn, against="another query's update", position=here).values == pytest.approx(0.05 + RISE)
    untrained = found(drawn, against="a model with random weights", position=here)
    assert (untrained.labels["role"], untrained.labels["part"]) == ("null", "whole updates")
    assert untrained.values == pytest.approx(0.11 + RISE)
    label = [one.values for one in drawn if one.labels["position"] != here and one.labels["name"] == "gd 0.001"]
    assert label == [pytest.approx(2 * (0.22 + RISE))]


def test_one_draw_and_several_tasks_have_no_lines_of_single_draws():
    assert {one.labels["seed"] for one in by_layer(seeds=1, init="trained")} == {"all", ""}
    drawn = by_layer(seeds=2, init="trained", task="sentiment,kinds")
    alone = {(one.labels["task"], one.labels["seed"]) for one in drawn}
    assert alone == {("all 2 tasks", "all"), ("all 2 tasks", "")} | {
        (task, seed) for task in ("sentiment", "kinds") for seed in ("all", "0", "1", "")
    }
    here = {"position": "at the prompt's last token", "seed": "all"}
    assert found(drawn, task="all 2 tasks", **here).values == pytest.approx(0.23 + RISE)
    assert found(drawn, task="kinds", **here).values == pytest.approx(0.25 + RISE)


def test_a_dot_is_the_mean_over_layers_with_nulls_and_untrained_models_beside_it():
    comparison = planted(plant, **FIELDS, seeds=3, init="trained,random")
    dots = [one for one in charts._dots(comparison) if one.labels["position"] == "at the prompt's last token"]
    means = {one.labels["name"]: (one.labels["role"], pytest.approx(float(one.values[0]))) for one in dots}
    assert means == {
        "gd 0.001": ("own", 0.32),
        "another query's update": ("null", 0.15),
        "a model with random weights": ("null", 0.21),
    }
    assert all(len(one.values) == 1 for one in dots)


def test_a_learner_without_a_null_or_an_untrained_model_stands_alone():
    def alone(cell, random):
        return plant(cell, random)[:1]

    comparison = planted(alone, **FIELDS | {"nulls": "none"}, seeds=2, init="trained")
    assert {one.labels["name"] for one in charts._dots(comparison)} == {"gd 0.001"}


@pytest.mark.parametrize(
    "learners, panel", [("gd,lcgd,task-vector", "metric"), ("gd,lcgd,task-vector,function-vector", "learner")]
)
def test_of_many_learners_each_has_a_panel_and_metrics_are_chosen(learners, panel):
    widget = charts.by_layer(planted(plant, **{**FIELDS, "learners": learners}, seeds=1, init="trained"))
    assert widget.data["panel"] == panel
    assert ("metric" in widget.data["choose"]) == (panel == "learner")


def test_alpha_of_a_pair_is_there_for_every_task_place_and_rate_with_its_interval():
    comparison = planted(plant_tables, **PLANTED_TABLES)
    found = charted(charts.alpha(comparison), "position", "rate", "name", panel="gd ~ lcgd")
    here = WHERE["label"]
    assert {name: found[here, "0.01", name] for name in ("sentiment", "kinds", "all 2 tasks")} == {
        "sentiment": [0.15], "kinds": [0.35], "all 2 tasks": [0.25],
    }  # fmt: skip
    assert found[here, "0.1", "kinds"] == [0.4]
    assert found[WHERE["prompt"], "0.01", "sentiment"] == [0.05]
    ((low,), (high,)) = limits(charts.alpha(comparison), "name", position=here, rate="0.01")[("sentiment",)]
    assert (low, high) == pytest.approx((0.15 - HALF, 0.15 + HALF), abs=1e-3)
    assert next(iter(found))[0] == here


def test_gradient_norms_are_there_by_layer_and_demonstration_counted_from_one():
    widget = charts.gradients(planted(plant_tables, **PLANTED_TABLES))
    assert charted(widget, "panel", "name") == {
        ("gd 0.1 on sentiment", "0"): [1, 10],
        ("gd 0.1 on sentiment", "1"): [0, 20],
        ("lcgd 0.1 on sentiment", "0"): [1, 10],
        ("lcgd 0.1 on sentiment", "1"): [0, 40],
    }
    assert widget.data["points"] == [1, 2]
    assert widget.data["log"] == ["gd 0.1 on sentiment", "lcgd 0.1 on sentiment"]
