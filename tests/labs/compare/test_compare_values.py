"""Values of a comparison by task, seed, query and layer, where no two places hold the same; and what is not there."""

from types import SimpleNamespace

import numpy as np
import pytest
from planted_compare import planted

from counting import Tokens
from iclgd.bench import OWN, Bench
from iclgd.errors import Refusal
from iclgd.lab import Cell
from iclgd.labs.compare.cost import _reading, _training
from iclgd.labs.compare.evidence import Evidence
from iclgd.labs.compare.page import glossary
from iclgd.labs.compare.run import wanted
from iclgd.labs.compare.spec import WHOLE, CompareCell, CompareSpec
from iclgd.labs.compare.view import _flat, _mean, _side_by_side, is_control, title_of
from iclgd.learners.descent import GradientDescent
from iclgd.learners.layercausal import LayerCausal
from iclgd.models.arithmetic import WIDE
from iclgd.prompts import Demo, Prompts
from iclgd.results import Array, array

FIELDS = {"task": "sentiment,kinds", "learners": "gd,lcgd", "seeds": "4,7", "init": "trained", "floor": False}
QUERIES = {"sentiment": 3, "kinds": 2}
TASKS = ["sentiment", "kinds"]
WHO = {"init": "trained", "learner": "gd 0.001", "metric": "SimAOU"}


def level(task: str, seed: int, query: int, layer: int, place: int) -> float:
    return 0.1 * (task == "kinds") + 0.01 * (seed == 7) + 0.001 * query + 1e-4 * layer + 1e-5 * place


def plant(cell: Cell, _random: np.random.Generator) -> list[Array]:
    if "learner" not in cell.labels or "versus" in cell.labels:
        return []
    task, seed = str(cell.labels["task"]), int(cell.labels["seed"])
    values = [
        [[level(task, seed, query, layer, place) for layer in (0, 1)] for query in range(QUERIES[task])]
        for place in (0, 1)
    ]
    found = [
        array(values, "position", "query", "layer", metric="SimAOU", coordinates={"position": ("prompt", "label")})
    ]
    if seed == 4:  # a null that the other draw does not have
        moved = np.array(values) - 0.05
        where = {"position": ("prompt", "label")}
        found.append(array(moved, "position", "query", "layer", metric="SimAOU", null="other-query", coordinates=where))
    right = [float(query == 0) for query in range(QUERIES[task])]
    return [*found, array(right, "query", metric="accuracy")]


@pytest.fixture(scope="module")
def comparison():
    return planted(plant, **FIELDS)


def test_every_number_stands_at_its_task_seed_query_and_layer(comparison):
    for where, place in (("prompt", 0), ("label", 1)):
        found = comparison.values(TASKS, where, **WHO)
        assert found.shape == (2, 2, 3, 2)
        for t, task in enumerate(TASKS):
            for s, seed in enumerate((4, 7)):
                for query in range(3):
                    for layer in (0, 1):
                        known = query < QUERIES[task]
                        expected = level(task, seed, query, layer, place) if known else np.nan
                        np.testing.assert_allclose(found[t, s, query, layer], expected)
    right = comparison.values(TASKS, None, **{**WHO, "metric": "accuracy"})
    np.testing.assert_array_equal(right[:, 0], [[1, 0, 0], [1, 0, np.nan]])
    assert comparison.values(TASKS, "prompt", **{**WHO, "metric": "KL"}).shape == (0, 0, 0)


def test_an_estimate_is_the_mean_over_layers_queries_draws_and_then_tasks(comparison):
    by_task = [np.nanmean(comparison.values([task], "prompt", **WHO)) for task in TASKS]
    assert comparison.estimate(TASKS, "prompt", **WHO).mean == pytest.approx(np.mean(by_task))
    assert comparison.estimate(["kinds"], "prompt", **WHO).mean == pytest.approx(by_task[1])
    layers = comparison.by_layer(["kinds"], "prompt", **WHO)
    assert [one.mean for one in layers] == pytest.approx(
        [np.nanmean(comparison.values(["kinds"], "prompt", **WHO)[..., layer]) for layer in (0, 1)]
    )
    assert comparison.estimate(TASKS, "prompt", **{**WHO, "metric": "KL"}).kind == "none"
    assert comparison.by_layer(TASKS, "prompt", **{**WHO, "metric": "KL"}) == []


