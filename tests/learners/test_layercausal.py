"""Layer-causal descent is what its two definitions say, and it is layer-causal."""

import pytest
import torch
from plain import (
    BOS,
    DEMOS,
    KV_ENTRIES,
    assert_same,
    copy_of,
    gpt2_paper_loss,
    learned,
    plain_layer_losses,
    plain_step,
    prompts,
    subject_of,
    weights_of,
)

from iclgd.errors import Refusal
from iclgd.learners import vocabulary
from iclgd.learners.descent import GradientDescent
from iclgd.learners.layercausal import LayerCausal, LayerCausalPaper
from tiny import tiny_subject

RATE = 0.05


def lcgd_by_hand(subject, demos, part="kv", targets=None):
    model = copy_of(subject)
    for demo in demos:
        ids = BOS + demo.ids
        loss = plain_layer_losses(model, subject, ids, targets(demo) if targets else list(range(1, len(ids))))
        plain_step(model, loss, subject.name, part, RATE)
    return weights_of(model)


def paper_by_hand(subject, demos, targets=None):
    model = copy_of(subject)
    for demo in demos:
        ids = BOS + demo.ids
        for target in targets(demo) if targets else range(1, len(ids)):
            plain_step(model, gpt2_paper_loss(model, ids, target), "gpt2", "kv", RATE)
    return weights_of(model)


def label_tokens(demo) -> list[int]:
    last = len(BOS + demo.ids)
    return list(range(last - len(demo.label), last))


@pytest.mark.parametrize("architecture", [*KV_ENTRIES])
def test_lcgd_is_a_step_on_the_sum_of_each_layers_own_loss(architecture):
    subject = subject_of(architecture)
    assert_same(learned(LayerCausal(RATE), subject, prompts()), lcgd_by_hand(subject, DEMOS))


@pytest.mark.parametrize("part", ["qkv", "attention", "all"])
@pytest.mark.parametrize("architecture", ["llama", "gpt2"])
def test_lcgd_trains_the_other_parts_too(architecture, part):
    """`all` with the unembedding, which every layer's loss goes through (and which GPT-2 ties to its embedding)."""
    subject = subject_of(architecture)
    assert_same(learned(LayerCausal(RATE, part), subject, prompts()), lcgd_by_hand(subject, DEMOS, part))


def test_lcgd_can_take_the_label_alone_as_its_target():
    subject = subject_of("gpt2")
    found = learned(LayerCausal(RATE, target="label"), subject, prompts())
    assert_same(found, lcgd_by_hand(subject, DEMOS, targets=label_tokens))


def test_lcgd_respects_a_final_soft_cap():
    """Gemma 2 caps its logits: a loss without the cap would be another one."""
    subject = subject_of("gemma2")
    with LayerCausal(RATE).learn(subject, prompts(DEMOS[:1])) as predictor:
        loss = predictor.training.losses[0]
    model, ids = copy_of(subject, "eager"), BOS + DEMOS[0].ids
    hidden: list[torch.Tensor] = []
    for block in model.model.layers:
        block.register_forward_hook(lambda _m, _a, y: hidden.append(y if isinstance(y, torch.Tensor) else y[0]))
    with torch.no_grad():
        model(torch.tensor([ids]))
        logits = [model.lm_head(model.model.norm(h))[0] for h in hidden]
        capped = [5.0 * torch.tanh(x / 5.0) for x in logits]
        wanted = sum(float(torch.nn.functional.cross_entropy(x[:-1], torch.tensor(ids[1:]))) for x in capped)
    assert loss == pytest.approx(wanted, abs=1e-4)  # eager softmax is float32 here


@pytest.mark.parametrize("architecture, factor", [("cohere", 0.25), ("cohere2", 0.25), ("granite", 1 / 3)])
def test_lcgd_respects_a_scale_of_the_final_logits(architecture, factor):
    """Cohere multiplies its logits and Granite divides them."""
    subject = subject_of(architecture)
    with LayerCausal(RATE).learn(subject, prompts(DEMOS[:1])) as predictor:
        loss = predictor.training.losses[0]
    model, ids = copy_of(subject), BOS + DEMOS[0].ids
    hidden: list[torch.Tensor] = []
    for block in model.model.layers:
        block.register_forward_hook(lambda _m, _a, y: hidden.append(y if isinstance(y, torch.Tensor) else y[0]))
    with torch.no_grad():
        model(torch.tensor([ids]))
        logits = [factor * model.lm_head(model.model.norm(h))[0] for h in hidden]
        wanted = sum(float(torch.nn.functional.cross_entropy(x[:-1], torch.tensor(ids[1:]))) for x in logits)
    assert loss == pytest.approx(wanted, rel=1e-7)  # its norms are float32


def test_lcgd_on_a_one_layer_model_is_gd():
    subject = subject_of("gpt2")
    subject.layout.blocks, subject.layout.attentions = subject.layout.blocks[:1], subject.layout.attentions[:1]
    subject.layout.outs = subject.layout.outs[:1]
    subject.model.transformer.h = subject.model.transformer.h[:1]
    assert_same(learned(LayerCausal(RATE), subject, prompts()), learned(GradientDescent(RATE), subject, prompts()))


