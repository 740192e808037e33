"""Many finetunings at once are the same finetunings one at a time."""

import math

import numpy as np
import pytest
import torch
from accelerate.hooks import AlignDevicesHook, add_hook_to_module, attach_execution_device_hook
from plain import (
    BOS,
    DEMOS,
    KV_ENTRIES,
    LONE,
    assert_same,
    copy_of,
    gpt2_paper_loss,
    installed,
    plain_layer_losses,
    plain_loss,
    plain_step,
    prompts,
    subject_of,
    weights_of,
)
from transformers import models as zoo

import tiny
from iclgd.learners import together
from iclgd.learners.course import Step
from iclgd.learners.descent import GradientDescent
from iclgd.learners.layercausal import LayerCausal, LayerCausalPaper
from iclgd.learners.together import Job, train_together
from iclgd.models.subject import Subject
from iclgd.prompts import Demo
from tiny import ARCHITECTURES, tiny_model, tiny_tokenizer

# rates, targets, lengths, orders, epochs and clips that differ; the last has one step, the first nine
MIXED = (
    ({"rate": 0.05, "epochs": 3}, DEMOS),
    ({"rate": 0.01, "target": "label"}, DEMOS[::-1]),
    ({"rate": 0.03, "clip": 0.1}, DEMOS + LONE),
    ({"rate": 0.05, "order": 1}, DEMOS),
    ({"rate": 0.02}, LONE),
)


def jobs_of(kind):
    return [Job(kind(**options), prompts(demos)) for options, demos in MIXED]


def twin(subject, job):
    """The same training by a loop over a copy of the model, one step at a time, by autograd's ``backward``."""
    model, learner = copy_of(subject), job.learner
    demos = list(job.prompts.demos)
    if learner.order is not None:
        demos = [demos[i] for i in np.random.RandomState(learner.order).permutation(len(demos))]
    losses = []
    for demo in demos * learner.epochs:
        ids = BOS + demo.ids
        targets = list(range(len(ids) - len(demo.label) if learner.target == "label" else 1, len(ids)))
        if isinstance(learner, LayerCausalPaper):
            made = [lambda t=t, ids=ids: gpt2_paper_loss(model, ids, t) for t in targets]
        elif isinstance(learner, LayerCausal):
            made = [lambda ids=ids, targets=targets: plain_layer_losses(model, subject, ids, targets)]
        else:
            made = [lambda ids=ids, targets=targets: plain_loss(model, ids, targets)]
        for loss_of in made:
            loss = loss_of()
            losses.append(float(loss.detach()))
            plain_step(model, loss, subject.name, learner.trains, learner.rate, learner.clip)
    return weights_of(model), losses


@pytest.mark.parametrize("architecture", KV_ENTRIES)
@pytest.mark.parametrize("kind", [GradientDescent, LayerCausal])
def test_replicas_with_rates_targets_lengths_orders_and_epochs_of_their_own_are_their_plain_twins(kind, architecture):
    """All of it in float64: a norm that rounds to float32 by itself makes 1e-8 of the last bit of a double."""
    subject = subject_of(architecture)
    jobs = jobs_of(kind)
    with subject.in_precision(torch.float64):
        for job, trained in zip(jobs, train_together(subject, jobs), strict=True):
            weights, losses = twin(subject, job)
            assert_same(installed(subject, trained.slots), weights)
            assert trained.training.losses == pytest.approx(losses, abs=1e-10)


def test_replicas_of_the_papers_layer_causal_descent_are_their_plain_twins():
    subject = subject_of("gpt2")
    jobs = jobs_of(LayerCausalPaper)
    for job, trained in zip(jobs, train_together(subject, jobs), strict=True):
        weights, losses = twin(subject, job)
        assert_same(installed(subject, trained.slots), weights)
        assert trained.training.losses == pytest.approx(losses, abs=1e-10)