def test_several_at_once_are_what_each_is_by_itself(comparison):
    who = [{**WHO, "learner": name} for name in ("gd 0.001", "none of them", "lcgd 0.001")]
    whole, layers = (comparison.several(TASKS, "prompt", who, by) for by in (False, True))
    assert [one.shape for one in whole] == [(3, 1), (3, 0), (3, 1)]
    assert [one.shape for one in layers] == [(3, 2), (3, 0), (3, 2)]
    for labels, one, each in zip(who, whole, layers, strict=True):
        if one.size:
            found = comparison.estimate(TASKS, "prompt", **labels)
            np.testing.assert_allclose(one[:, 0], [found.mean, found.low, found.high])
            by_layer = comparison.by_layer(TASKS, "prompt", **labels)
            np.testing.assert_allclose(each.T, [[e.mean, e.low, e.high] for e in by_layer])
    nothing = [{**WHO, "metric": "KL"}] * 2
    assert [one.shape for one in comparison.several(TASKS, "prompt", nothing, True)] == [(3, 0), (3, 0)]


def test_a_task_with_fewer_queries_has_the_same_share_of_an_effect_beside_another():
    """Draws count by their wholes: (1 · 2 + 3 · 1) / 4 of sentiment and .5 less of kinds, that has fewer queries."""

    def shares(cell: Cell, _random: np.random.Generator) -> list[Array]:
        seed, task = int(cell.labels["seed"]), str(cell.labels["task"])
        ones = np.ones(QUERIES[task])
        if "learner" not in cell.labels:
            whole = {4: 1.0, 7: 3.0}[seed]
            return [array(whole * ones, "query", quantity=WHOLE.format("margins-missed"), learner="icl")]
        missed = {4: 2.0, 7: 1.0}[seed] - 0.5 * (task == "kinds")
        spread = np.linspace(-0.3, 0.3, len(ones))  # by query
        return [array(missed * ones + spread, "query", metric="margins-missed")]

    found = planted(shares, **{**FIELDS, "metrics": "accuracy,margins-missed", "learners": "gd"})
    who = {"init": "trained", "learner": "gd 0.001", "metric": "margins-missed"}
    by_task = found.values(TASKS, None, **who)
    assert [np.nanmean(one) for one in by_task] == pytest.approx([1.25, 0.75])
    assert np.isnan(by_task[1, :, 2]).all()
    for one, task in zip(by_task, TASKS, strict=True):
        np.testing.assert_allclose(one[:, : QUERIES[task]], found.values([task], None, **who)[0])
    assert found.estimate(TASKS, None, **who).mean == pytest.approx(1.0)

    def lost(cell: Cell, random: np.random.Generator) -> list[Array]:
        """The wholes of the task with more queries are not there."""
        gone = "learner" not in cell.labels and cell.labels["task"] == "sentiment"
        return [] if gone else shares(cell, random)

    rest = planted(lost, **{**FIELDS, "metrics": "accuracy,margins-missed", "learners": "gd"})
    assert rest.estimate(TASKS, None, **who).mean == pytest.approx(0.75)
    assert np.isnan(rest.values(TASKS, None, **who)[0]).all()


def test_shares_of_several_are_what_each_is_by_itself(comparison):
    labels = {**WHO, "metric": "accuracy"}
    ((mean,), (low,), (high,)) = comparison.several(TASKS, "prompt", [labels], False)[0]
    found = comparison.estimate(TASKS, None, **labels)
    assert (mean, low, high) == pytest.approx((found.mean, found.low, found.high))
    assert found.mean == pytest.approx((1 / 3 + 1 / 2) / 2)


def test_a_difference_is_of_the_draws_and_queries_that_both_have(comparison):
    found = comparison.difference(TASKS, "prompt", WHO, {**WHO, "null": "other-query"})
    assert found.estimate.mean == pytest.approx(0.05)
    assert comparison.difference(TASKS, "prompt", WHO, {**WHO, "metric": "KL"}) is None
    none = comparison.layers_apart(TASKS, "prompt", WHO, {**WHO, "metric": "KL"})
    assert (none.up, none.down, none.of) == (0, 0, 0)


def test_means_are_of_what_is_known_and_columns_of_fewer_queries_are_filled_up():
    values = np.array([[1.0, np.nan, 3.0], [np.nan, np.nan, np.nan]])
    np.testing.assert_array_equal(_mean(values, -1), [2.0, np.nan])
    assert _flat(np.zeros((1, 2, 3))).shape == _flat(np.zeros((1, 2, 3, 4))).shape == (1, 2, 3, 1)
    one, two = np.ones((1, 2, 3, 1)), 2 * np.ones((1, 2, 2, 2))
    both = _side_by_side([one, two])
    assert both.shape == (1, 2, 3, 3)
    np.testing.assert_array_equal(both[0, 0], [[1, 2, 2], [1, 2, 2], [1, np.nan, np.nan]])
    np.testing.assert_array_equal(_side_by_side([one, one])[0, 0], np.ones((3, 2)))


