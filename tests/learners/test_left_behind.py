"""What learners leave behind: the model bit for bit as it was, and a word on training that diverged."""

import math

import pytest
import torch
from by_hand import RATE, moved
from plain import BOS, DEMOS, prompts, subject_of, weights_of

from iclgd.learners.descent import GradientDescent
from iclgd.learners.layercausal import LayerCausal, LayerCausalPaper
from iclgd.learners.outcome import diverged
from iclgd.learners.prompted import InContext, ZeroShot
from iclgd.models.replicas import Stacked
from iclgd.models.subject import Subject
from tiny import tiny_model, tiny_tokenizer

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
        (0.5, [3.0, 30.0], "the loss rose from 3 to 30, and guessing evenly has 4.6"),
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


def test_how_much_longer_an_update_is_than_the_weights_is_said_to_two_digits():
    assert diverged([1.0], 4.0, (0, 1, 20.25, 9)) == "the update is 1.5 times as long as the weights"
    assert diverged([1.0], 4.0, (0, 1, 9, 20.25)) is None
