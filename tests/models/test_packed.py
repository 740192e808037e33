"""Texts in one sequence without padding: the same numbers, from no row that is not text."""

import weakref

import pytest
import torch
from drawn import drawn_prompts
from transformers import models as zoo

import tiny
from iclgd.learners import together
from iclgd.learners.course import Step
from iclgd.learners.descent import GradientDescent
from iclgd.learners.layercausal import LayerCausal
from iclgd.learners.together import Job, train_together
from iclgd.models.packed import Packed
from iclgd.models.replicas import product
from iclgd.models.unpadded import packs
from tiny import ARCHITECTURES, REGISTERED, tiny_subject

LENGTHS = ((3, 14, 5), (12, 2, 7), (4, 9, 11))  # some longer than the windows of the families that have one


def prompts(seed):
    return drawn_prompts(LENGTHS[seed], seed)


def trained(subject, learner):
    return train_together(subject, [Job(learner, prompts(seed), vectors=seed != 1) for seed in range(len(LENGTHS))])


@pytest.mark.parametrize("kind", [GradientDescent, LayerCausal])
@pytest.mark.parametrize("architecture", REGISTERED)
def test_weights_losses_and_vectors_are_those_of_a_padded_batch(architecture, kind, monkeypatch):
    subject, learner = tiny_subject(architecture), kind(rate=0.05)
    with subject.in_precision(torch.float64):
        ours = trained(subject, learner)
        monkeypatch.setattr(together, "packs", lambda _subject: False)
        theirs = trained(subject, learner)
    for one, other in zip(ours, theirs, strict=True):
        assert one.training.losses == pytest.approx(other.training.losses, rel=0, abs=1e-10)
        for a, b in zip(one.weights, other.weights, strict=True):
            torch.testing.assert_close(a, b, rtol=0, atol=1e-10)
        for a, b in zip(one.training.vectors, other.training.vectors, strict=True):
            torch.testing.assert_close(a, b, rtol=0, atol=1e-10)
    assert [len(one.training.vectors) for one in ours] == [3, 0, 3]


def test_every_family_that_takes_the_registered_attention_packs_and_no_other():
    found = {name for name in ARCHITECTURES if packs(tiny_subject(name))}
    assert found == set(REGISTERED)


def test_a_model_in_which_a_text_sees_the_one_before_it_is_not_packed():
    subject = tiny_subject("llama")
    block = subject.layout.blocks[1]
    handle = block.register_forward_hook(lambda _module, _args, states: states + states.roll(1, 1))
    assert not packs(subject)
    handle.remove()
    assert packs(tiny_subject("llama"))


def test_texts_are_packed_on_one_thread_and_padded_on_more(monkeypatch):
    """Asked anew each time: a process may be given other threads after its model was asked."""
    subject = tiny_subject("llama")
    steps = [[Step((1, *range(3, 3 + length)), range(1, 2), 0) for length in (2, 9)]]
    packed = []
    for threads in (1, 2, 1):
        monkeypatch.setattr(torch, "get_num_threads", lambda threads=threads: threads)
        (batch,) = together._batches(subject, steps)
        packed.append(batch.packed is not None)
    assert packed == [True, False, True]


def test_a_model_that_counts_places_in_the_sequence_is_not_packed(monkeypatch):
    """Llama 4: its chunks, and how sharply it attends, begin thousands of tokens after all that can be asked."""
    sizes = {"intermediate_size_mlp": 48, "head_dim": 8, "num_local_experts": 2, "no_rope_layers": [1, 0, 1]}
    config = zoo.llama4.Llama4TextConfig(**tiny.GROUPED, **sizes, attn_scale=2.0, attention_chunk_size=8192)
    monkeypatch.setitem(ARCHITECTURES, "llama4", lambda: config)
    subject = tiny_subject("llama4")
    assert subject.capture == "registered"
    assert not packs(subject)


@pytest.mark.parametrize("before", [12, 25])
def test_a_text_that_sees_what_stands_many_tokens_before_it_is_noticed(before):
    """As where a mask goes wrong only beyond a few tokens."""
    subject = tiny_subject("llama")

    def late(_module, _args, states):
        return states + states.roll(before, 1) * (torch.arange(states.shape[1]) >= before)[:, None]

    handle = subject.layout.blocks[0].register_forward_hook(late)
    assert not packs(subject)
    handle.remove()


