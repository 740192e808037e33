"""What some draws lack is marked in its row, decides nothing, and is listed with its reason."""

from collections.abc import Callable

import numpy as np
import planted_tables as tables
import pytest
from planted_compare import planted
from planted_world import FIELDS, world

from iclgd.lab import Cell
from iclgd.labs.compare.evidence import Evidence
from iclgd.labs.compare.nearer import nearer
from iclgd.labs.compare.page import page
from iclgd.labs.compare.spec import CONSTANT
from iclgd.results import Array, array

ALONE = {**FIELDS, "init": "trained"}


def without(lost: Callable[[Cell, Array], bool]):
    """The world whose arrays are lost where they are said to be."""
    whole = world()
    return lambda cell, random: [one for one in whole(cell, random) if not lost(cell, one)]


def diverging_null(cell: Cell, one: Array) -> bool:
    return one.labels.get("null") == "wrong-labels" and "learner" in cell.labels and int(cell.labels["seed"]) < 2


def diverging_contrast(cell: Cell, one: Array) -> bool:
    return one.labels.get("metric") == "contrast-AOU" and int(cell.labels["seed"]) < 3


def names(table) -> list[str]:
    return [line[0] for line in table.texts()]


def test_a_null_that_diverged_in_some_draws_says_of_how_many_its_row_is():
    tables = Evidence(planted(without(diverging_null), **ALONE), "prompt")
    part = "trained on wrong labels, 3 of 5 draws"
    assert f"gd 0.001: {part}" in names(tables.one_task("sentiment"))
    assert f"  {part}" in names(tables.short(["sentiment"]))
    assert f"gd 0.001: {part}" in names(tables.nulls_by_task("SimAOU", ["gd 0.001"]))
    for table in (tables.one_task("sentiment"), tables.short(["sentiment"])):
        assert [name for name in names(table) if "draws" in name] == [n for n in names(table) if part in n]


def test_a_contrast_that_some_draws_lack_marks_the_learners_own_row_and_those_below():
    tables = Evidence(planted(without(diverging_contrast), **ALONE), "prompt")
    for table in (tables.labels(["sentiment"]), tables.short(["sentiment"])):
        assert "gd 0.001, contrast in 2 of 5 draws" in names(table)
    assert "  another query's update, 2 of 5 draws" in names(tables.labels(["sentiment"]))
    assert "  another query's update, contrast in 2 of 5 draws" in names(tables.short(["sentiment"]))
    assert "gd 0.001" in names(tables.one_task("sentiment"))  # which has no contrast


def test_draws_are_counted_over_all_tasks_and_a_null_may_have_lost_more_of_its_contrast():
    def lost(cell: Cell, one: Array) -> bool:
        first = cell.labels["task"] == "kinds" and one.labels.get("null") == "other-query"
        return first and (int(cell.labels["seed"]) == 0 or diverging_contrast(cell, one))

    fields = {**ALONE, "task": "sentiment,kinds"}
    table = Evidence(planted(without(lost), **fields), "prompt").short(["sentiment", "kinds"])
    assert "  another query's update, 9 of 10 draws, contrast in 7 of 10 draws" in names(table)


@pytest.mark.parametrize("lost, metric", [(diverging_null, "SimAOU"), (diverging_contrast, "contrast-AOU")])
def test_a_difference_to_what_some_draws_lack_is_undecided(lost, metric):
    def verdicts(plant) -> dict[str, tuple[str, str]]:
        table = Evidence(planted(plant, **ALONE), "prompt").differences(["sentiment"], metric)
        return {line[0]: (line[3], line[4]) for line in table.texts()}

    whole, part = verdicts(world()), verdicts(without(lost))
    assert set(whole.values()) == {("above", "3 up, 0 down of 3")}
    marked = {name: verdict for name, verdict in part.items() if name.endswith(" of 5 draws")}
    assert set(marked.values()) == {("undecided", "")}
    assert {name for name in part if name not in marked} == {n for n in whole if n in part}
    assert len(marked) == 1


def test_nobody_is_surely_nearer_than_what_some_draws_lack():
    def plant(lost: bool):
        def planting(cell: Cell, random: np.random.Generator) -> list[Array]:
            seed, level = int(cell.labels["seed"]), 0.01 * int(cell.labels["seed"])
            whole = array(np.ones(30), "query", quantity="whole of margins-missed", learner="icl")
            if "learner" not in cell.labels:
                return [whole]
            found = [array(np.full(30, 0.5 + level), "query", metric="margins-missed")]
            wrong = array(np.full(30, 0.9 + 2 * level), "query", metric="margins-missed", null="wrong-labels")
            return found if lost and seed == 0 else [*found, wrong]

        return planting

    fields = {**ALONE, "metrics": "margins-missed"}
    whole, part = (nearer(Evidence(planted(plant(lost), **fields), "prompt")).texts() for lost in (False, True))
    assert whole[0][2] == "trained on wrong labels"
    assert part[0][2] == ""


