"""Likeness of predictors where one of them has no direction."""

import math

import pytest
import torch

from iclgd.metrics.functions import View, likeness


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
