"""What is measured over orders, on numbers with known answers; what a run says and which facts it keeps."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch

from iclgd.errors import Refusal
from iclgd.labs.order.anchors import anchors
from iclgd.labs.order.measures import spread
from iclgd.labs.order.run import identity, measured, permutations, run
from iclgd.labs.order.spec import OrderSpec, enough_orders
from iclgd.learners.prompted import InContext, ZeroShot
from iclgd.prompts import POSITIONS, build_prompts
from iclgd.small.streams import generator
from iclgd.tools import Tools
from little import little_task
from tiny import tiny_subject

F64 = torch.float64


def found() -> dict[str, np.ndarray]:
    """Two orders, three queries of two labels, two layers of two numbers, and two likeliest tokens."""
    scores = torch.tensor([[[0.9, 0.1], [0.2, 0.8], [0.3, 0.7]], [[0.6, 0.4], [0.5, 0.5], [0.1, 0.9]]], dtype=F64)
    outputs = torch.zeros(2, 3, 2, 2, dtype=F64)
    outputs[0, :, 0, 0], outputs[1, :, 0, 0] = 4.0, 2.0  # less zero-shot's one: 3 and 1
    outputs[:, :, 1, 1] = 5.0  # the same in both orders
    likeliest = torch.tensor([[[1, 2], [3, 4], [5, 6]], [[2, 1], [3, 9], [7, 8]]])
    zero = (scores[0], torch.zeros(3, 2, 2, dtype=F64), likeliest[0])
    zero[1][:, 0, 0] = 1.0
    arrays = measured("gd", (scores, outputs, likeliest), zero, torch.tensor([0, 1, 1]))
    assert {one.labels["learner"] for one in arrays} == {"gd"}
    return {str(one.labels["quantity"]): one.values for one in arrays}


def test_p_is_that_of_the_right_label_behind_every_order():
    np.testing.assert_allclose(found()["p"], [[0.9, 0.8, 0.7], [0.6, 0.5, 0.9]])


def test_updates_are_less_zero_shot_and_their_spread_is_by_query_and_layer():
    """3 and 1: √(2 · 1² / (9 + 1))."""
    np.testing.assert_allclose(found()["spread"], [[0.2**0.5, 0]] * 3, atol=1e-12)


def test_likeliest_tokens_are_shared_between_orders_whatever_their_rank():
    np.testing.assert_allclose(found()["overlap"], [1, 0.5, 0])


def test_overlap_is_the_mean_over_all_pairs_of_orders():
    scores, outputs = torch.ones(3, 1, 2) / 2, torch.zeros(3, 1, 1, 1)
    likeliest = torch.tensor([[[1, 2]], [[1, 2]], [[3, 2]]])
    zero = (scores[0], outputs[0], likeliest[0])
    (same,) = [one for one in measured("x", (scores, outputs, likeliest), zero, torch.tensor([0]))
               if one.labels["quantity"] == "overlap"]  # fmt: skip
    np.testing.assert_allclose(same.values, [(1 + 0.5 + 0.5) / 3])


@pytest.mark.parametrize("count, orders", [(2, 2), (3, 6), (4, 24)])
def test_all_orders_there_are_can_be_asked_for_and_no_more(count, orders):
    assert len(set(permutations(count, orders, 0))) == orders
    enough_orders(count, orders)
    with pytest.raises(Refusal, match=f"{count} demonstrations have {orders} orders, not {orders + 1}"):
        enough_orders(count, orders + 1)


def test_anchors_are_the_spread_of_single_layers_over_the_orders_that_are_drawn():
    """The delta rule by hand: w ← w + rate (y − w·x) x, one demonstration after another."""
    g = generator(60, 5)
    x, y = torch.randn(12, 4, generator=g, dtype=F64) / 2, torch.randn(12, 1, generator=g, dtype=F64)
    query = torch.randn(3, 4, generator=g, dtype=F64) / 2
    for _ in range(2):
        torch.randn(2, 2, 5, 5, generator=g, dtype=F64)
    answers = []
    for _ in range(6):
        w = torch.zeros(4, dtype=F64)
        for i in torch.randperm(12, generator=g):
            w = w + 0.5 * (y[i] - w @ x[i]) * x[i]
        answers.append((query @ w)[:, None])
    assert anchors(6, 5)["delta rule"] == pytest.approx(float(spread(torch.stack(answers)).max()), rel=1e-9)


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """A cell on a model in memory, and what it said."""
    task, said = little_task(tmp_path_factory.mktemp("order")), Counter()
    given = {"model": "memory:tiny", "task": str(task), "k": 3, "queries": 4, "orders": 3, "top": 2, "learners": "gd"}
    (cell,) = OrderSpec.of(given | {"rates": 0.1}).cells()
    tools = Tools(None, lambda what, done: said.update({what: done}), {"memory:tiny": tiny_subject("llama")})
    return cell, run(cell, tools), said


def test_a_run_says_whom_it_asks_and_how_many_queries(ran):
    _, _, said = ran
    named = {what: done for what, done in said.items() if "step" not in what}
    assert named == {"icl": 0, "gd 0.1": 0, "gd 0.1, all at once": 0, "asking": 4 * (1 + 3 + 3 + 3)}
    assert all(said[f"training 3 at once, step {step} of 3"] == 0 for step in (1, 2, 3))  # they answer no query


def test_a_result_says_what_was_asked_of_whom(ran):
    _, result, _ = ran
    facts = {name: result.facts[name] for name in ("orders", "demonstrations", "queries", "model")}
    assert facts == {"orders": 3, "demonstrations": 3, "queries": 4, "model": tiny_subject("llama").name}
    layers = {str(one.labels["layer"]): float(one.values) for one in result.select(quantity="anchor")}
    assert layers == pytest.approx(anchors(3, 0))
    (zero,) = result.select(quantity="zero-shot p")
    assert zero.values.shape == (4,)
    assert {one.values.shape for one in result.select(quantity="spread")} == {(4, 3)}
    assert {one.labels["learner"] for one in result.select(quantity="overlap with icl")} == {
        "gd 0.1", "gd 0.1, all at once", "zero-shot",
    }  # fmt: skip


def test_updates_are_of_the_prompts_last_token(ran):
    """Reading in each order, less zero-shot, by hand."""
    cell, result, _ = ran
    subject, episode = tiny_subject("llama"), Tools().episode(cell.spec.task, cell.spec.episode)
    prompts = build_prompts(subject.tokenizer, episode, cell.spec.prompt, None)

    def last(learner, demos):
        with learner.learn(subject, replace(prompts, demos=demos)) as predictor:
            return predictor.trace(prompts).outputs[:, :, POSITIONS.index("prompt")]

    orders = permutations(3, 3, cell.spec.episode.seed)
    behind = torch.stack([last(InContext(), tuple(prompts.demos[i] for i in order)) for order in orders])
    (seen,) = result.select(quantity="spread", learner="icl")
    np.testing.assert_allclose(seen.values, spread(behind - last(ZeroShot(), prompts.demos)), rtol=1e-4)


def test_weights_and_examples_are_a_cells_identity(ran):
    cell, *_ = ran
    found, tools = identity(cell, Tools(subjects={"memory:tiny": tiny_subject("llama")})), Tools()
    assert found == {"weights": "memory:tiny", "episode": tools.episode(cell.spec.task, cell.spec.episode).sha256()}