def test_a_null_is_called_by_its_title_with_its_options_and_a_control_is_known_as_one():
    assert title_of("other-query") == "another query's update"
    assert title_of("other-query x=1") == "another query's update (x=1)"
    assert title_of("mine scale=2") == "mine (scale=2)"
    assert [is_control(null) for null in ("two-wrongs", "other-query", "mine", "two-wrongs x=1")] == [
        True,
        False,
        False,
        True,
    ]


def test_a_task_without_a_number_is_left_out_of_the_mean_over_tasks():
    def lost(cell: Cell, random: np.random.Generator) -> list[Array]:
        return plant(cell, random) if cell.labels["task"] == "kinds" else []

    found = planted(lost, **FIELDS)
    (row,) = [row for row in Evidence(found, "prompt").by_task("SimAOU").rows if row[0] == "gd 0.001, 1 of 2 tasks"]
    assert row[3].value == pytest.approx(np.nanmean(found.values(["kinds"], "prompt", **WHO)))
    assert (str(row[1]), str(row[2])[:4]) == ("n/a", ".106")


def test_the_glossary_has_the_metrics_learners_and_nulls_that_were_asked_for():
    words = glossary(planted(plant, **{**FIELDS, "metrics": "SimAOU", "nulls": "other-query,wrong-labels"}))
    assert list(words) == ["SimAOU", "gd", "lcgd", "another query's update", "trained on wrong labels"]
    assert all(about[0].isupper() and about.endswith(".") and not about.endswith("..") for about in words.values())


# what it costs


def prompts(demos: int = 2) -> Prompts:
    shown = tuple(Demo((9,) * (3 + i), (9,)) for i in range(demos))
    return Prompts((1,), shown, (2,), ((5, 6), (7,)), ((8,), (9,)), (0, 1))


def bench() -> Bench:
    """An episode in tokens, and nothing else."""
    made = Bench.__new__(Bench)
    made.__dict__.update(prompts=prompts(), subject=None)
    return made


@pytest.mark.parametrize("metrics", ["SimAOU,label-share", "SimAOU,contrast-AM"])
@pytest.mark.parametrize("contrast, floor", [(False, False), (True, False), (False, True), (True, True)])
def test_reading_costs_each_context_and_the_queries_behind_it_and_the_floor_once_more_and_wider(
    contrast, floor, metrics
):
    """The floor of what labels change takes right labels and wrong ones."""
    metrics = CompareSpec.of({"metrics": metrics}).metrics
    spec = CompareCell.model_construct(contrast=contrast, floor=floor, metrics=metrics)
    times = 2 if contrast and metrics[1].name == "contrast-AM" else 1
    context = 1 + (3 + 1) + (4 + 1)
    alone, behind = 5 * 1.01 + 0.002, context + 5 * (1 + context / 100) + 0.002
    expected = [alone + behind * (1 + contrast + floor * times)]
    if floor:
        expected.append(WIDE * (alone + behind * times))  # of all queries, as there are no more than a floor is made of
    assert list(_reading(spec, bench(), Tokens())) == pytest.approx(expected)


def test_a_training_costs_its_steps_with_as_many_predictions_as_the_learner_makes():
    class Steps(Tokens):
        def train(self, part: str, length: int, rows: int, predictions: int = 1) -> float:
            assert part == "kv"
            return 1000.0 * predictions + 10 * length + rows

    class Three(LayerCausal):
        def predictions(self, subject) -> int:
            return 3

    found = _training(Steps(), Three(0.1), bench(), prompts())
    assert found == 2 * 3000 + 10 * (4 + 5) + (3 + 4)


def test_a_null_that_cannot_be_had_keeps_no_other_from_being_trained():
    class Refused:
        def trained_on(self, bench, contrast):
            raise Refusal("this tokenizer cannot have it")

    class Had:
        def trained_on(self, bench, contrast):
            return {"had": prompts(3)}

    nulls = tuple(SimpleNamespace(make=kind) for kind in (Refused, Had))
    learner = SimpleNamespace(label="gd", make=lambda: GradientDescent(0.1))
    spec = CompareCell.model_construct(
        learner=learner, versus=None, nulls=nulls, metrics=(), contrast=False, floor=True
    )
    found = [(one.label, one.what, len(one.demos.demos), one.floor) for one in wanted(spec, bench())]
    assert found == [("gd", OWN, 2, True), ("gd", "had", 3, False)]
