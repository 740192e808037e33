"""A model in float64 shares nothing with itself in float32 that can be computed again, and comes back as it was."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from iclgd.models.precision import CannotWiden
from iclgd.models.subject import Subject
from tiny import ARCHITECTURES, tiny_model, tiny_subject, tiny_tokenizer, tokens

LENGTH = 20
ROWS = torch.arange(LENGTH).expand(2, -1)


def everything(subject: Subject) -> dict[str, Tensor]:
    model = subject.model
    return {name: tensor.clone() for name, tensor in [*model.named_parameters(), *model.named_buffers()]}


def assert_as_before(subject: Subject, before: dict[str, Tensor]) -> None:
    after = everything(subject)
    assert after.keys() == before.keys()
    for name, tensor in before.items():
        assert after[name].dtype == tensor.dtype, name
        assert torch.equal(after[name], tensor), name
    assert torch.get_default_dtype() == torch.float32


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_family_computes_everything_in_float64_and_comes_back_as_it_was(architecture, dtype):
    subject, ids = tiny_subject(architecture, dtype=dtype), tokens(2, LENGTH)
    before, own = everything(subject), subject.run(ids, ROWS, None).vocabulary
    with subject.in_precision(torch.float64) as widening:
        wide = subject.run(ids, ROWS, None).vocabulary
    # Falcon's position biases are bfloat16 by definition
    assert widening.narrow == ({"bfloat16"} if architecture == "falcon-alibi" else set())
    assert wide.dtype == torch.float64
    apart = float((wide - own.double()).abs().max() / own.abs().max())
    assert 0 < apart < 50 * torch.finfo(dtype).eps
    assert_as_before(subject, before)
    assert torch.equal(subject.run(ids, ROWS, None).vocabulary, own)


def llama_by_hand(model, ids: Tensor) -> Tensor:
    """A Llama written out in float64, with tables of its own."""
    w = {name: p.detach().double() for name, p in model.named_parameters()}
    config, length = model.config, ids.shape[1]
    heads, groups, size = config.num_attention_heads, config.num_key_value_heads, config.head_dim
    angles = np.arange(length)[:, None] / config.rope_parameters["rope_theta"] ** (np.arange(0, size, 2) / size)
    cos, sin = (torch.from_numpy(np.concatenate([f(angles), f(angles)], -1)) for f in (np.cos, np.sin))

    def norm(x: Tensor, weight: Tensor) -> Tensor:
        return x / (x.square().mean(-1, keepdim=True) + config.rms_norm_eps).sqrt() * weight

    def rotated(x: Tensor) -> Tensor:
        return x * cos + torch.cat([-x[..., size // 2 :], x[..., : size // 2]], -1) * sin

    x = w["model.embed_tokens.weight"][ids]
    for layer in range(config.num_hidden_layers):
        at = f"model.layers.{layer}."
        h = norm(x, w[at + "input_layernorm.weight"])
        q, k, v = ((h @ w[f"{at}self_attn.{n}_proj.weight"].T).unflatten(-1, (-1, size)).transpose(1, 2) for n in "qkv")
        k, v = (part.repeat_interleave(heads // groups, 1) for part in (rotated(k), v))
        scores = rotated(q) @ k.transpose(2, 3) / math.sqrt(size)
        scores = scores.masked_fill(torch.ones(length, length).triu(1).bool(), -torch.inf)
        x = x + (scores.softmax(-1) @ v).transpose(1, 2).flatten(2) @ w[at + "self_attn.o_proj.weight"].T
        h = norm(x, w[at + "post_attention_layernorm.weight"])
        gate, up, down = (w[f"{at}mlp.{n}_proj.weight"] for n in ("gate", "up", "down"))
        x = x + (torch.nn.functional.silu(h @ gate.T) * (h @ up.T)) @ down.T
    return norm(x, w["model.norm.weight"]) @ w["lm_head.weight"].T


def test_a_llama_in_float64_is_one_written_out_in_float64():
    """Rotary tables, norms and softmaxes included: one of them left in float32 would show at 1e-7."""
    subject, ids = tiny_subject("llama"), tokens(2, LENGTH)
    wanted = llama_by_hand(subject.model, ids)
    with subject.in_precision(torch.float64):
        found = subject.run(ids, ROWS, None).vocabulary
    assert float((found - wanted).abs().max() / wanted.abs().max()) < 1e-13


@pytest.mark.parametrize("architecture", ["gptj", "codegen"])
def test_tables_of_positions_are_computed_again(architecture):
    subject = tiny_subject(architecture)
    angles = np.arange(256)[:, None] / 10000 ** (np.arange(0, 4, 2) / 4)
    wanted = torch.from_numpy(np.concatenate([np.sin(angles), np.cos(angles)], 1))

    def table() -> Tensor:
        return subject.layout.attentions[1].embed_positions

    assert float((table().double() - wanted).abs().max()) > 1e-9
    with subject.in_precision(torch.float64):
        assert float((table() - wanted).abs().max()) < 1e-12


def test_a_table_that_no_one_can_compute_again_is_named():
    subject = tiny_subject("llama")
    subject.layout.blocks[1].register_buffer("mystery", torch.tensor([0.1]), persistent=False)
    with subject.in_precision(torch.float64) as widening:
        assert widening.narrow == {"model.layers.1.mystery"}
        assert subject.layout.blocks[1].mystery.dtype == torch.float64


class Picky(torch.nn.Module):
    """A layer whose kernel does not know float64."""

    def forward(self, x: Tensor) -> Tensor:
        if x.dtype == torch.float64:
            raise RuntimeError('"picky_kernel" not implemented for Double.\nand a second line')
        return x.tanh()


def test_a_model_that_does_not_run_in_float64_is_refused_with_the_reason_and_is_as_it_was():
    model = tiny_model("llama")
    model.model.layers[2].mlp.act_fn = Picky()
    subject = Subject(model, tiny_tokenizer(), "picky")
    before = everything(subject)
    wanted = r'^picky cannot be computed in float64 on cpu: "picky_kernel" not implemented for Double\.$'
    with pytest.raises(CannotWiden, match=wanted), subject.in_precision(torch.float64):
        pass
    assert_as_before(subject, before)


class NoBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        if gradient.dtype == torch.float64:
            raise RuntimeError("no backward in Double")
        return gradient


class OneWay(torch.nn.Module):
    """A layer whose kernel has no backward pass in float64."""

    def forward(self, x: Tensor) -> Tensor:
        return NoBackward.apply(x)


def test_a_model_that_cannot_be_trained_in_float64_is_refused_too():
    model = tiny_model("llama")
    model.model.layers[1].mlp.act_fn = OneWay()
    subject = Subject(model, tiny_tokenizer(), "one-way")
    with pytest.raises(CannotWiden, match="no backward in Double"), subject.in_precision(torch.float64):
        pass


def test_an_exception_inside_leaves_the_model_as_it_was():
    subject = tiny_subject("gpt-oss")
    before, experts = everything(subject), subject.model.config._experts_implementation
    with pytest.raises(KeyboardInterrupt), subject.in_precision(torch.float64):
        assert subject.dtype == torch.float64
        assert subject.model.config._experts_implementation == "eager"
        raise KeyboardInterrupt
    assert_as_before(subject, before)
    assert subject.model.config._experts_implementation == experts


@pytest.mark.slow
def test_the_first_layers_attention_to_the_query_does_not_change_by_reading(smollm2):
    """Layer 0 sees only tokens and distances: what float32 finds there is rounding, which float64 does not share."""
    from iclgd.metrics.likeness import sim_am_delta

    ids = [*range(100, 130)]
    context = [*range(1000, 1400)]

    def update() -> tuple[Tensor, Tensor]:
        given = smollm2.tensor([ids])
        rows = torch.tensor([[len(ids) - 1]])
        zero, icl = (smollm2.run(given, rows, smollm2.encode(c)).logits[:, :, 0] for c in ([1], [1, *context]))
        return zero.double(), icl.double()

    zero, icl = update()
    with smollm2.in_precision(torch.float64):
        zero_wide, icl_wide = update()
    alike = sim_am_delta(zero, icl, zero + (icl_wide - zero_wide))
    assert float((icl_wide - zero_wide)[:, 0].abs().max()) < 1e-9 < float((icl - zero)[:, 0].abs().max())
    assert abs(float(alike[0, 0])) < 0.5
    assert float(alike[0, 1:].min()) > 0.99
