"""MLPs that see no padding: the same numbers from fewer rows, and left alone where they are trained."""

import pytest
import torch
from drawn import drawn_prompts

from iclgd.learners import together
from iclgd.learners.course import Step
from iclgd.learners.descent import GradientDescent
from iclgd.learners.layercausal import LayerCausal
from iclgd.learners.together import Job, train_together
from iclgd.models import unpadded
from tiny import tiny_subject

LENGTHS = ((3, 9, 5), (12, 2, 7), (4, 4, 11))
FAMILIES = ("llama", "gpt2", "gpt-neox", "gemma3", "olmo2", "bloom", "falcon-heads", "opt", "mpt")


@pytest.fixture(autouse=True)
def padded(monkeypatch):
    """As on a GPU, where texts are not packed."""
    monkeypatch.setattr(together, "packs", lambda _subject: False)


def prompts(seed):
    return drawn_prompts(LENGTHS[seed], seed)


def trained(subject, learner):
    jobs = [Job(learner, prompts(seed), vectors=seed == 0) for seed in range(len(LENGTHS))]
    return train_together(subject, jobs)


@pytest.mark.parametrize("learner", [GradientDescent(rate=0.05), LayerCausal(rate=0.05)], ids=["gd", "lcgd"])
@pytest.mark.parametrize("architecture", FAMILIES)
def test_weights_and_losses_are_those_with_padding(architecture, learner, monkeypatch):
    subject = tiny_subject(architecture, dtype=torch.float64)
    ours = trained(subject, learner)
    monkeypatch.setattr(unpadded, "WORTH", 0.0)
    for one, other in zip(ours, trained(subject, learner), strict=True):
        assert one.training.losses == pytest.approx(other.training.losses, rel=0, abs=1e-12)
        for a, b in zip(one.weights, other.weights, strict=True):
            torch.testing.assert_close(a, b, rtol=0, atol=1e-12)


def test_an_mlp_sees_text_alone_and_padding_becomes_zero():
    subject = tiny_subject("llama")
    (mlp, *_) = unpadded.row_wise(subject.layout, subject.layout.slots("kv"))
    states, seen = torch.randn(2, 5, subject.layout.config.hidden_size), []
    whole = mlp(states)
    watch = mlp.down_proj.register_forward_hook(lambda _m, _a, y: seen.append(y.shape[:-1].numel()))
    text = torch.tensor([0, 1, 2, 5, 6, 7, 8])
    with unpadded.unpadded([mlp], text, (2, 5)):
        found = mlp(states)
    assert seen == [7]
    torch.testing.assert_close(found.flatten(0, 1)[text], whole.flatten(0, 1)[text])
    assert not found.flatten(0, 1)[[3, 4, 9]].any()
    watch.remove()
    torch.testing.assert_close(mlp(states), whole, rtol=0, atol=0)  # the hooks are gone


@pytest.mark.parametrize(
    "architecture, part, count",
    [("llama", "kv", 3), ("llama", "attention", 3), ("llama", "down", 0), ("llama", "all", 0), ("opt", "kv", 0)],
)
def test_mlps_that_are_trained_or_no_modules_are_left_alone(architecture, part, count):
    layout = tiny_subject(architecture).layout
    assert len(unpadded.row_wise(layout, layout.slots(part))) == count


def test_experts_are_left_alone():
    layout = tiny_subject("gpt-oss").layout
    assert unpadded.row_wise(layout, layout.slots("kv")) == []


def test_training_side_by_side_runs_no_mlp_on_padding():
    subject, seen = tiny_subject("llama"), []
    GradientDescent().check(subject, Step((1, 2), range(1, 2), 0))  # the model is asked once how it answers
    mlp = subject.layout.blocks[0].mlp
    watch = mlp.down_proj.register_forward_hook(lambda _m, _a, y: seen.append(y.shape[:-1].numel()))
    trained(subject, GradientDescent(rate=0.05))
    watch.remove()
    assert seen == [sum(lengths[step] + 2 for lengths in LENGTHS) for step in range(3)]  # bos and label word