def facts(comparison, **asked: object):
    """The facts of every learner's cell, to be changed where a test wants to."""
    return {
        (str(cell.labels["task"]), int(cell.labels["seed"]), str(cell.labels.get("learner", "icl"))): result.facts
        for cell, result in comparison.study.found()
        if "versus" not in cell.labels and all(cell.labels.get(name) == value for name, value in asked.items())
    }


def test_what_is_not_there_is_listed_with_its_reason_and_learners_alike_share_a_row():
    fields = {**ALONE, "learners": "gd,lcgd", "task": "sentiment,kinds", "init": "trained,random"}
    comparison = planted(world(), **fields)
    for (task, seed, learner), known in facts(comparison, init="trained").items():
        if learner == "icl":
            known["floor"] = None
            continue
        known |= {"diverged": None, "nulls_left_out": {}, "floor": "there is none" if seed == 0 else None}
        if task == "sentiment":
            known["nulls_left_out"]["two-wrongs, contrast"] = "it needs three classes."
        if learner.startswith("gd") and seed < 3:
            known["nulls_left_out"]["other-demos"] = "it diverged"
        if learner.startswith("lcgd"):
            known["nulls_left_out"]["contrast"] = "training on wrong labels diverged"
    untrained = facts(comparison, init="random")
    for known in untrained.values():
        known |= {"diverged": None, "nulls_left_out": {}}
    untrained["kinds", 1, "gd 0.001"]["diverged"] = "the loss is not a number"
    shown = page(comparison.study)
    assert shown.table("What is not there").texts() == [
        ["two wrong labelings (a control), contrast", "all", "of sentiment", "it needs three classes."],
        ["trained on other demonstrations", "gd 0.001", "6 of 10", "it diverged"],
        [
            "noise floor in wider precision (first draw)",
            "gd 0.001, lcgd 0.001",
            "2 of 10",
            "there is none",
        ],
        ["contrast of labels", "lcgd 0.001", "all", "training on wrong labels diverged"],
        ["training", "gd 0.001, random weights", "1 of 10", "the loss is not a number"],
    ]


def test_where_nothing_is_absent_no_list_is_shown():
    comparison = planted(world(), facts={"diverged": None, "nulls_left_out": {}, "floor": None}, **ALONE)
    assert "What is not there" not in [section.title for section in page(comparison.study).sections]


def test_the_share_of_weights_that_moved_stands_beside_the_length_of_their_change():
    comparison = planted(world(), **ALONE)
    for (_, seed, learner), known in facts(comparison).items():
        known |= {"moved": 0.1 * seed} if learner == "gd 0.001" else {}
    table = Evidence(comparison, "prompt").training(["sentiment"])
    assert table.texts()[0][list(table.header).index("weights moved")] == ".200"
    without_it = Evidence(planted(world(), **ALONE), "prompt").training(["sentiment"])
    assert without_it.texts()[0][list(table.header).index("weights moved")] == "n/a"


def test_a_cosine_of_weight_changes_says_of_how_many_draws_it_is():
    def plant(cell: Cell, random: np.random.Generator) -> list[Array]:
        known = "learner" in cell.labels and int(cell.labels["seed"]) < 2
        return [array([0.9, 0.8], "layer", quantity="weight change, right and wrong labels")] if known else []

    table = Evidence(planted(plant, **ALONE), "prompt").training(["sentiment"])
    assert table.texts()[0][-1] == ".850 [.850 .850] 2 of 5 draws"


def test_who_is_nearer_is_not_decided_by_the_draws_of_a_null_that_are_left():
    def lacking(cell: Cell, random: np.random.Generator) -> list[Array]:
        gone = (cell.labels["task"], cell.labels["seed"]) == ("kinds", 2)
        return [one for one in tables.plant(cell, random) if not (gone and one.labels.get("null") == "wrong-labels")]

    def less(plant) -> dict[str, str]:
        return {str(row[0]): str(row[2]) for row in nearer(Evidence(planted(plant, **tables.FIELDS), "prompt")).rows}

    whole, part = less(tables.plant), less(lacking)
    assert whole["kinds: gd 0.01"] == f"{CONSTANT}, trained on wrong labels"
    assert part["kinds: gd 0.01"] == CONSTANT
    assert part["sentiment: lcgd 0.1"] == f"{CONSTANT}, trained on wrong labels"
