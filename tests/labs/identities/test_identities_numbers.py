"""Numbers of identities that no claim reads: each beside what is known of it from elsewhere."""

import math

import pytest
import torch

from iclgd.small import optimum
from iclgd.small.identities import duality
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
