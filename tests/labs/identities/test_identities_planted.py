"""Identities measure: of a fault that is planted they tell the size, and none compares nothing with nothing."""

import inspect
import sys

import pytest
import torch

from iclgd.learners.descent import GradientDescent
from iclgd.learners.layercausal import LayerCausal
from iclgd.metrics import identities as of_vectors
from iclgd.models.replicas import Stacked
from iclgd.models.subject import Subject
from iclgd.nulls import identities as of_models
from iclgd.small import attention, learners
from iclgd.small.identities import descent
from iclgd.small.identities.drawn import apart
from iclgd.small.known import IDENTITIES

EQUATIONS = [
    name
    for name in IDENTITIES
    if hasattr(sys.modules[IDENTITIES[name].__module__], "apart") and " apart(" in inspect.getsource(IDENTITIES[name])
]


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize("name", EQUATIONS)
def test_no_equation_holds_because_both_of_its_sides_are_nothing(monkeypatch, name):
    sizes = []

    def seen(one: torch.Tensor, two: torch.Tensor) -> float:
        sizes.append(min(float(side.abs().max()) for side in (one, two)))
        return apart(one, two)

    monkeypatch.setattr(sys.modules[IDENTITIES[name].__module__], "apart", seen)
    IDENTITIES[name](0)
    assert min(sizes) > 0.01


def test_a_step_that_lowers_the_loss_is_of_the_rate_that_it_is_said_to_be(monkeypatch):
    given, own = [], learners.gd

    def seen(x, y, rate):
        given.append((x, rate))
        return own(x, y, rate)

    monkeypatch.setattr(learners, "gd", seen)
    assert descent.gd_lowers_loss(0) == {"share": 1.0}
    ((x, rate),) = given
    largest = torch.linalg.eigvalsh(attention.moment(x))[:, -1]
    assert torch.allclose(rate.flatten() * largest, torch.ones(200, dtype=torch.float64))


@pytest.mark.parametrize("factor", [0.0, -1.0])
def test_a_learner_that_stands_still_or_climbs_lowers_no_loss(monkeypatch, factor):
    own = learners.gd
    monkeypatch.setattr(learners, "gd", lambda x, y, rate: own(x, y, factor * rate))
    assert descent.gd_lowers_loss(0) == {"share": 0.0}


def test_gradients_that_are_a_tenth_too_long_are_off_by_a_tenth(monkeypatch):
    own = LayerCausal.gradients

    def longer(self, *given):
        losses, gradients = own(self, *given)
        return losses, [1.1 * gradient for gradient in gradients]

    monkeypatch.setattr(LayerCausal, "gradients", longer)
    assert of_models.layer_losses(0)["residual"] == pytest.approx(0.1)


def test_an_unembedding_that_is_half_as_long_again_is_off_by_half(monkeypatch):
    own = Subject.unembed
    monkeypatch.setattr(Subject, "unembed", lambda self, states: 1.5 * own(self, states))
    assert of_models.layer_losses(0)["head"] == pytest.approx(0.5)


def test_what_changes_in_an_update_is_told_in_its_own_lengths(monkeypatch):
    planted = iter([2.0, 3.0, 5.0, 5.0, 4.0, 1.0, 2.0, 3.0, 4.0, 1.0])  # an update, and what becomes of it
    monkeypatch.setattr(of_models, "update", lambda *_: torch.full((3, 3, 8), next(planted)))
    assert of_models.layer_causality(0) == pytest.approx({"icl": 0.5, "gd": 0.0, "lcgd": 0.75})
    assert of_models.order_matters(0) == pytest.approx({"icl": 0.5, "gd": 0.75})


def test_a_learner_that_stands_still_has_updates_of_no_size_and_one_that_climbs_loses(monkeypatch):
    own = Stacked.descend
    monkeypatch.setattr(Stacked, "descend", lambda self, gradients, sizes: None)
    assert of_models.rate_and_size(0) == {"0.01": 0.0, "0.1": 0.0, "1": 0.0, "falls": 0.0}
    monkeypatch.setattr(Stacked, "descend", lambda self, gradients, sizes: own(self, gradients, -sizes))
    assert of_models.rate_and_size(0)["falls"] < 0


def test_work_is_counted_in_a_model_of_smollm2s_shape_and_is_the_same_for_the_same_learner(monkeypatch):
    """SmolLM2-135M has 30 layers, 576 hidden dimensions and 49152 words."""
    made, own = [], of_models.tiny
    monkeypatch.setattr(of_models, "tiny", lambda *given, **named: made.append(own(*given, **named)) or made[0])
    monkeypatch.setattr(of_models, "LayerCausal", GradientDescent)
    assert of_models.work_of_learners(0) == {"ratio": 1.0}
    config = made[0].model.config
    assert config.num_hidden_layers == 30
    assert config.vocab_size == 49152 // 576 * config.hidden_size


def test_readings_direction_is_followed_thirty_times_as_far(monkeypatch):
    given, own = [], of_vectors.sim_am_delta

    def seen(zero, once, other):
        given.append((other - zero).norm() / (once - zero).norm())
        return own(zero, once, other)

    monkeypatch.setattr(of_vectors, "sim_am_delta", seen)
    of_vectors.maps_too_far(0)
    assert list(map(float, given)) == pytest.approx([30.0, 1.0])
