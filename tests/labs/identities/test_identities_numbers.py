"""Numbers of identities that no claim reads: each beside what is known of it from elsewhere."""

import math

import pytest
import torch

from iclgd.small import optimum
from iclgd.small.identities import duality
from iclgd.small.identities import fast as fast_identities
from iclgd.small.identities import optimum as optimum_identities
from iclgd.small.identities.drawn import problem, source, whole
from iclgd.small.known import IDENTITIES
from iclgd.tasks.laws import Inputs, LinearMap
from iclgd.tasks.regression import Regression

ROUNDING = [  # identity, quantity, and how far from 0 rounding may bring it
    ("every-head", "kernel", 1e-9),
    ("modified-steps", "centred", 1e-12),
    ("modified-steps", "arbitrary", 1e-12),
    ("gdpp-layers", "inputs", 1e-12),
    ("best-matrix", "risk", 1e-12),
    ("softmax-is-local-mean", "gradient", 1e-12),
    ("constrained-loss", "lower", 0.0),
    ("longhorn-as-built", "one dimension", 1e-12),
]


@pytest.mark.parametrize("name, quantity, most", ROUNDING)
def test_what_is_an_equation_holds_to_rounding(name, quantity, most):
    assert abs(IDENTITIES[name](1)[quantity]) <= most


@pytest.mark.parametrize(
    "name, quantity",
    [("rank-one-patch", "unpatched"), ("sgd-is-attention", "order"), ("nulls-of-a-learner", "moved")],
)
def test_what_an_equation_is_about_is_not_nothing(name, quantity):
    assert min(IDENTITIES[name](seed)[quantity] for seed in (0, 1)) > 1e-3


def test_answers_of_independent_learners_agree_as_often_as_chance_has_it():
    """Reading is right in 90%, training in 70%: they agree in .9 · .7 + .1 · .3.

    Of what training corrects, which is not chosen by it, reading corrects 90%.
    """
    found = [IDENTITIES["recall-by-chance"](seed) for seed in range(3)]
    for one in found:
        assert one["agreement"] == pytest.approx(0.9 * 0.7 + 0.1 * 0.3, abs=4 * math.sqrt(0.25 / 20_000))
        assert one["rate"] == pytest.approx(0.9, abs=4 * math.sqrt(0.09 / 7_000))


def test_another_querys_update_is_as_unlike_as_noise_of_that_many_dimensions():
    for seed in (0, 1):
        assert abs(IDENTITIES["vector-nulls"](seed)["other query"]) < 4 / math.sqrt(200 * 1024)


def test_the_best_step_at_its_own_scale_is_what_drawn_episodes_give():
    own = IDENTITIES["off-scale"](0)["× 1"]
    assert own == pytest.approx(IDENTITIES["one-step"](0)["sampled loss"], rel=0.03)


def test_a_step_from_the_mean_misses_what_the_closed_form_has_without_one():
    """Weights less their mean are those of a task without one; heads that are given the guess come as near."""
    found = IDENTITIES["start-decides"](0)
    known = 2 * optimum.one_step(Regression(Inputs.normal(4), LinearMap.isotropic(4), 10))[1]  # a risk is ½ (…)²
    assert found["gd"] == pytest.approx(known, rel=0.08)
    assert found["heads, guess"] == pytest.approx(known, rel=0.08)
    assert found["heads"] > 2 * known


def test_reversed_examples_of_sgd_give_another_answer_by_as_much_as_the_identity_says():
    """The same draws, and W by plain steps of SGD, forwards and backwards."""
    g = source(5)
    demos, dv, dk = whole(4, 12, g), whole(2, 6, g), whole(2, 6, g)
    start = torch.randn(dv, dk, generator=g, dtype=torch.float64)
    keys, labels, query = (
        torch.randn(n, d, generator=g, dtype=torch.float64) for n, d in ((demos, dk), (demos, dv), (4, dk))
    )
    answers = []
    for places in (range(demos), reversed(range(demos))):
        w = start.clone()
        for i in places:
            w = w - 0.1 * torch.outer(w @ keys[i] - labels[i], keys[i])
        answers.append(query @ w.T)
    expected = float((answers[1] - answers[0]).abs().max() / max(1.0, float(answers[0].abs().max())))
    assert duality.sgd_is_attention(5)["order"] == pytest.approx(expected)


def test_the_best_matrix_for_unequal_inputs_has_eigenvalues_as_far_apart_as_its_closed_form():
    """[(1 + 1/N) Σ + (tr Σ / N) I]⁻¹ with Σ = diag(1, 1, ¼, 1/16, 1) and N = 20."""
    rest = (1 + 1 + 1 / 4 + 1 / 16 + 1) / 20
    assert IDENTITIES["best-matrix"](0)["not a rate"] == pytest.approx((1.05 + rest) / (1.05 / 16 + rest))


@pytest.mark.usefixtures("without_shape_checks")
def test_steps_to_a_millionth_are_those_of_the_worst_directions_rate(monkeypatch):
    """GD at its best rate leaves (κ − 1)/(κ + 1) a step; Newton's iteration (1 − 1/κ²)^(2^k), from αI (1 − 1/κ)^(2^k)
    after k."""
    counted, own, miss = [], optimum_identities._steps_to, math.log(1e-6)
    monkeypatch.setattr(optimum_identities, "_steps_to", lambda *given: counted.append(own(*given)) or counted[-1])
    found = IDENTITIES["newton-is-gd-doubled"](0)
    few, many = (
        (
            math.ceil(miss / math.log((condition - 1) / (condition + 1))),
            math.ceil(math.log2(miss / math.log1p(-1 / condition**2))),
            math.ceil(math.log2(miss / math.log1p(-1 / condition))),
        )
        for condition in (100, 1000)
    )
    assert counted == [few, many]
    assert [found[name] for name in ("grows", "adds", "adds, from I")] == [
        many[0] / few[0],
        many[1] - few[1],
        many[2] - few[2],
    ]


def test_linear_attention_on_the_values_themselves_is_off_by_what_the_signals_take_away():
    """Test-time training by hand: v − W k of a mini-batch with the W that it began with."""
    keys, values, queries, gates = fast_identities._drawn(2)
    start, rates = gates["start"], gates["rate"][:, None]
    signals = torch.zeros_like(values)
    for t in range(0, len(keys), 4):
        w = start + signals.T @ keys
        signals[t : t + 4] = rates[t : t + 4] * (values[t : t + 4] - keys[t : t + 4] @ w.T)
    asked = queries @ keys.T
    trained, plain = (queries @ start.T + asked @ given for given in (signals, rates * values))
    found = IDENTITIES["learning-is-linear-attention"](2)["own values"]
    assert found == pytest.approx(float((plain - trained).norm() / trained.norm()))


def test_a_drawn_problem_has_inputs_in_a_box_sizes_in_their_ranges_and_a_rate_below_what_diverges():
    seen = [problem(seed) for seed in range(60)]
    assert {p.sizes[0] for p in seen} == set(range(2, 9))
    assert {p.sizes[1] for p in seen} == set(range(1, 5))
    assert {p.sizes[2] for p in seen} == set(range(3, 13))
    for p in seen:
        assert (p.x.shape[0], p.query.shape[1]) == (3, 2)
        assert max(float(p.x.abs().max()), float(p.query.abs().max())) <= 1
        assert p.rate * float(torch.linalg.matrix_norm(p.x.mT @ p.x, 2).max()) / p.sizes[2] < 1
    assert min(float(p.x.min()) for p in seen) < -0.9
    assert max(float(p.x.max()) for p in seen) > 0.9
    assert problem(0, dy=1).sizes[1] == 1
