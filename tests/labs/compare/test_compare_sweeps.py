"""Learners at several rates: one line a learner, and one rate that stands for it, the one that learns labels best."""

import numpy as np
import pytest
from planted_compare import QUERIES, likeness, planted

from iclgd.labs.compare.answer import answer
from iclgd.labs.compare.evidence import Evidence
from iclgd.labs.compare.figures import draw_gradients, draw_layers, drawings
from iclgd.labs.compare.spoken import spoken_of
from iclgd.labs.compare.sweeps import colours_of, draw_rates, draw_sizes
from iclgd.report.figures import svg
from iclgd.results import Array, array

FIELDS = {
    "task": "sentiment",
    "learners": "gd,gd:target=label,lcgd",
    "rates": "0.01,0.1",
    "seeds": 3,
    "nulls": "other-query,wrong-labels",
    "metrics": "accuracy,calibrated,SimAOU",
}
LEVEL = {
    "gd 0.01": 0.1,
    "gd 0.1": 0.2,
    "gd 0.01 target=label": 0.3,
    "gd 0.1 target=label": 0.4,
    "lcgd 0.01": 0.5,
    "lcgd 0.1": 0.6,
}
# accuracy after right labels less after wrong ones: one learner tells them apart at its slow rate, others at their fast
LEARNED = {"gd 0.01 target=label": 0.4, "gd 0.1": 0.2, "lcgd 0.1": 0.1}
SPOKEN = ["gd 0.1", "gd 0.01 target=label", "lcgd 0.1"]


def right(share: float, **labels: str) -> Array:
    return array((np.arange(QUERIES) < round(share * QUERIES)).astype(float), "query", **labels)


def plant(cell, random):
    if "learner" not in cell.labels:
        return [right(0.5, metric="accuracy", learner=name) for name in ("zero-shot", "icl")]
    name = str(cell.labels["learner"])
    return [
        right(0.5 + LEARNED.get(name, 0.0), metric="accuracy"),
        right(0.5, metric="accuracy", null="wrong-labels"),
        likeness(LEVEL[name], random, spread=0, metric="SimAOU"),
        likeness(LEVEL[name] / 10, random, spread=0, metric="SimAOU", null="other-query"),
        array(np.full((3, 2), 10 * LEVEL[name]), "layer", "demonstration", quantity="gradient norm"),
        array(np.full(4, LEVEL[name]), "layer", quantity="weight change"),
    ]


@pytest.fixture(scope="module")
def comparison():
    return planted(plant, **FIELDS)


def lines(axes) -> dict[str, list[list[float]]]:
    found = [line for line in axes.get_lines() if not line.get_label().startswith("_")]
    return {line.get_label(): np.round(line.get_xydata(), 6).tolist() for line in found}


def test_a_learner_with_another_option_has_a_line_and_a_colour_of_its_own(comparison):
    found = lines(draw_rates(comparison).axes[0])
    assert found["gd"] == [[0.01, 0.1], [0.1, 0.2]]
    assert found["gd target=label"] == [[0.01, 0.3], [0.1, 0.4]]
    assert found["gd target=label: another query's update"] == [[0.01, 0.03], [0.1, 0.04]]
    assert found["lcgd"] == [[0.01, 0.5], [0.1, 0.6]]
    assert len(set(colours_of(comparison).values())) == 3


def test_sizes_have_a_line_for_each_learner_too(comparison):
    found = lines(draw_sizes(comparison).axes[0])
    assert found["gd"] == [[0.2, 0.1], [0.4, 0.2]]
    assert found["gd target=label"] == [[0.6, 0.3], [0.8, 0.4]]


def test_the_rate_that_learns_labels_best_stands_for_a_learner_in_figures_and_beside_nulls(comparison):
    assert [choice.label for choice in spoken_of(comparison)] == SPOKEN
    drawn = lines(draw_layers(comparison, "prompt").axes[0])
    assert [name for name in drawn if ":" not in name and "random weights" not in name] == SPOKEN
    assert drawn["gd target=label: another query's update"] == [[0, 0.03], [1, 0.03], [2, 0.03]]
    panels = [axes.get_title(loc="left") for axes in draw_gradients(comparison).axes if axes.get_title(loc="left")]
    assert panels == [f"{name} on sentiment" for name in SPOKEN]
    table = Evidence(comparison, "prompt").one_task("sentiment").texts()
    assert [line[0] for line in table if line[0].endswith(": another query's update")] == [
        f"{name}: another query's update" for name in SPOKEN
    ]


def test_the_best_of_a_learners_rates_is_not_taken_from_another_learner(comparison):
    table = {line[0]: line for line in Evidence(comparison, "prompt").one_task("sentiment").texts()}
    assert table["gd, best of 2, column by column"][-1] == ".200"
    assert table["gd target=label, best of 2, column by column"][-1] == ".400"


def test_labels_learned_at_the_best_of_several_rates_are_corrected_for_the_rates_it_is_the_best_of():
    gains = (0.3, 0.4, 0.1, 0.2, 0.3)  # by draw: above 0 at 5%, not at 1%

    def learns(cell, random):
        gain = gains[int(cell.labels["seed"])] if cell.labels.get("learner") == "gd 0.01" else 0.0
        found = [right(0.5 + gain, metric="accuracy"), right(0.5, metric="accuracy", null="wrong-labels")]
        return found if "learner" in cell.labels else []

    fields = {**FIELDS, "learners": "gd", "seeds": 5, "metrics": "accuracy"}
    one, five = (answer(planted(learns, **{**fields, "rates": rates})) for rates in ("0.01", "1e-4,1e-3,0.01,0.1,1"))
    assert "Training learned the labels" in one
    assert "Training is not shown to learn the labels" in five


def test_a_rate_that_changes_nothing_does_not_stand_for_a_learner():
    def still(cell, random):
        if cell.labels.get("learner") == "gd 0":
            return [right(0.5, metric="accuracy"), likeness(np.nan, random, metric="SimAOU")]
        found = [right(0.5, metric="accuracy"), likeness(-0.2, random, metric="SimAOU")]
        return found if "learner" in cell.labels else []

    for nulls in ("other-query", "wrong-labels"):
        fields = {**FIELDS, "learners": "gd", "rates": "0,0.1", "nulls": nulls, "metrics": "accuracy,SimAOU"}
        assert [choice.label for choice in spoken_of(planted(still, **fields))] == ["gd 0.1"]


def test_a_rate_that_diverged_in_one_draw_does_not_stand_for_a_learner():
    found = planted(plant, **FIELDS)
    gone = next(i for i, cell in enumerate(found.study.cells) if cell.labels.get("learner") == "gd 0.1")
    found.study.results[str(gone)].facts["diverged"] = "the loss is not a finite number"
    assert [choice.label for choice in spoken_of(found)] == ["gd 0.01", *SPOKEN[1:]]
    assert lines(draw_rates(found).axes[0])["gd"] == [[0.01, 0.1]]


def test_rates_without_accuracies_have_no_panel_of_them():
    """An axis of rates without a number on it has no scale to be drawn to."""
    named = drawings(planted(plant, **FIELDS | {"metrics": "SimAOU"}))
    assert [panel.get_title("left") for panel in named["rates"]().axes] == ["SimAOU"]
    assert svg(named["rates"]())
    assert not {"rates", "sizes"} & set(drawings(planted(plant, **FIELDS | {"metrics": "agreement"})))
