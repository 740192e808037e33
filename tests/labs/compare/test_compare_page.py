"""What the page says of planted numbers: the sentence, the tables, the differences."""

import re

import numpy as np
import pytest
from planted_compare import likeness, planted
from planted_world import FIELDS, cell, world

from iclgd.lab import Cell
from iclgd.labs.compare.answer import answer
from iclgd.labs.compare.evidence import Evidence
from iclgd.labs.compare.figures import draw_layers
from iclgd.labs.compare.page import page
from iclgd.report.figures import COLOURS


def test_a_contrast_above_its_nulls_and_labels_that_were_learned_are_said():
    said = answer(planted(world(), **FIELDS))
    assert said.startswith("What labels change is more alike in reading and training than in every null that was run")
    assert ": cosine .3" in said
    assert "Training learned the labels or their frequencies." in said
    assert "SimAOU of whole updates is above that of every null and untrained model that was run: .3" in said


def test_a_contrast_no_larger_than_its_null_is_not_shown():
    said = answer(planted(world(contrast=0.02, null=0.02), **FIELDS))
    assert "What labels change is not shown to be alike in reading and training" in said
    assert "another query's update .0" in said


def test_labels_that_training_did_not_learn_are_said_not_to_be():
    said = answer(planted(world(right=0.5, wrong=0.5), **FIELDS))
    assert "Training is not shown to learn the labels or their frequencies." in said


def test_of_the_nulls_and_untrained_models_that_are_as_alike_the_nearest_is_named():
    said = answer(planted(world(wrong_update=0.4, untrained=0.6), **FIELDS))
    assert "SimAOU of whole updates is not shown above its nearest rival: .3" in said
    assert "a model with random weights .6" in said
    assert "trained on wrong labels" not in said
    assert "trained on wrong labels .4" in answer(planted(world(wrong_update=0.4), **FIELDS))


def test_the_answer_speaks_of_the_contrast_first_and_is_read_to_its_end():
    fields = {**FIELDS, "learners": "gd,lcgd", "nulls": "random,other-query,wrong-labels,other-demos"}
    for one in (world(), world(contrast=0.02, null=0.02, right=0.5, wrong=0.5, wrong_update=0.4, untrained=0.6)):
        said = answer(planted(one, **fields))
        assert len(said.split()) <= 75
        first = said.split(". ")[0]
        assert first.startswith("What labels change is ")
        assert re.search(r"cosine -?[\d.]+ \[-?[\d.]+ -?[\d.]+\]", first)
        assert len(first.split()) <= 35
        assert "the most alike of 2 learners)" in first


def test_what_the_terminal_shows_unasked_fits_a_hundred_columns():
    comparison = planted(world(), **{**FIELDS, "learners": "gd,lcgd"})
    shown = page(comparison.study).text(width=100)
    assert max(map(len, shown.splitlines())) <= 100
    table = Evidence(comparison, "prompt").short(["sentiment"])
    assert list(table.header) == ["", "accuracy", "contrast, outputs", "SimAOU"]
    assert cell(table, "gd 0.001", "SimAOU").value == pytest.approx(0.4, abs=0.02)
    assert cell(table, "  trained on wrong labels", "accuracy").value == pytest.approx(0.3)
    assert cell(table, "  a model with random weights", "SimAOU").value == pytest.approx(0.1, abs=0.02)


def test_a_learner_has_one_colour_and_a_row_has_at_most_four_panels():
    metrics = "SimAOU,SimAOU_norm,SimAM_delta,SimBlock,examples/metric.py:signs"
    comparison = planted(world(), **{**FIELDS, "learners": "gd,lcgd", "metrics": f"accuracy,{metrics}"})
    made = draw_layers(comparison, "prompt")
    places = {(round(one.get_subplotspec().rowspan.start), one.get_subplotspec().colspan.start) for one in made.axes}
    assert places == {(0, 0), (0, 1), (0, 2), (0, 3), (1, 0)}
    drawn = {line.get_label(): line.get_color() for one in made.axes for line in one.get_lines()}
    assert (drawn["gd 0.001"], drawn["lcgd 0.001"]) == COLOURS[1:3]
    assert len(made.legends) == 1


def test_one_seed_decides_nothing():
    said = answer(planted(world(), **{**FIELDS, "seeds": 1}))
    assert said.startswith("With 1 seed nothing is decided: what labels change")
    assert "is not shown to be alike" in said
    full = page(planted(world(), **{**FIELDS, "seeds": 1}).study).text(full=True)
    assert "1 seed: no interval over draws" in full
    assert "decide nothing" in " ".join(full.split())  # beside p-values that are small
    assert "decide nothing" not in " ".join(page(planted(world(), **FIELDS).study).text(full=True).split())


