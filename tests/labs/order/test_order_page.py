"""The page of `order`, on results that were made up."""

import re
from dataclasses import replace

import numpy as np
import pytest

from iclgd.labs.order import page as module
from iclgd.labs.order.page import (
    _in_logs,
    anchors_table,
    orders_table,
    over_rounding,
    spread_of_p,
    spread_of_updates,
    tokens_table,
)
from iclgd.labs.order.spec import OrderSpec
from iclgd.results import Result, array
from iclgd.study import Study


def planted(reading, training, seeds=3, tasks=("sentiment",), update=1):
    """Spreads of p and of updates that are known: reading's and one learner's, by seed and query; a task has a query
    less than the one before it, and the n-th n times the spread. A learner's update varies `update` times as its p.
    """
    spec = OrderSpec.of({"k": 3, "queries": 4, "orders": 2, "seeds": seeds, "learners": "gd", "task": tasks})
    rng, cells, results = np.random.default_rng(0), spec.cells(), []
    for cell in cells:
        place = tasks.index(cell.labels["task"])
        count = 4 - place
        arrays = [array(np.full(count, 0.5), "query", quantity="zero-shot p")]
        for name, size in (("icl", reading), ("gd 0.001", training)):
            wobble = size * (1 + place) * (1 + 0.01 * rng.standard_normal(count))
            arrays.append(array(np.stack([0.5 - wobble, 0.5 + wobble]), "order", "query", quantity="p", learner=name))
            times = update if name != "icl" else 1
            arrays.append(array(times * wobble[:, None], "query", "layer", quantity="spread", learner=name))
            arrays.append(array(np.full(count, 0.5), "query", quantity="overlap", learner=name))
            arrays.append(array(np.full(count, 0.5), "query", quantity="overlap with icl", learner=name))
        arrays.append(array(np.full(count, 0.5), "query", quantity="overlap with icl", learner="zero-shot"))
        results.append(Result({"task": "t", "demonstrations": 3, "queries": 4}, arrays))
    keys = [str(i) for i in range(len(cells))]
    return Study("order", spec, cells, keys, dict(zip(keys, results, strict=True)), "")


def test_the_answer_says_less_more_or_not_told_apart():
    small = planted(0.2, 0.01).answer
    assert "Training moves p less than reading (gd 0.001: .014). It moves its update less than reading (gd" in small
    assert planted(0.2, 0.01).answer.count("less than reading") == 2
    assert planted(0.01, 0.2).answer.count("more than reading") == 2
    assert planted(0.1, 0.1).answer.count("not told apart from reading") == 2
    assert "One draw" in planted(0.2, 0.1, seeds=1).answer
    assert "One draw" not in planted(0.2, 0.1).answer
    assert "One draw" not in planted(0.2, 0.1, seeds=1, tasks=("sentiment", "kinds")).answer  # they are over tasks


def test_p_and_updates_have_verdicts_of_their_own():
    said = planted(0.1, 0.2, update=0.25).answer
    assert "Training moves p more than reading (gd 0.001: .28" in said
    assert "It moves its update less than reading (gd 0.001: .05" in said


def test_what_order_does_to_training_is_corrected_for_all_that_is_said(monkeypatch):
    families = []

    def never(family):
        families.append(len(family))
        return [replace(one, corrected=1.0) for one in family]

    monkeypatch.setattr(module, "holm", never)
    assert planted(0.2, 0.01).answer.count("not told apart from reading") == 2
    assert set(families) == {2}  # p and updates of one learner


def test_what_is_a_hundred_thousand_times_smaller_in_every_task_is_less_though_tasks_differ():
    study = planted(0.1, 1e-6, tasks=("sentiment", "kinds", "continents"))
    assert study.answer.count("less than reading") == 2
    assert planted(0.1, 0.0, tasks=("sentiment", "kinds", "continents")).answer.count("less than reading") == 2


def test_several_tasks_weigh_alike_and_the_interval_is_over_them():
    study = planted(0.1, 0.05, tasks=("sentiment", "kinds", "continents"))
    (row,) = [row for row in orders_table(study).rows if row[0] == "icl"]
    own = [
        np.mean([a.values for a in study.arrays(quantity="spread", learner="icl", task=task)])
        for task in ("sentiment", "kinds", "continents")
    ]
    assert np.allclose(own, [0.1, 0.2, 0.3], rtol=0.01)
    assert row[3].value == pytest.approx(np.mean(own), abs=1e-12)
    alone = orders_table(planted(0.1, 0.05)).rows[0][3]
    assert row[3].high - row[3].low > 20 * (alone.high - alone.low)  # tasks differ by far more than draws do
    assert "smollm2-135m · sentiment, kinds, continents · k = 3" in study.page.text(full=True)
    notes = [planted(0.1, 0.05, seeds=n).page.sections[0].text for n in (1, 3)] + [study.page.sections[0].text]
    for note, over in zip(notes, ("over queries; 1 seed", "over draws", "Means over tasks"), strict=True):
        assert over in note


