"""Likeness says alike of what is alike, and names the learner and its steps."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from iclgd.choices import parse_one
from iclgd.errors import Refusal
from iclgd.metrics import functions as compare
from iclgd.small import attention, construct, learners, optimum
from iclgd.small import weights as weights_
from iclgd.small.attention import Weights
from iclgd.small.kernels import KERNELS
from iclgd.small.known import REFERENCES
from iclgd.small.references import candidates, linear
from iclgd.tasks.families import FAMILIES
from iclgd.tasks.laws import Inputs, LinearMap
from iclgd.tasks.regression import Regression

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
        for name, predict in built(learner, task, sample, 2).items():
            if name not in ("averaging", "newton ×2", "zero"):  # untuned: may overshoot or fall short
                assert compare.loss(predict, held) < zero, name


def built(name, task, sample, steps):
    return parse_one(name, REFERENCES).make()(task, sample, steps)


def test_preconditioned_steps_are_as_many_as_asked_and_better_than_fewer_and_than_plain_ones():
    task = Regression(Inputs(torch.diag(torch.tensor([1, 0.5, 0.25], dtype=F64))), LinearMap.isotropic(3), 40)
    sample, fresh = drawn(1500, seed=1, task=task), drawn(4000, seed=2, task=task)
    risks = []
    for steps in (1, 2):
        matrices, tuned_risk = optimum.best_preconditioners(task, sample, steps)
        assert matrices.shape == (steps, 3, 3)
        risk = float(optimum.risk(lambda x, y, m=matrices: learners.preconditioned_steps(x, y, m), fresh, task))
        assert risk == pytest.approx(tuned_risk, rel=0.1)  # on inputs it was not tuned on
        assert risk < 1.02 * optimum.best_gd(task, fresh, steps)[1]
        risks.append(risk)
        ((name, predict),) = built("preconditioned", task, sample, steps).items()
        assert name == f"preconditioned gd ×{steps}"
        w = fresh.x.new_zeros(4000, 1, 3)
        for matrix in matrices:
            w = w - (w @ fresh.x.mT - fresh.y.mT) @ fresh.x / 40 @ matrix
        torch.testing.assert_close(predict(fresh), fresh.query @ w.mT)
    assert risks[0] > 1.5 * risks[1]


def test_one_preconditioned_step_is_the_closed_form():
    task = Regression(Inputs.normal(3), LinearMap.isotropic(3), 12)
    matrices, _ = optimum.best_preconditioners(task, drawn(50, task=task), 1)
    torch.testing.assert_close(matrices[0], 12 / 16 * torch.eye(3, dtype=F64))


def test_the_delta_rule_as_a_reference_is_sgd_in_order_over_and_over():
    sample, episodes = drawn(300, seed=1), drawn(20, queries=2, seed=2)
    ((name, predict),) = built("delta", TASK, sample, 2).items()
    assert name == "delta rule ×2"

    def sgd(rate, data):
        w = data.x.new_zeros(len(data.x), 1, 5)
        for i in [*range(8), *range(8)]:
            x, y = data.x[:, i, :, None], data.y[:, i, :, None]
            w = w - rate * (w @ x - y) @ x.mT
        return w

    tried = torch.linspace(0.2, 4, 39).tolist()
    losses = {r: compare.loss(lambda e, r=r: e.query @ sgd(r, e).mT, sample) for r in tried}
    best = min(losses, key=losses.get)
    assert 0.5 < best < 3.5
    gap = compare.loss(predict, sample) / losses[best]
    assert 0.95 < gap < 1.05
    rates = torch.linspace(best - 0.8, best + 0.8, 161).tolist()
    assert min(float((predict(episodes) - episodes.query @ sgd(r, episodes).mT).abs().max()) for r in rates) < 0.02


def test_mesa_as_a_reference_is_ridge_at_its_best_penalty():
    task = Regression(Inputs.normal(4), LinearMap.isotropic(4), 10, noise=0.8)
    sample, episodes = drawn(800, seed=1, task=task), drawn(20, queries=3, seed=2, task=task)
    (mesa,), (ridge,) = (built(name, task, sample, 1).values() for name in ("mesa", "ridge"))
    torch.testing.assert_close(mesa(episodes), ridge(episodes), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["ridge", "mesa"])
def test_the_penalty_of_a_reference_is_the_best_one_and_not_where_the_search_began(name):
    """σ²/τ² (Akyürek 2023), a ninth of the guess σ²."""
    task = Regression(Inputs.normal(4), LinearMap.isotropic(4, scale=3.0), 6, noise=1.2)
    sample, episodes = drawn(4000, seed=1, task=task), drawn(20, queries=3, seed=2, task=task)
    (found,) = built(name, task, sample, 1).values()
    best = linear(lambda x, y: learners.ridge(x, y, 1.2**2 / 3.0**2))(episodes)
    guess = linear(lambda x, y: learners.ridge(x, y, 1.2**2))(episodes)
    assert float((found(episodes) - best).norm() / (guess - best).norm()) < 0.1


@pytest.mark.parametrize("kernel", ["rbf", "exponential", "linear"])
def test_functional_descent_as_a_reference_is_at_the_best_rate_of_its_kernel(kernel):
    sample = drawn(300, seed=1)
    ((name, predict),) = built(f"kernel:kernel={kernel}", TASK, sample, 2).items()
    assert name == f"kernel {kernel} ×2"
    own = compare.loss(predict, sample)
    for rate in torch.logspace(-1.5, 1.5, 61).tolist():
        answer = learners.functional_gd(sample.x, sample.y, sample.query, KERNELS[kernel], rate, 2)
        assert own <= float(compare.half_square(answer, sample.target)) * (1 + 1e-6)
    if kernel == "linear":
        rate = optimum.tuned(
            lambda p: lambda x, y: learners.gd(x, y, p[0], 2), torch.tensor([6.0], dtype=F64), sample, TASK
        )[0]
        gd = learners.predict(learners.gd(sample.x, sample.y, float(rate), 2), sample.query)
        assert float((predict(sample) - gd).norm() / gd.norm()) < 0.1


def test_an_unknown_kernel_is_refused():
    with pytest.raises(Refusal, match='no kernel "rbg". Did you mean rbf'):
        parse_one("kernel:kernel=rbg", REFERENCES)


def test_zero_answers_zero_with_no_direction():
    episodes = drawn(10, queries=6, task=Regression(Inputs.normal(5), LinearMap.isotropic(5, dy=2), 8))
    task = Regression(Inputs.normal(5), LinearMap.isotropic(5, dy=2), 8)
    (zero,) = built("zero", task, episodes, 1).values()
    seen = compare.view(zero, episodes)
    assert seen.answer.shape == (10, 6, 2)
    assert not seen.answer.any()
    other = compare.view(linear(learners.averaging), episodes)
    alike = compare.likeness(seen, other, episodes.query)
    assert math.isnan(alike.cosine)
    assert alike.spd == pytest.approx(float(other.answer.square().sum(-1).mean()))


def test_the_cosine_leaves_out_what_has_no_direction():
    a = compare.View(torch.zeros(2, 1, 1), torch.tensor([[[[1.0, 0.0]]], [[[0.0, 0.0]]]]))
    b = compare.View(torch.zeros(2, 1, 1), torch.tensor([[[[1.0, 1.0]]], [[[3.0, 1.0]]]]))
    assert compare.likeness(a, b, torch.ones(2, 1, 2)).cosine == pytest.approx(0.5**0.5)


def test_candidates_hold_every_learner_once_zero_among_them():
    task = FAMILIES["gaussian"](3, 1, 6, 0.5)
    names = list(candidates(task, drawn(40, task=task)))
    for name in ("zero", "gd ×12", "gd++ ×3", "momentum ×4", "newton ×8", "preconditioned gd ×1", "delta rule ×1"):
        assert name in names
    for name in ("kernel rbf ×1", "least squares", "averaging", "3 nearest", "ridge"):
        assert name in names
    assert "mesa" not in names
    clean = FAMILIES["gaussian"](3, 1, 6, 0.0)
    assert "ridge" not in candidates(clean, drawn(40, task=clean))
    flat = FAMILIES["quadratic"](3, 1, 6, 0.5)
    left = candidates(flat, drawn(40, task=flat))
    assert {"zero", "least squares", "averaging", "3 nearest", "kernel rbf ×1"} <= set(left)
    assert not {"ridge", "gd ×1", "delta rule ×1", "preconditioned gd ×1"} & set(left)


def test_momentum_is_the_heavy_ball_written_as_one_recurrence():
    """W₂ = W₁ + η ∇̂(W₁) + β (W₁ − W₀) (Polyak 1964)."""
    e = drawn(5)
    first = 0.5 * learners.descent(torch.zeros(5, 1, 5, dtype=F64), e.x, e.y)
    second = first + 0.5 * learners.descent(first, e.x, e.y) + 0.3 * first
    torch.testing.assert_close(learners.momentum(e.x, e.y, 0.5, 0.3, 2), second)