def test_of_several_rates_the_answer_speaks_of_the_one_that_tells_labels_apart_and_of_every_learner():
    def plant(cell: Cell, random: np.random.Generator):
        learner = str(cell.labels.get("learner", ""))
        sound = world(right=0.9 if "0.01" in learner else 0.5, wrong=0.5)
        return sound(cell, random)

    said = answer(planted(plant, **{**FIELDS, "learners": "gd,gd:target=label", "rates": "0.001,0.01,0.1"}))
    assert "raining learned the labels or their frequencies (gd 0.01, gd 0.01 target=label)" in said
    assert "gd 0.1" not in said
    assert "gd 0.001" not in said
    assert "Of several rates this is the one at which training tells right labels from wrong ones best" in said
    assert "several rates" not in answer(planted(world(), **FIELDS))


def test_without_wrong_labels_the_answer_speaks_of_the_rate_that_is_most_alike_and_says_so():
    def plant(cell: Cell, random: np.random.Generator):
        learner = str(cell.labels.get("learner", ""))
        found = world(contrast=0.5 if learner == "gd 0.01" else 0.1)(cell, random)
        return [one for one in found if one.labels.get("null") != "wrong-labels"]

    said = answer(planted(plant, **{**FIELDS, "nulls": "other-query", "rates": "0.001,0.01,0.1"}))
    assert "(gd 0.01)" in said
    assert "Of several rates this is the one at which they are most alike." in said


def test_a_column_that_was_not_asked_for_is_not_in_the_short_table():
    table = Evidence(planted(world(), **{**FIELDS, "contrast": False}), "prompt").short(["sentiment"])
    assert list(table.header) == ["", "accuracy", "SimAOU"]


def test_a_learner_that_diverged_is_said_to_have():
    comparison = planted(lambda cell, random: [], facts={"diverged": "the loss is not a finite number"}, **FIELDS)
    assert "Training diverged in some draws (gd 0.001)" in answer(comparison)
    rows = Evidence(comparison, "prompt").one_task("sentiment").rows
    assert ["gd 0.001", "diverged in 5 of 5 seeds"] in [list(row[:2]) for row in rows]


def test_every_form_of_the_page_has_the_answer():
    shown = page(planted(world(), **FIELDS).study)
    assert shown.answer in shown.markdown()
    assert shown.answer == shown.plain()["answer"]
    assert "alike in reading and training" in shown.html()
    assert "30 queries" in shown.subtitle


def test_without_a_null_nothing_is_above_one():
    whole = world()

    def plant(cell: Cell, random: np.random.Generator):
        return [one for one in whole(cell, random) if "null" not in one.labels]

    said = answer(planted(plant, **{**FIELDS, "nulls": "", "init": "trained"}))
    assert "has no null beside it" in said
    assert "above" not in said
    assert "what labels change is not shown" in said.lower()


def test_a_null_that_some_draws_lack_is_not_one_to_be_above():
    whole = world(null=-0.2)

    def plant(cell: Cell, random: np.random.Generator):
        arrays = whole(cell, random)
        lost = cell.labels.get("seed") == 3
        return [one for one in arrays if not (lost and one.labels.get("null") == "other-query")]

    assert "is not shown to be alike in reading and training" in answer(planted(plant, **FIELDS))


def test_an_untrained_model_that_diverged_in_some_draws_is_not_one_to_be_above():
    whole = world()

    def plant(cell: Cell, random: np.random.Generator):
        lost = (cell.labels["init"], cell.labels.get("seed")) == ("random", 3)
        return [] if lost else whole(cell, random)

    said = answer(planted(plant, **FIELDS))
    assert "SimAOU of whole updates is not shown above its nearest rival" in said
    assert "a model with random weights .1" in said


def test_labels_are_not_shown_to_be_learned_where_training_on_wrong_ones_diverged_in_some_draws():
    whole = world()

    def plant(cell: Cell, random: np.random.Generator):
        lost = cell.labels.get("seed") == 3 and "learner" in cell.labels
        return [one for one in whole(cell, random) if not (lost and one.labels.get("null") == "wrong-labels")]

    assert "Training is not shown to learn the labels or their frequencies." in answer(planted(plant, **FIELDS))


