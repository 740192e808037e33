"""Likeness says alike of what is alike, and names the learner and its steps."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from iclgd.errors import Refusal
from iclgd.metrics import functions as compare
from iclgd.small import attention, construct, learners, optimum
from iclgd.small import weights as weights_
from iclgd.small.attention import Weights
from iclgd.small.references import REFERENCES, candidates, linear
from iclgd.tasks.laws import Inputs, LinearMap
from iclgd.tasks.regression import FAMILIES, Regression

torch.set_num_threads(1)
F64 = torch.float64
TASK = Regression(Inputs.uniform(5), LinearMap.isotropic(5), 8)


def drawn(count=50, queries=1, seed=0, task=TASK):
    return task.draw(count, torch.Generator().manual_seed(seed), queries, F64)


def layer_predictor(weights, depth):
    def answer(episodes):
        demos = episodes.x.shape[-2]
        state = attention.tokens(episodes.x, episodes.y, episodes.query)
        return attention.answer(attention.states(state, demos, weights, depth)[-1], demos, 1)

    return answer


def test_a_predictor_is_like_itself_and_scaling_moves_distance_but_not_cosine():
    episodes = drawn(queries=10)
    one, two = (compare.view(linear(lambda x, y, r=rate: learners.gd(x, y, r)), episodes) for rate in (1.0, 2.0))
    same = compare.likeness(one, one, episodes.query)
    assert same.cosine == pytest.approx(1, abs=1e-12)
    assert max(same[1:]) == 0
    scaled = compare.likeness(one, two, episodes.query)
    w = learners.gd(episodes.x, episodes.y, 1.0)
    assert scaled.cosine == pytest.approx(1, abs=1e-12)
    assert scaled.distance == pytest.approx(float(w.norm(dim=(-2, -1)).mean()))
    assert scaled.implied == pytest.approx(float(w.square().sum((-2, -1)).mean()))
    assert scaled.spd == pytest.approx(float(learners.predict(w, episodes.query).square().mean()))
    assert scaled.prediction == pytest.approx(float(learners.predict(w, episodes.query).abs().mean()))


def test_sensitivity_of_several_outputs_is_the_whole_matrix():
    task = Regression(Inputs.normal(3), LinearMap.isotropic(3, dy=2), 6)
    episodes = drawn(task=task)
    w = learners.ridge(episodes.x, episodes.y, 0.1)
    seen = compare.view(linear(lambda x, y: learners.ridge(x, y, 0.1)), episodes)
    torch.testing.assert_close(seen.sensitivity[:, 0], w)


def test_implied_weights_need_enough_queries():
    episodes = drawn(queries=4)
    with pytest.raises(Refusal, match="at least 5 queries"):
        compare.implied_weights(episodes.target, episodes.query)
    seen = compare.view(linear(learners.averaging), episodes)
    assert math.isnan(compare.likeness(seen, seen, episodes.query).implied)


@settings(max_examples=20, deadline=None)
@given(st.floats(0.01, 100), st.integers(0, 2**31))
def test_normalising_removes_the_scale_symmetry(factor, seed):
    g = torch.Generator().manual_seed(seed)
    weights = Weights(*(torch.randn(2, 1, 6, 6, generator=g, dtype=F64) + torch.eye(6) for _ in range(2)))
    scaled = Weights(weights.qk * factor, weights.pv / factor)
    for a, b in zip(weights_.normalised(weights, 5), weights_.normalised(scaled, 5), strict=True):
        torch.testing.assert_close(a, b)
    assert weights_.weight_distance(weights, scaled, 5) < 1e-9
    episodes = drawn(10)
    half = weights_.interpolated(weights, scaled, 5, 0.5)
    torch.testing.assert_close(layer_predictor(half, 2)(episodes), layer_predictor(weights, 2)(episodes))


def test_weight_distance_counts_what_the_answer_depends_on():
    built = construct.gd_layer(5, 1, 2.0)
    unread = Weights(built.qk.clone(), built.pv.clone())
    unread.pv[..., :5, :] = 7.0  # moves x slots, which one layer never reads again
    unread.qk[..., :, 5:] = 7.0  # multiplies the query's empty label slot
    episodes = drawn(10)
    torch.testing.assert_close(layer_predictor(unread, 1)(episodes), layer_predictor(built, 1)(episodes))
    assert weights_.weight_distance(unread, built, 5) == 0
    read = Weights(built.qk, built.pv.clone())
    read.pv[..., 5, 0] = 0.5
    assert weights_.weight_distance(read, built, 5) > 0.1


def test_the_best_match_finds_learner_and_steps_of_a_constructed_stack():
    sample, episodes = drawn(300, seed=1), drawn(200, queries=5, seed=2)
    views = {label: compare.view(p, episodes) for label, p in candidates(TASK, sample).items()}
    rates, curvatures, _ = optimum.best_gdpp(TASK, sample, 3)
    stacks = {f"gd ×{k}": (construct.gd_layer(5, 1, optimum.best_gd(TASK, sample, k)[0]), k) for k in (3, 5)}
    stacks["gd++ ×3"] = (construct.gdpp_layers(5, 1, rates, curvatures), 3)
    for name, (weights, depth) in stacks.items():
        ranked = compare.ranking(compare.view(layer_predictor(weights, depth), episodes), views, episodes.query)
        assert next(iter(ranked)) == name
        assert next(iter(ranked.values())).spd < 1e-20


@pytest.mark.parametrize("family", ["linear", "gaussian", "skewed", "sparse", "relu"])
def test_every_reference_beats_nothing_on_its_family(family):
    task = FAMILIES[family](5, 1, 20, 0.1)
    sample, held = drawn(500, seed=1, task=task), drawn(4000, seed=2, task=task)
    zero = float(held.target.square().mean()) / 2
    for learner in REFERENCES:
        for name, predict in REFERENCES[learner](task, sample, 2).items():
            if name != "averaging" and name != "newton ×2":  # untuned: may overshoot or fall short
                assert compare.loss(predict, held) < zero, name