def known(seeds=2, trained="gd 0.001"):
    """Both weights, two layers, three queries: the n-th varies n times as much, untrained ones twice as much."""
    given = {"k": 3, "queries": 3, "orders": 2, "seeds": seeds, "learners": "gd", "init": "trained,random"}
    spec = OrderSpec.of(given)
    cells, results = spec.cells(), []
    for cell in cells:
        times = 1 if cell.labels["init"] == "trained" else 2
        arrays = [array([0.4, 0.5, 0.6], "query", quantity="zero-shot p")]
        for name, size, shared in (("icl", 0.02, 0.2), (trained, 0.04, 0.3), ("zero-shot", 0.0, 0.1)):
            wobble = size * times * np.array([1.0, 2.0, 3.0])
            if name != "zero-shot":
                p = np.stack([0.7 - wobble, 0.7 + wobble])
                arrays.append(array(p, "order", "query", quantity="p", learner=name))
                spreads = wobble[:, None] * [1.0, 3.0]
                arrays.append(array(spreads, "query", "layer", quantity="spread", learner=name))
                arrays.append(array([shared * times] * 3, "query", quantity="overlap", learner=name))
            if name != "icl":
                arrays.append(array([shared / 2] * 3, "query", quantity="overlap with icl", learner=name))
        results.append(Result({"task": "t", "demonstrations": 3, "queries": 3}, arrays))
    keys = [str(i) for i in range(len(cells))]
    return Study("order", spec, cells, keys, dict(zip(keys, results, strict=True)), "")


def numbers(table):
    return {row[0]: [entry if entry == "" else pytest.approx(entry.value) for entry in row[1:]] for row in table.rows}


def test_tables_have_the_means_over_queries_and_layers_of_every_learner_and_weights():
    found, root = known(), 2**0.5
    assert numbers(orders_table(found)) == {
        "icl": [0.04 * root, 0.2, 0.08],
        "gd 0.001": [0.08 * root, 0.2, 0.16],
        "null: icl, random weights": [0.08 * root, 0.2, 0.16],
        "null: gd 0.001, random weights": [0.16 * root, 0.2, 0.32],
    }
    assert numbers(tokens_table(found)) == {
        "icl": [0.2, ""],
        "gd 0.001": [0.3, 0.15],
        "zero-shot": ["", 0.05],
        "null: icl, random weights": [0.4, ""],
        "null: gd 0.001, random weights": [0.6, 0.15],
        "null: zero-shot, random weights": ["", 0.05],
    }


def test_only_zero_shot_has_no_orders_to_compare_wherever_a_learner_stands_in_the_alphabet():
    found = numbers(tokens_table(known(trained="ζ")))
    assert (found["ζ"], found["zero-shot"]) == ([0.3, 0.15], ["", 0.05])


def test_a_spread_is_by_query_and_a_draws_is_its_mean_over_queries():
    found = known(seeds=1)
    assert spread_of_updates(found, "icl", "trained") == pytest.approx(np.array([[[0.04, 0.08, 0.12]]]))
    assert spread_of_p(found, "icl", "random") == pytest.approx(np.array([[[0.04, 0.08, 0.12]]]) * 2**0.5)
    draws = np.array([[[1.0, 3.0], [4.0, 16.0]], [[0.0, 0.0], [np.nan, 5.0]]])
    assert np.exp(_in_logs(draws)) == pytest.approx(np.array([[[2.0], [10.0]], [[1e-9], [5.0]]]))


def test_the_answer_is_about_the_first_weights_and_names_what_reading_moves_with_the_others():
    said = re.sub(r" \[[^]]*\]", "", known().answer)  # without the intervals
    assert "reading moves p(right label) by .057 (standard deviation) and its update by .080 of its size" in said
    assert "Training moves p more than reading (gd 0.001: .113)." in said
    assert "It moves its update more than reading (gd 0.001: .160)." in said
    assert said.endswith("(gd 0.001: .160). With random weights reading moves its update by .160.")


def test_a_spread_that_is_rounding_is_shown_by_its_size():
    assert str(over_rounding(np.full((1, 2, 3), 3.14159e-5))) == "3.1e-05"
    assert str(over_rounding(np.full((1, 2, 3), 0.0))) == ".000 [.000 .000]"
    assert str(over_rounding(np.full((1, 2, 3), 0.25))).startswith(".250")


def test_shares_have_three_digits_and_the_anchors_sizes_two():
    assert [str(entry) for entry in tokens_table(known()).rows[1][1:]] == [".300 [.300 .300]", ".150 [.150 .150]"]
    spec = OrderSpec.of({"k": 3, "orders": 2})
    arrays = [array(value, quantity="anchor", layer=name) for name, value in (("a", 3.14159e-16), ("b", 0.27182))]
    study = Study("order", spec, spec.cells()[:1], ["0"], {"0": Result({}, arrays)}, "")
    assert [[str(entry) for entry in row] for row in anchors_table(study).rows] == [["a", "3.1e-16"], ["b", ".27"]]


def test_every_table_is_shown_on_the_terminal_without_being_asked_for():
    assert [(one.title, one.brief) for one in known().page.sections] == [
        ("Orders", True), ("Next tokens", True), ("Anchors", True),
    ]  # fmt: skip


def test_what_a_grid_lists_are_reading_s_numbers_without_a_verdict():
    study = planted(0.2, 0.01)
    spread, update = study.page.found
    assert (spread.verdict, update.verdict) == ("", "")
    assert f"moves p(right label) by {spread.number} (standard deviation) and its update by {update.number}" in (
        study.answer
    )
