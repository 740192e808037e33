"""Gradient descent on the demonstrations is exactly what a hand-written loop does, and leaves no trace of itself."""

import math

import numpy as np
import pytest
import torch
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
from iclgd.learners.layercausal import LayerCausal, LayerCausalPaper
from iclgd.learners.outcome import diverged
from iclgd.learners.prompted import InContext, ZeroShot
from iclgd.models.replicas import InPlace, Stacked
from iclgd.models.subject import Subject
from tiny import tiny_model, tiny_tokenizer

RATE = 0.05
PARTS = ("kv", "qkv", "attention", "all")


def whole(demo) -> list[int]:
    """Every token after the first is a target, counted with bos."""
    return list(range(1, len(BOS + demo.ids)))


def by_hand(subject, demos, part="kv", rate=RATE, clip=None, targets=whole):
    model = copy_of(subject)
    for demo in demos:
        plain_step(model, plain_loss(model, BOS + demo.ids, targets(demo)), subject.name, part, rate, clip)
    return weights_of(model)


def moved(before, after) -> set[str]:
    return {name for name in before if not torch.equal(before[name], after[name])}


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


# what is left behind

LEARNERS = {
    "zero-shot": ZeroShot(),
    "icl": InContext(),
    "gd": GradientDescent(RATE),
    "gd on everything": GradientDescent(RATE, "all"),
    "lcgd": LayerCausal(RATE),
    "lcgd-paper": LayerCausalPaper(RATE),
}


def answers(subject) -> torch.Tensor:
    with torch.no_grad():
        return subject.model(torch.tensor([BOS + DEMOS[0].ids])).logits


def assert_untouched(subject, before, hooks) -> None:
    assert not moved(before, weights_of(subject.model))
    assert not any(p.requires_grad or p.grad is not None for p in subject.model.parameters())
    assert not any("forward" in module.__dict__ for module in subject.model.modules())
    assert hooks_of(subject.model) == hooks


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("architecture", ["llama", "gpt2"])
@pytest.mark.parametrize("name", LEARNERS)
def test_the_model_is_bit_for_bit_itself_after_a_learner_also_when_it_ends_in_an_exception(name, architecture, fails):
    subject = subject_of(architecture)
    before, hooks, own = weights_of(subject.model), hooks_of(subject.model), answers(subject)
    trains = name not in ("zero-shot", "icl")

    def use():
        with LEARNERS[name].learn(subject, prompts()):
            assert torch.equal(answers(subject), own) is not trains
            if fails:
                raise KeyboardInterrupt

    if fails:
        with pytest.raises(KeyboardInterrupt):
            use()
    else:
        use()
    assert torch.equal(answers(subject), own)
    assert_untouched(subject, before, hooks)


@pytest.mark.parametrize(
    "learner", [GradientDescent(RATE), GradientDescent(RATE, "all"), LayerCausal(RATE), LayerCausalPaper(RATE)]
)
def test_the_model_is_itself_after_an_exception_in_the_middle_of_training(learner, monkeypatch):
    subject = subject_of("llama")
    before, hooks, norm, calls = weights_of(subject.model), hooks_of(subject.model), subject.model.model.norm, []
    forward = norm.forward

    def fourth_time_unlucky(*args, **kwargs):
        calls.append(None)
        if len(calls) == 4:  # of the final norm, so that a training is under way in all of them
            raise MemoryError
        return forward(*args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(norm, "forward", fourth_time_unlucky)
        with pytest.raises(MemoryError), learner.learn(subject, prompts(DEMOS * 2)):
            answers(subject)
    norm.__dict__.pop("forward", None)
    assert_untouched(subject, before, hooks)


def hooks_of(model) -> int:
    return sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules())


@pytest.mark.parametrize("architecture", ["llama", "gpt2", "qwen2"])
@pytest.mark.parametrize("rate", [1e3, 1e30, 1e150, 1e300])
@pytest.mark.parametrize("kind", [GradientDescent, LayerCausal, LayerCausalPaper])
def test_a_rate_that_is_far_too_large_ends_as_diverged_whatever_the_answers_are(kind, rate, architecture):
    """Never in an exception; and the weights come back from infinity."""
    subject = subject_of(architecture)
    before = weights_of(subject.model)
    with kind(rate).learn(subject, prompts()) as predictor:
        assert predictor.training.diverged is not None
    assert not moved(before, weights_of(subject.model))


def test_a_rate_in_float32_that_leaves_finite_numbers_is_diverged_all_the_same():
    """A norm hides the size of its input: answers were finite, and by chance right, at a rate of 1e38."""
    subject = Subject(tiny_model("llama"), tiny_tokenizer(), "llama")
    with GradientDescent(1e15).learn(subject, prompts(DEMOS[:1])) as predictor:
        assert predictor.trace(prompts()).scores.isfinite().all()
        assert "times as long as the weights" in predictor.training.diverged


@pytest.mark.parametrize(
    "change, losses, why",
    [
        (0.5, [3.0, 4.0, 5.0], None),
        (0.99, [3.0, 9.0, 8.9], None),  # 8.95 in the mean: within twice ln 99 = 4.6 (rounded up: 9.19)
        (0.5, [3.0, 9.0, 9.5], "the loss rose from 3 to 9.25, and guessing evenly has 4.6"),
        (0.5, [6.0, 9.0, 9.5], None),  # it began above guessing
        (0.5, [6.0, 30.0, 0.1, 0.1], None),  # one bad step is none
        (0.5, [100.0], None),
        (0.5, [], None),
        (1.01, [3.0, 2.0], "the update is 1 times as long as the weights"),
        (-7.0, [3.0, 2.0], "the update is 7 times as long as the weights"),
    ],
)
def test_training_has_diverged_if_the_update_outgrows_the_weights_or_the_loss_outgrows_guessing(change, losses, why):
    subject = subject_of("llama")
    stacked = Stacked.copies(subject, "kv", 1)
    for weight in stacked.weights:
        weight *= 1 + change
    assert diverged(losses, math.log(99), stacked.moves()[0].tolist()) == why


# low precision


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


def test_no_demonstrations_change_nothing():
    subject = subject_of("llama")
    before = weights_of(subject.model)
    with GradientDescent(RATE).learn(subject, prompts(())) as predictor:
        assert not moved(before, weights_of(subject.model))
        assert predictor.training.losses == ()
        assert predictor.training.diverged is None
        assert predictor.training.moved == 0
