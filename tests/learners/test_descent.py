"""Gradient descent on the demonstrations is exactly what a hand-written loop does."""

import numpy as np
import pytest
import torch
from by_hand import RATE, by_hand, moved, whole
from plain import (
    BOS,
    DEMOS,
    KV_ENTRIES,
    LONE,
    assert_same,
    copy_of,
    learned,
    plain_loss,
    plain_step,
    prompts,
    subject_of,
    weights_of,
)

from iclgd.learners.descent import GradientDescent

PARTS = ("kv", "qkv", "attention", "all")


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("architecture", KV_ENTRIES)
def test_gd_on_one_demonstration_is_one_autograd_step(architecture, part):
    subject = subject_of(architecture)
    before = weights_of(subject.model)
    found = learned(GradientDescent(RATE, part), subject, prompts(DEMOS[:1]))
    assert_same(found, by_hand(subject, DEMOS[:1], part))
    assert moved(before, found)


def test_the_parts_are_nested_and_differ():
    subject = subject_of("gpt2")
    before = weights_of(subject.model)
    after = {part: learned(GradientDescent(RATE, part), subject, prompts(DEMOS[:1])) for part in PARTS}
    count = [sum(int((after[part][n] != before[n]).sum()) for n in before) for part in PARTS]
    assert count == sorted(set(count))


@pytest.mark.parametrize("architecture", ["llama", "falcon-groups"])
def test_gd_takes_the_demonstrations_one_at_a_time_and_in_order(architecture):
    subject = subject_of(architecture)
    found = learned(GradientDescent(RATE), subject, prompts())
    assert_same(found, by_hand(subject, DEMOS))
    backwards = by_hand(subject, DEMOS[::-1])
    assert any(not torch.allclose(found[name], backwards[name], atol=1e-6) for name in found)


def test_epochs_repeat_the_demonstrations():
    subject = subject_of("llama")
    assert_same(learned(GradientDescent(RATE, epochs=2), subject, prompts()), by_hand(subject, DEMOS * 2))


def test_another_order_is_drawn_by_seed():
    order = [2, 0, 1]
    seed = next(s for s in range(50) if np.random.RandomState(s).permutation(3).tolist() == order)
    subject = subject_of("llama")
    found = learned(GradientDescent(RATE, order=seed), subject, prompts())
    assert_same(found, by_hand(subject, [DEMOS[i] for i in order]))


def test_dropped_demonstrations_are_trained_on_only_where_asked():
    subject, given = subject_of("llama"), prompts(DEMOS, LONE)
    assert_same(learned(GradientDescent(RATE), subject, given), by_hand(subject, DEMOS))
    assert_same(learned(GradientDescent(RATE, dropped_too=True), subject, given), by_hand(subject, DEMOS + LONE))


@pytest.mark.parametrize("clip", [1e-3, 0.5, 1e6])
def test_clip_bounds_the_global_norm_of_the_trained_entries(clip):
    subject = subject_of("gpt2")
    before = weights_of(subject.model)
    found = learned(GradientDescent(RATE, clip=clip), subject, prompts(DEMOS[:1]))
    assert_same(found, by_hand(subject, DEMOS[:1], clip=clip))
    length = sum(float(((found[n] - before[n]) ** 2).sum()) for n in found) ** 0.5
    assert length <= RATE * clip * (1 + 1e-9)
    if clip < 1e6:
        assert length == pytest.approx(RATE * clip, rel=1e-6)


@pytest.mark.parametrize("demo", [DEMOS[0], DEMOS[1]])
def test_the_label_alone_can_be_the_target(demo):
    def label(demo) -> list[int]:
        return whole(demo)[-len(demo.label) :]

    subject = subject_of("llama")
    found = learned(GradientDescent(RATE, target="label"), subject, prompts((demo,)))
    assert_same(found, by_hand(subject, (demo,), targets=label))
    everything = by_hand(subject, (demo,))
    assert any(not torch.allclose(found[n], everything[n], atol=1e-6) for n in found)


def test_without_bos_training_starts_at_the_second_token():
    subject = subject_of("llama")
    found = learned(GradientDescent(RATE), subject, prompts(DEMOS[:1], bos=()))
    model = copy_of(subject)
    plain_step(model, plain_loss(model, DEMOS[0].ids, [1, 2, 3, 4]), "llama", "kv", RATE)
    assert_same(found, weights_of(model))


def test_training_says_the_losses_and_gradient_norms_it_met():
    subject, model = subject_of("llama"), copy_of(subject_of("llama"))
    with GradientDescent(RATE).learn(subject, prompts()) as predictor:
        training = predictor.training
    assert training.diverged is None
    for index, demo in enumerate(DEMOS):
        loss = plain_loss(model, BOS + demo.ids, whole(demo))
        plain_step(model, loss, "llama", "kv", RATE)
        assert training.losses[index] == pytest.approx(float(loss.detach()), abs=1e-10)
        for layer, block in enumerate(model.model.layers):
            kv = (block.self_attn.k_proj.weight, block.self_attn.v_proj.weight)
            norm = sum(float((p.grad**2).sum()) for p in kv) ** 0.5
            assert float(training.gradient_norms[layer, index]) == pytest.approx(norm, abs=1e-10)


def test_query_vectors_are_those_of_each_demonstration_as_it_was_learned():
    subject, model = subject_of("llama"), copy_of(subject_of("llama"))
    with GradientDescent(RATE, order=1).learn(subject, prompts()) as predictor:
        vectors = predictor.training.vectors
    for index in np.random.RandomState(1).permutation(3):
        seen = []
        handle = model.model.layers[1].self_attn.q_proj.register_forward_hook(lambda _m, _a, y, s=seen: s.append(y))
        loss = plain_loss(model, BOS + DEMOS[index].ids, whole(DEMOS[index]))
        handle.remove()
        assert torch.allclose(vectors[index][1], seen[0][0, len(BOS) :], rtol=0, atol=1e-10)
        plain_step(model, loss, "llama", "kv", RATE)


def test_no_demonstrations_change_nothing():
    subject = subject_of("llama")
    before = weights_of(subject.model)
    with GradientDescent(RATE).learn(subject, prompts(())) as predictor:
        assert not moved(before, weights_of(subject.model))
        assert predictor.training.losses == ()
        assert predictor.training.gradient_norms.shape == (subject.layout.layers, 0)
        assert predictor.training.diverged is None
        assert predictor.training.moved == 0
