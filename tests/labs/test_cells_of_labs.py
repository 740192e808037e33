"""Which cells the labs make of what they are asked: their labels and their order, what shares a process."""

from itertools import pairwise

import pytest

from iclgd.labs.compare.spec import USUAL_METRICS, CompareSpec
from iclgd.labs.languages.spec import AllSpec, RunSpec
from iclgd.labs.linear.spec import OptimumSpec, TrainSpec
from iclgd.labs.order.spec import OrderSpec
from iclgd.labs.trace.lab import TraceSpec
from iclgd.options import untrained_seed
from iclgd.spec import EpisodeSpec, ModelSpec, PromptSpec

ASKED = {"task": "sentiment,kinds", "seeds": "3,5", "init": "trained,random", "k": 4, "queries": 6}
EPISODES = [(init, task, seed) for init in ("trained", "random") for task in ("sentiment", "kinds") for seed in (3, 5)]


def model(init: str, task: str, seed: int) -> ModelSpec:
    """Trained weights are one model for all; each task and draw has untrained weights of its own."""
    drawn = 0 if init == "trained" else untrained_seed(task, seed)
    return ModelSpec(name="smollm2-135m", init=init, init_seed=drawn)


def assert_told(cell, init: str, task: str, seed: int) -> None:
    assert {name: cell.labels[name] for name in ("init", "task", "seed")} == {"init": init, "task": task, "seed": seed}
    assert cell.spec.model == model(init, task, seed)
    assert cell.spec.task == task
    assert cell.spec.episode == EpisodeSpec(k=4, queries=6, seed=seed, query_seed=1)
    assert cell.spec.prompt == PromptSpec()


def test_order_has_a_cell_an_episode_with_every_learner_at_every_rate():
    cells = OrderSpec.of({**ASKED, "learners": "gd,lcgd", "rates": "0.1,0.2", "orders": 5, "top": 7}).cells()
    for cell, place in zip(cells, EPISODES, strict=True):
        assert_told(cell, *place)
        assert cell.group == " ".join(map(str, place))
        assert (cell.spec.orders, cell.spec.top) == (5, 7)
        assert [one.label for one in cell.spec.learners] == ["gd 0.1", "gd 0.2", "lcgd 0.1", "lcgd 0.2"]


def test_compare_has_of_every_episode_reading_each_learner_and_each_pair():
    cells = CompareSpec.of({**ASKED, "learners": "gd,lcgd", "nulls": "random,wrong-labels", "batch_tokens": 9}).cells()
    kinds = [(None, None), ("gd 0.001", None), ("lcgd 0.001", None), ("gd 0.001", "lcgd 0.001")]
    expected = [(*place, *kind) for place in EPISODES for kind in kinds]
    for cell, (init, task, seed, learner, versus) in zip(cells, expected, strict=True):
        assert_told(cell, init, task, seed)
        assert (cell.labels.get("learner"), cell.labels.get("versus")) == (learner, versus)
        chosen = [None if one is None else one.label for one in (cell.spec.learner, cell.spec.versus)]
        assert chosen == [learner, versus]
        first, alone = init == "trained", versus is not None
        assert cell.group == (f"{init} {task}" if first else f"{init} {task} {seed}")
        assert [null.name for null in cell.spec.nulls] == (
            [] if learner is None or alone else ["random", "wrong-labels"] if first else ["random"]
        )
        assert cell.spec.contrast is not alone
        assert cell.spec.floor is (first and seed == 3 and not alone)
        assert [one.name for one in cell.spec.metrics] == ([] if alone else list(USUAL_METRICS))
        assert cell.spec.batch_tokens == 9


@pytest.mark.parametrize("rates, pairs", [("0.1", 1), ("0.1,0.2", 2)])
def test_learners_of_two_kinds_are_a_pair_at_one_rate(rates, pairs):
    spec = CompareSpec.of({"learners": "gd,gd:trains=all,task-vector,lcgd", "rates": rates})
    found = [(one.label, two.label) for one, two in spec.pairs]
    assert len(found) == 2 * pairs  # each of the two gd with lcgd, at its rate
    assert all(one.startswith("gd") and two.startswith("lcgd") for one, two in found)


def test_trace_has_one_cell_with_the_weights_that_were_asked_for():
    (cell,) = TraceSpec.of({"k": 4, "queries": 6, "seed": 2, "init": "random", "init_seed": 5}).cells()
    assert cell.spec.model == ModelSpec(name="smollm2-135m", init="random", init_seed=5)
    assert cell.spec.episode == EpisodeSpec(k=4, queries=6, seed=2, query_seed=1)
    assert (cell.lab, cell.labels, cell.spec.prompt) == ("trace", {}, PromptSpec())


def test_seeds_of_a_linear_study_are_cells_of_one_group_and_an_optimum_is_one_cell():
    cells = TrainSpec.of({"seeds": "3,5", "dx": 4, "steps": 9}).cells()
    assert [(cell.lab, cell.labels, cell.group) for cell in cells] == [
        ("linear train", {"seed": 3}, "train"), ("linear train", {"seed": 5}, "train"),
    ]  # fmt: skip
    assert [(cell.spec.seed, cell.spec.dx, cell.spec.steps) for cell in cells] == [(3, 4, 9), (5, 4, 9)]
    (cell,) = OptimumSpec.of({"steps": 2}).cells()
    assert (cell.lab, cell.labels, cell.spec.steps) == ("linear optimum", {}, 2)


def test_seeds_of_a_language_are_cells_of_one_group():
    cells = RunSpec.of({"seeds": "3,5", "language": "a*bc*", "steps": 9}).cells()
    assert [cell.labels["seed"] for cell in cells] == [cell.spec.seed for cell in cells] == [3, 5]
    assert len({cell.group for cell in cells}) == 1
    assert {(cell.lab, cell.spec.steps, cell.labels["language"]) for cell in cells} == {("languages run", 9, "a*bc*")}


def test_random_languages_come_first_and_neighbours_share_their_words():
    cells = AllSpec.of({"seeds": 1}).cells()
    random = [cell.labels["language"] == "random" for cell in cells]
    assert random == sorted(random, reverse=True)
    assert sum(random) == 3
    groups = [cell.group for cell in cells]
    changes = sum(one != two for one, two in pairwise(groups))
    assert changes == len(set(groups)) - 1  # no group is left and taken up again


@pytest.mark.parametrize("shrink", [1, 10, 3000])
def test_every_setting_of_all_languages_is_shrunk_alike_and_to_no_less_than_one_step(shrink):
    whole, found = (AllSpec.of({"shrink": by}).settings() for by in (1, shrink))
    for one, small in zip(whole, found, strict=True):
        assert small.steps == max(1, one.steps // shrink)
        assert small.languages == max(10, 1000 // shrink)
        if one.encoder.name == "autoencoder":
            assert small.encoder["steps"] == max(1, one.encoder["steps"] // shrink)
    assert {one.steps for one in whole} == {1500, 2000}
    described = [(str(one.language), one.encoder.name, one.labels, one.layers, one.start) for one in whole]
    assert len(whole) == 2 * 3 * 3 * 2 + 3 * 6 + 3
    assert described.count(("a*bc*", "pca", "sign", 2, "gd")) == 1
    assert [one.rate for one in whole if one.layers == 2] == [0.01] * 3
    assert [(one.encoder.name, one.min_length, one.max_length) for one in whole if one.language == "random"] == [
        ("autoencoder", 8, 8), ("pca", 8, 8), ("pca", 1, 8),
    ]  # fmt: skip