def test_only_as_many_demonstrations_of_every_class_leave_nothing_to_learn_but_the_labels():
    """Nine demonstrations of two classes are five and four, which wrong labels turn into four and five."""
    assert "Training learned the labels." in answer(planted(world(), **FIELDS, balanced=True))
    assert "the labels or their frequencies" in answer(planted(world(), **FIELDS, balanced=True, k=9))
    dropped = planted(world(), facts={"demonstrations_dropped": 2}, **FIELDS, balanced=True)
    assert "the labels or their frequencies" in answer(dropped)


def test_one_draw_of_each_of_several_tasks_decides_what_tasks_decide():
    said = answer(planted(world(), **{**FIELDS, "seeds": 1, "task": "sentiment,kinds,continents,sst2"}))
    assert said.startswith("What labels change is more alike in reading and training than in every null that was run")


def test_a_negative_contrast_is_not_alike_however_low_its_nulls_are():
    assert "is not shown to be alike" in answer(planted(world(contrast=-0.2, null=-0.4), **FIELDS))


def test_two_wrong_labelings_are_a_control_and_forbid_nothing():
    whole = world()

    def plant(cell: Cell, random: np.random.Generator):
        control = [likeness(0.9, random, metric="contrast-AOU", null="two-wrongs")] if "learner" in cell.labels else []
        return whole(cell, random) + control

    said = answer(planted(plant, **{**FIELDS, "nulls": "other-query,wrong-labels,two-wrongs"}))
    assert "more alike in reading and training than in every null that was run" in said


def test_of_several_learners_with_one_verdict_the_most_alike_is_named_and_others_have_their_own():
    def plant(cell: Cell, random: np.random.Generator):
        first = str(cell.labels.get("learner", "")).startswith("gd")
        return world(contrast=0.3 if first else -0.1)(cell, random)

    said = answer(planted(plant, **{**FIELDS, "learners": "gd,lcgd"}))
    first, second, *_ = said.split(". ")
    assert re.fullmatch(r"What labels change is more alike .* that was run: cosine \.3.*\(gd\)", first)
    assert re.fullmatch(r"What labels change is not shown .* \(lcgd\)", second)


def test_of_learners_with_one_verdict_the_numbers_are_those_of_the_most_alike():
    def plant(cell: Cell, random: np.random.Generator):
        first = str(cell.labels.get("learner", "")).startswith("gd")
        return world(contrast=-0.1 if first else -0.3, null=0.1)(cell, random)

    said = answer(planted(plant, **{**FIELDS, "learners": "gd,lcgd"})).split(". ")[0]
    assert re.search(r"cosine -\.(09|10).*\(gd, the most alike of 2 learners\)", said)


def test_a_contrast_whose_interval_has_zero_in_it_is_not_shown_however_low_its_nulls_are():
    def plant(cell: Cell, random: np.random.Generator):
        return world(contrast=(-0.2, 0.3, 0.3, -0.2, 0.2)[int(cell.labels.get("seed", 0))], null=-0.9)(cell, random)

    said = answer(planted(plant, **FIELDS))
    assert re.match(r"What labels change is not shown to be alike in reading and training: cosine \.\d+ \[-\.", said)


def test_before_one_chooses_the_picture_shows_the_rate_that_the_answer_speaks_of():
    def plant(cell: Cell, random: np.random.Generator):
        return world(right=0.9 if cell.labels.get("learner") == "gd 0.001" else 0.5)(cell, random)

    comparison = planted(plant, **{**FIELDS, "rates": [0.1, 0.001, 0.01]})
    data = page(comparison.study).picture.data
    assert "(gd 0.001)" in answer(comparison)
    assert data["names"]["rate"][0] == "0.001"
    assert data["names"]["metric"][0] == "contrast, outputs"


def test_a_null_that_only_some_tasks_can_have_says_how_many():
    """Its mean is over other tasks than that of the row above it, so the two cannot be subtracted."""
    whole = world()

    def plant(cell: Cell, random: np.random.Generator):
        few = cell.labels["task"] != "sentiment" and "learner" in cell.labels
        return whole(cell, random) + ([likeness(0.9, random, metric="contrast-AOU", null="two-wrongs")] if few else [])

    nulls = "other-query,wrong-labels,two-wrongs"
    comparison = planted(plant, **{**FIELDS, "nulls": nulls, "task": "sentiment,kinds,continents"})
    titles = [row[0] for row in Evidence(comparison, "prompt").labels(comparison.spec.task).rows]
    assert "  two wrong labelings (a control), 2 of 3 tasks" in titles
    assert "  another query's update" in titles