def test_lcgd_paper_is_a_step_a_token_on_the_attention_outputs():
    subject = subject_of("gpt2")
    found = learned(LayerCausalPaper(RATE), subject, prompts())
    assert_same(found, paper_by_hand(subject, DEMOS))
    once = learned(LayerCausal(RATE), subject, prompts())
    assert any(not torch.allclose(found[name], once[name], atol=1e-4) for name in found)


def test_lcgd_paper_can_take_the_label_alone_as_its_target():
    subject = subject_of("gpt2")
    found = learned(LayerCausalPaper(RATE, target="label"), subject, prompts())
    assert_same(found, paper_by_hand(subject, DEMOS, targets=label_tokens))


@pytest.mark.parametrize("part", ["qkv", "attention", "all"])
def test_lcgd_paper_refuses_other_parts_than_keys_and_values(part):
    with pytest.raises(Refusal, match="keys and values only: leave out trains"):
        LayerCausalPaper(RATE, part)


# layer causality


def updates(learner, subject):
    """The weight change of every layer's keys and values."""
    before = {slot.name: (slot.layer, slot.parameter.detach().clone()) for slot in subject.layout.slots("kv")}
    with learner.learn(subject, prompts()) as predictor:
        after = {slot.name: slot.parameter.detach() for slot in predictor.slots}
        return {name: (layer, after[name] - value) for name, (layer, value) in before.items()}


def disturbed(architecture, layer):
    """The same model with every weight of one layer changed."""
    subject = subject_of(architecture)
    random = torch.Generator().manual_seed(layer)
    with torch.no_grad():
        for parameter in subject.layout.blocks[layer].parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=random, dtype=torch.float64))
    return subject


def layers_that_notice(learner, architecture, changed):
    """Which layers' updates are not the same to the last bit when the weights of layer ``changed`` are others."""
    one = updates(learner, subject_of(architecture))
    two = updates(learner, disturbed(architecture, changed))
    return {layer for name, (layer, update) in one.items() if not torch.equal(update, two[name][1])}


@pytest.mark.parametrize("changed", [0, 1, 2])
@pytest.mark.parametrize("architecture", ["llama", "gpt2", "gpt-neox", "falcon-groups"])
@pytest.mark.parametrize("kind", [LayerCausal, LayerCausalPaper])
def test_lcgd_update_of_a_layer_ignores_deeper_layers(kind, architecture, changed):
    assert layers_that_notice(kind(RATE), architecture, changed) == set(range(changed, 3))


@pytest.mark.parametrize("changed", [0, 1, 2])
@pytest.mark.parametrize("architecture", ["llama", "gpt2"])
def test_gd_update_of_a_layer_does_not_ignore_deeper_layers(architecture, changed):
    assert layers_that_notice(GradientDescent(RATE), architecture, changed) == {0, 1, 2}


def test_a_model_whose_unembedding_is_not_understood_is_refused():
    subject = subject_of("llama")
    subject.layout.norm = torch.nn.Identity()
    with (
        pytest.raises(Refusal, match="layer-causal descent is not supported"),
        LayerCausal(RATE).learn(subject, prompts()),
    ):
        pass


@pytest.mark.parametrize("rows", [3, 256])
def test_two_products_give_what_autograd_through_the_unembedding_gives(monkeypatch, rows):
    """The fast way where logits are a product, beside the way for any unembedding; in few parts and in many."""

    subject = tiny_subject("llama", dtype=torch.float64)
    generator = torch.Generator().manual_seed(0)
    normed = torch.randn(10, subject.layout.config.hidden_size, generator=generator, dtype=torch.float64) * 3
    wanted = torch.randint(subject.layout.config.vocab_size, (10,), generator=generator)
    shares = torch.rand(10, generator=generator, dtype=torch.float64)
    monkeypatch.setattr(vocabulary, "LOGITS", {"cpu": 0})
    monkeypatch.setattr(vocabulary, "LEAST_ROWS", rows)
    fast = vocabulary.cross_entropies(subject, normed, wanted, shares, [], vocabulary.Desk())
    assert vocabulary.plain_unembedding(subject.layout) is not None
    monkeypatch.setattr(vocabulary, "plain_unembedding", lambda _layout: None)
    plain = vocabulary.cross_entropies(subject, normed, wanted, shares, [], vocabulary.Desk())
    leaf = normed.clone().requires_grad_()
    losses = torch.nn.functional.cross_entropy(subject.unembed_normed(leaf), wanted, reduction="none")
    (slopes,) = torch.autograd.grad((losses * shares).sum(), leaf)
    for one in (fast, plain):
        torch.testing.assert_close(one[0], losses.detach(), rtol=0, atol=1e-12)
        torch.testing.assert_close(one[1], slopes, rtol=0, atol=1e-12)


@pytest.mark.parametrize("architecture", ["cohere", "granite", "gemma2"])
def test_logits_that_are_more_than_a_product_have_no_plain_unembedding(architecture):
    assert vocabulary.plain_unembedding(tiny_subject(architecture).layout) is None