def in_place(subject, job):
    """One at a time in the model's own parameters: the way that needs no module to be linear."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(together, "stackable", lambda *_: False)
        (trained,) = train_together(subject, [job])
    return trained


FEW = ("llama", "gpt2", "gpt-neo", "falcon-alibi", "gpt-oss")  # registered and intercepted, K and V apart and fused
WAYS = [(GradientDescent, "kv"), (LayerCausal, "kv"), (GradientDescent, "qkv"), (LayerCausalPaper, "kv")]
CASES = [
    pytest.param(architecture, *way, marks=[] if architecture in FEW or way in WAYS[:1] else [pytest.mark.slow])
    for architecture in ARCHITECTURES
    for way in WAYS
]


@pytest.mark.parametrize("architecture, kind, part", CASES)
def test_on_every_family_replicas_are_what_training_in_the_models_own_parameters_gives(architecture, kind, part):
    """Widened to float64 with all tables and softmaxes: some families compute these in float32 otherwise."""
    subject = Subject(tiny_model(architecture), tiny_tokenizer(), architecture)
    options = ({"rate": 0.05, "target": "label", "epochs": 2}, {"rate": 0.01, "clip": 0.1})
    orders = (DEMOS[:2], DEMOS[1::-1])
    jobs = [Job(kind(trains=part, **own), prompts(demos)) for own, demos in zip(options, orders, strict=True)]
    with subject.in_precision(torch.float64):
        for job, trained in zip(jobs, train_together(subject, jobs), strict=True):
            assert_trained_alike(trained, in_place(subject, job))


def assert_trained_alike(one, two):
    for ours, theirs in zip(one.weights, two.weights, strict=True):
        assert torch.allclose(ours, theirs, rtol=0, atol=1e-10)
    assert one.training.losses == pytest.approx(two.training.losses, rel=1e-10)
    assert torch.allclose(one.training.gradient_norms, two.training.gradient_norms, rtol=1e-9, atol=1e-10)
    for ours, theirs in zip(one.training.vectors, two.training.vectors, strict=True):
        assert torch.allclose(ours, theirs, rtol=0, atol=1e-10)
    with one.installed() as first:
        outputs = first.trace(prompts()).outputs
    with two.installed() as second:
        assert torch.allclose(outputs, second.trace(prompts()).outputs, rtol=0, atol=1e-9)


@pytest.mark.parametrize("kind", [GradientDescent, LayerCausal])
def test_in_float32_thirty_two_steps_at_once_are_within_1e_5_of_one_at_a_time(kind):
    subject = Subject(tiny_model("llama"), tiny_tokenizer(), "llama")
    random = torch.Generator().manual_seed(0)
    drawn = [
        tuple(Demo(tuple(torch.randint(3, 99, (6 + (i + r) % 5,), generator=random).tolist()), (8,)) for i in range(32))
        for r in range(3)
    ]
    jobs = [Job(kind(1e-3), prompts(demos)) for demos in drawn]
    for job, trained in zip(jobs, train_together(subject, jobs), strict=True):
        alone = in_place(subject, job)
        for ours, theirs, slot in zip(trained.weights, alone.weights, trained.slots, strict=True):
            assert (ours - theirs).norm() <= 1e-5 * theirs.norm()
            assert (ours - slot.before).norm() > 1e-3 * (ours - theirs).norm()  # they did move


@pytest.mark.parametrize("bad", [1e3, 1e200, math.inf])
@pytest.mark.parametrize("kind", [GradientDescent, LayerCausal, LayerCausalPaper])
def test_a_replica_that_diverges_disturbs_no_other_and_ends_as_it_would_alone(kind, bad):
    subject = subject_of("opt")
    good, wild = Job(kind(0.01), prompts()), Job(kind(bad), prompts(DEMOS * 2))
    (calm,) = train_together(subject, [good])
    (alone,) = train_together(subject, [wild])
    mad, beside = train_together(subject, [wild, good])
    for ours, theirs in zip(beside.weights, calm.weights, strict=True):
        assert torch.allclose(ours, theirs, rtol=0, atol=1e-12)
    assert beside.training.diverged is None
    assert mad.training.diverged == alone.training.diverged is not None
    assert len(mad.training.losses) == len(alone.training.losses)
    assert mad.training.vectors == ()


def test_a_training_ends_with_the_demonstration_on_which_a_number_was_not_finite():
    subject = subject_of("opt")
    (trained,) = train_together(subject, [Job(GradientDescent(math.inf), prompts())])
    assert len(trained.training.losses) == 1
    assert trained.training.diverged == "a trained weight is not a finite number"
    assert (trained.training.gradient_norms[:, 1:] == 0).all()
    (trained,) = train_together(subject, [Job(LayerCausalPaper(math.inf), prompts())])
    assert len(trained.training.losses) == len(DEMOS[0].ids)


def test_vectors_are_kept_only_where_they_are_asked_for():
    subject = subject_of("opt")
    jobs = [Job(GradientDescent(0.05), prompts(), vectors=keep) for keep in (False, True, False)]
    kept = [trained.training.vectors for trained in train_together(subject, jobs)]
    assert [len(vectors) for vectors in kept] == [0, len(DEMOS), 0]
    (alone,) = train_together(subject, jobs[1:2])
    for ours, theirs in zip(kept[1], alone.training.vectors, strict=True):
        assert torch.allclose(ours, theirs, rtol=0, atol=1e-12)


def test_kinds_and_parts_that_cannot_share_a_pass_are_trained_apart_and_come_back_in_order():
    subject = subject_of("gpt2")
    learners = [GradientDescent(0.05), LayerCausal(0.05), GradientDescent(0.05, "all"), GradientDescent(0.02, "qkv")]
    learners += [GradientDescent(0.01), GradientDescent(0.01, "all")]
    jobs = [Job(learner, prompts()) for learner in learners]
    for job, trained in zip(jobs, train_together(subject, jobs), strict=True):
        assert trained.part == job.learner.trains
        assert_same(installed(subject, trained.slots), twin(subject, job)[0])


def test_an_embedding_that_is_the_unembedding_is_trained_as_both(monkeypatch):
    """OLMo has no weights in its norms: all that it trains are matrices, of which one is looked up in, too."""
    config = zoo.olmo.OlmoConfig(**tiny.GROUPED, tie_word_embeddings=True)
    monkeypatch.setitem(ARCHITECTURES, "olmo", lambda: config)
    subject = subject_of("olmo")
    jobs = [Job(kind(0.05, "all"), prompts()) for kind in (GradientDescent, LayerCausal)]
    for job, trained in zip(jobs, train_together(subject, jobs), strict=True):
        assert_same(installed(subject, trained.slots), twin(subject, job)[0], 1e-6)  # its norms are float32


# memory


def crowded(monkeypatch, room):
    """A device on which so many replicas fit; what was tried."""
    tried, train = [], together._train

    def limited(subject, jobs, courses, note):
        tried.append(len(jobs))
        if len(jobs) > room:
            raise torch.OutOfMemoryError("no room")
        return train(subject, jobs, courses, note)

    monkeypatch.setattr(together, "_train", limited)
    return tried


def test_out_of_memory_halves_the_batch_and_is_noted(monkeypatch):
    subject, jobs, notes = subject_of("opt"), jobs_of(GradientDescent), []
    wanted = train_together(subject, jobs)
    tried = crowded(monkeypatch, 2)
    found = train_together(subject, jobs, notes.append)
    assert tried == [5, 2, 2, 1]
    assert [one for one in notes if "step" not in one] == ["out of memory: 2 finetunings at once from here on"]
    assert notes[1] == f"training 2 at once, step 1 of {3 * len(DEMOS)}"
    assert notes[-1] == f"training, step {len(LONE)} of {len(LONE)}"
    for one, two in zip(found, wanted, strict=True):
        for ours, theirs in zip(one.weights, two.weights, strict=True):
            assert torch.allclose(ours, theirs, rtol=0, atol=1e-12)


def test_one_finetuning_that_does_not_fit_is_out_of_memory(monkeypatch):
    crowded(monkeypatch, 0)
    with pytest.raises(torch.OutOfMemoryError):
        train_together(subject_of("opt"), jobs_of(GradientDescent))


def test_as_many_at_once_as_the_memory_that_is_free_holds(monkeypatch):
    from iclgd.models import replicas

    subject = subject_of("opt")
    one = 8 * 2 * sum(slot.parameter.numel() for slot in subject.layout.slots("kv"))
    monkeypatch.setattr(replicas, "free_memory", lambda _device: 0)
    assert replicas.replicas_that_fit(subject, "kv", 10, 10) == 1
    monkeypatch.setattr(replicas, "free_memory", lambda _device: 100 * one)
    few = replicas.replicas_that_fit(subject, "kv", 10, 10)
    assert 1 < few < 100
    assert replicas.replicas_that_fit(subject, "kv", 100, 100) < few


def test_a_model_that_accelerate_spread_out_keeps_its_hooks():
    """There modules have a ``forward`` of their own, which moves inputs to where the weights are."""
    subject, hooked = subject_of("llama"), subject_of("llama")
    add_hook_to_module(hooked.model, AlignDevicesHook(execution_device="cpu"))
    for block in hooked.layout.blocks:
        attach_execution_device_hook(block, "cpu")
    own = {name: module.__dict__["forward"] for name, module in hooked.model.named_modules() if has_own(module)}
    jobs = jobs_of(GradientDescent)[:2]
    for one, two in zip(train_together(subject, jobs), train_together(hooked, jobs), strict=True):
        assert all(torch.equal(a, b) for a, b in zip(one.weights, two.weights, strict=True))
    assert {name for name in own if "k_proj" in name}
    for name, module in hooked.model.named_modules():
        assert module.__dict__.get("forward") is own.get(name)


def has_own(module) -> bool:
    return "forward" in module.__dict__


def test_as_many_texts_share_a_mask_as_there_are_heads_in_all_layers():
    """n texts of one length: their mask has n² blocks, and the scores of four heads in three layers 12 n."""
    subject = Subject(tiny_model("llama"), tiny_tokenizer(), "llama")
    for length in (1, 5):
        assert together._mask_fits(subject, [length] * 12)
        assert not together._mask_fits(subject, [length] * 13)
    assert together._mask_fits(subject, [6, *[1] * 66])  # the longest counts: 72² is below 12 · 67 · 6²


def test_texts_of_many_lengths_are_packed_and_texts_of_one_length_are_not():
    subject = Subject(tiny_model("llama"), tiny_tokenizer(), "llama")
    for lengths, packed in (((3, 10), True), ((7, 7), False)):
        steps = [[Step((1, *range(3, 2 + length)), range(1, 2), 0) for length in lengths]]
        (batch,) = together._batches(subject, steps)
        assert (batch.packed is not None) == packed
