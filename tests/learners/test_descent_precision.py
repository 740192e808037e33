"""Descent in low precision: steps too small for the model's format count all the same."""

import pytest
import torch
from by_hand import RATE
from plain import DEMOS, prompts, subject_of

from iclgd.learners.descent import GradientDescent
from iclgd.learners.layercausal import LayerCausal
from iclgd.models.replicas import InPlace, Stacked
from iclgd.models.subject import Subject
from tiny import tiny_model, tiny_tokenizer


def half_subject(dtype, architecture="llama"):
    return Subject(tiny_model(architecture, dtype=dtype), tiny_tokenizer(), architecture)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("kind", [GradientDescent, LayerCausal])
def test_steps_too_small_for_the_models_format_count(kind, dtype):
    """Rounded into the model's own format, nearly all of them would be lost."""
    subject = half_subject(dtype)
    rate = 2e-5 if dtype == torch.bfloat16 else 2e-6
    with kind(rate).learn(subject, prompts(DEMOS[:1])) as predictor:
        rounded = sum(int((slot.parameter.to(dtype) != slot.before).sum()) for slot in predictor.slots)
        entries = sum(slot.parameter.numel() for slot in predictor.slots)
        assert rounded < 0.1 * entries
        assert predictor.training.moved > 0.9


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("kind", [GradientDescent, LayerCausal])
def test_steps_in_place_too_small_for_the_models_format_add_up(kind, dtype):
    """Where norms and embeddings are trained too, weights stay in the model's format and a finer copy takes steps."""
    subject = half_subject(dtype)
    rate = 2e-5 if dtype == torch.bfloat16 else 2e-6
    with kind(rate, "all").learn(subject, prompts(DEMOS[:1])) as predictor:
        once = predictor.training.moved
    with kind(rate, "all", epochs=100).learn(subject, prompts(DEMOS[:1])) as predictor:
        often = predictor.training.moved
    assert once < 0.1
    assert often > 3 * once


@pytest.mark.parametrize("architecture", ["llama", "gpt2", "falcon-groups"])
def test_steps_in_place_are_taken_in_float32_and_rounded_into_the_model(architecture):
    subject = half_subject(torch.bfloat16, architecture)
    slots = [slot.prepared() for slot in subject.layout.slots("kv")]
    random = torch.Generator().manual_seed(0)
    master = {slot.name: slot.parameter.detach().float() for slot in slots}
    weights = InPlace(slots)
    for _ in range(5):
        gradients = [torch.randn(slot.parameter.shape, generator=random).bfloat16() for slot in slots]
        weights.descend(weights.restricted(gradients), torch.tensor([1e-3]))
        for slot, gradient in zip(slots, gradients, strict=True):
            master[slot.name] = master[slot.name] - 1e-3 * slot.restrict(gradient).float()
    for slot in slots:
        assert slot.parameter.dtype == torch.bfloat16
        torch.testing.assert_close(
            slot.parameter.detach().float(), master[slot.name].bfloat16().float(), rtol=0, atol=0
        )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_in_float32_and_float64_there_is_no_second_copy(dtype):
    with half_subject(dtype).training("kv") as slots:
        assert all(slot.master is None for slot in slots)


@pytest.mark.parametrize("architecture", ["llama", "gpt2"])
def test_the_share_of_weights_that_moved_is_counted_among_those_trained(architecture):
    subject = subject_of(architecture)
    with GradientDescent(RATE).learn(subject, prompts()) as predictor:
        assert predictor.training.moved > 0.98  # a bias of all keys changes no softmax, so it may stay
    with GradientDescent(0.0).learn(subject, prompts()) as predictor:
        assert predictor.training.moved == 0.0
    stacked = Stacked.copies(subject, "kv", 2)
    slot, weight = stacked.slots[0], stacked.weights[0][1]
    entries = sum(int(slot.restrict(torch.ones_like(slot.parameter)).sum()) for slot in stacked.slots)
    at = (int(slot.keep.nonzero()[0, 0]) if slot.keep is not None else 0, 0)
    weight[at if slot.axis == 0 else at[::-1]] += 2
    with subject.training("kv") as slots, torch.no_grad():
        slots[0].parameter.copy_(weight)
        in_place = InPlace(slots).moves()
    assert stacked.moves()[0].tolist()[:3] == [0, entries, 0]
    for moves in (stacked.moves()[1], in_place[0]):
        assert moves.tolist()[:3] == [1, entries, pytest.approx(4)]
        assert moves[3] == pytest.approx(float(stacked.moves()[0, 3]), rel=1e-12)
