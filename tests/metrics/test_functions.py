"""Likeness of predictors on planted answers and sensitivities."""

import math

import numpy as np
import pytest
import torch

from iclgd.errors import Refusal
from iclgd.metrics.functions import View, half_square, implied_weights, likeness, loss, ranking, view
from iclgd.tasks.regression import Episodes


def viewed(slopes):
    slope = torch.tensor(slopes)[:, None, None]  # [episode, query, dy, dx]
    return View(slope.sum(-1), slope)


QUERY = torch.zeros(2, 1, 2)


def test_a_sensitivity_of_zero_has_no_cosine():
    moving, still = viewed([[1.0, 0.0], [1.0, 1.0]]), viewed([[0.0, 0.0], [0.0, 0.0]])
    assert math.isnan(likeness(moving, still, QUERY).cosine)
    assert math.isnan(likeness(still, moving, QUERY).cosine)
    assert likeness(moving, still, QUERY).spd == pytest.approx((1 + 4) / 2)


def test_queries_without_a_direction_are_left_out_of_the_mean_cosine():
    partly = viewed([[0.0, 0.0], [2.0, 0.0]])
    assert likeness(viewed([[1.0, 0.0], [1.0, 1.0]]), partly, QUERY).cosine == pytest.approx(0.5**0.5)


@pytest.mark.parametrize("batch", [(), (2,), (3, 2)])
def test_likeness_is_the_mean_of_what_a_loop_over_queries_finds(batch):
    random = np.random.default_rng(0)
    query = random.standard_normal((*batch, 4, 3))
    answers, slopes = random.standard_normal((2, *batch, 4, 2)), random.standard_normal((2, *batch, 4, 2, 3))
    rows = [answers.reshape(2, -1, 2), slopes.reshape(2, -1, 6)]
    cosines = [a @ b / np.linalg.norm(a) / np.linalg.norm(b) for a, b in zip(*rows[1], strict=True)]
    gaps = [np.linalg.norm(a - b) for a, b in zip(*rows[0], strict=True)]
    fits = zip((answers[0] - answers[1]).reshape(-1, 4, 2), query.reshape(-1, 4, 3), strict=True)
    implied = [float((np.linalg.lstsq(x, y, rcond=None)[0] ** 2).sum()) for y, x in fits]
    one, two = (View(*map(torch.from_numpy, pair)) for pair in zip(answers, slopes, strict=True))
    found = likeness(one, two, torch.from_numpy(query))
    assert found.cosine == pytest.approx(np.mean(cosines))
    assert found.distance == pytest.approx(np.mean([np.linalg.norm(a - b) for a, b in zip(*rows[1], strict=True)]))
    assert found.prediction == pytest.approx(np.mean(gaps))
    assert found.spd == pytest.approx(np.mean(np.square(gaps)))
    assert found.implied == pytest.approx(np.mean(implied))


def test_weights_are_implied_by_as_many_queries_as_inputs_and_by_no_fewer():
    weights = torch.tensor([[1.0, -2.0], [3.0, 0.5]])
    query = torch.tensor([[1.0, 1.0], [0.0, 2.0]])
    torch.testing.assert_close(implied_weights(query @ weights, query), weights)
    with pytest.raises(Refusal, match="at least 2 queries an episode, not 1"):
        implied_weights((query @ weights)[:1], query[:1])
    few = View(torch.ones(1, 2), torch.ones(1, 2, 2))
    assert math.isnan(likeness(few, few, query[:1]).implied)
    enough = View(query @ weights, weights.T.expand(2, 2, 2))
    assert likeness(enough, View(torch.zeros(2, 2), torch.zeros(2, 2, 2)), query).implied == pytest.approx(14.25)


def episodes(query, target) -> Episodes:
    return Episodes(torch.zeros(1, 1, 2), torch.zeros(1, 1, 2), query, target)


def test_a_view_has_the_answers_and_the_slopes_of_every_output():
    weights = torch.tensor([[1.0, -2.0], [3.0, 0.5]])  # [dx, dy]
    query = torch.tensor([[[1.0, 1.0], [0.0, 2.0]]])
    seen = view(lambda asked: asked.query @ weights, episodes(query, torch.zeros(1, 2, 2)))
    torch.testing.assert_close(seen.answer, query @ weights)
    torch.testing.assert_close(seen.sensitivity, weights.T.expand(1, 2, 2, 2))
    assert not seen.answer.requires_grad


def test_the_loss_is_half_the_mean_squared_distance():
    answer, target = torch.tensor([[[3.0, 4.0], [0.0, 1.0]]]), torch.zeros(1, 2, 2)
    assert half_square(answer, target) == pytest.approx((25 + 1) / 2 / 2)
    assert half_square(answer[0], target[0]) == pytest.approx((25 + 1) / 2 / 2)
    assert loss(lambda asked: asked.query, episodes(answer, target + 1)) == pytest.approx((4 + 9 + 1 + 0) / 2 / 2)


def test_the_nearest_predictor_is_ranked_first_whatever_its_direction():
    one = viewed([[1.0, 1.0], [1.0, 1.0]])
    far, near = viewed([[9.0, 9.0], [9.0, 9.0]]), viewed([[1.0, 0.5], [1.0, 0.5]])
    found = ranking(one, {"far": far, "near": near}, QUERY)
    assert list(found) == ["near", "far"]
    assert found["far"].cosine > found["near"].cosine
    assert found["near"].spd == pytest.approx(0.25)