def test_masks_of_a_step_are_gone_before_the_next(monkeypatch):
    """They grow with the square of all tokens of a step, and a training has hundreds of steps."""
    seen, alive = [], []
    own = Packed.own

    def watched(packed, mask):
        if not any(ref() is mask for ref in seen):
            alive.append(sum(ref() is not None for ref in seen))
            seen.append(weakref.ref(mask))
        return own(packed, mask)

    subject = tiny_subject("llama")
    assert packs(subject)
    monkeypatch.setattr(Packed, "own", watched)
    trained(subject, GradientDescent(rate=0.05))
    assert alive == [0, 0, 0]
    mask = torch.zeros(1, 1, 5, 5)
    made = weakref.ref(Packed((2, 3)).own(mask))
    assert made() is not None
    del mask
    assert made() is None


def test_a_mask_over_very_many_texts_is_not_made():
    subject = tiny_subject("llama")  # 4 heads, 3 layers
    some = [3, 6] * 6
    assert together._mask_fits(subject, some)
    assert not together._mask_fits(subject, some * 10)
    for times, packed in ((1, True), (10, False)):
        steps = [[Step((1, *range(3, 2 + length)), range(1, 2), 0) for length in some * times]]
        (batch,) = together._batches(subject, steps)
        assert (batch.packed is not None) == packed


def test_training_side_by_side_runs_nothing_but_attention_on_padding():
    subject, seen = tiny_subject("llama"), {}
    block = subject.layout.blocks[0]
    watched = {name: block.get_submodule(name) for name in ("mlp", "self_attn.q_proj", "self_attn.o_proj")}
    assert packs(subject)
    handles = [
        module.register_forward_hook(lambda _m, _a, y, name=name: seen.setdefault(name, []).append(y.shape[:-1]))
        for name, module in watched.items()
    ]
    trained(subject, GradientDescent(rate=0.05))
    for handle in handles:
        handle.remove()
    wanted = [(1, sum(lengths[step] + 2 for lengths in LENGTHS)) for step in range(3)]  # bos and label word
    assert {name: [tuple(shape) for shape in shapes[-3:]] for name, shapes in seen.items()} == dict.fromkeys(
        watched, wanted
    )


def test_texts_stand_side_by_side_and_in_a_row_again():
    packed = Packed((2, 3, 1))
    assert packed.positions.tolist() == [[0, 1, 0, 1, 2, 0]]
    assert packed.starts == (0, 2, 5)
    states = torch.arange(1.0, 7.0).view(1, 6, 1)
    padded = packed.padded(states)
    assert padded[..., 0].tolist() == [[1, 2, 0], [3, 4, 5], [6, 0, 0]]
    assert torch.equal(packed.joined(padded), states)


def test_a_text_is_shown_what_the_mask_shows_it_of_itself_and_nothing_behind():
    packed = Packed((2, 3))
    lowest = torch.finfo(torch.float32).min
    places = torch.arange(5)
    window = (places[:, None] - places >= 0) & (places[:, None] - places < 2)  # itself and the one before it
    mask = torch.zeros(5, 5).masked_fill(~window, lowest)[None, None]
    shown = packed.own(mask) == 0
    assert shown[0, 0].tolist()[:2] == [[True, False, False], [True, True, False]]
    assert shown[1, 0].tolist() == [[True, False, False], [True, True, False], [False, True, True]]
    other = torch.zeros(1, 1, 5, 5)
    assert (packed.own(other) == 0)[1, 0].tolist() == torch.ones(3, 3).tril().bool().tolist()


@pytest.mark.parametrize("input_first", [False, True])
def test_each_replica_multiplies_its_own_rows_whatever_their_number(input_first):
    random = torch.Generator().manual_seed(0)
    lengths, inner, outer = (3, 1, 4), 5, 2
    rows = torch.randn(1, 8, inner, generator=random, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(3, outer, inner, generator=random, dtype=torch.float64)
    weight = (weight.mT.contiguous() if input_first else weight).requires_grad_()
    bias = torch.randn(3, outer, generator=random, dtype=torch.float64, requires_grad=True)
    found = product(rows, weight, bias, input_first, Packed(lengths))
    parts = zip(rows[0].split(lengths), weight, bias, strict=True)
    wanted = torch.cat([x @ (w if input_first else w.T) + b for x, w, b in parts])[None]
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-12)
    slopes = torch.randn(wanted.shape, generator=random, dtype=torch.float64)
    ours, theirs = (torch.autograd.grad(made, (rows, weight, bias), slopes) for made in (found, wanted))
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-12)
