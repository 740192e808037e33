"""Captured attention is the model's own attention, for every architecture."""

from typing import Any

import pytest
import torch
from torch import Tensor

from iclgd.errors import Refusal
from iclgd.models.subject import Subject
from iclgd.models.traces import Predictor
from iclgd.prompts import Prompts
from tiny import ARCHITECTURES, REGISTERED, tiny_model, tiny_subject, tiny_tokenizer, tokens

LENGTH = 24  # three times the small windows
SINGLE = {"xglm", "gpt-oss"}  # they do not run in float64


def all_rows(ids: Tensor) -> Tensor:
    return torch.arange(ids.shape[1]).expand(len(ids), -1)


def distance(found: Tensor, wanted: Tensor) -> float:
    """The largest ‖found − wanted‖ / ‖wanted‖ of the last axis's vectors."""
    length = torch.linalg.vector_norm(wanted.double(), dim=-1)
    apart = torch.linalg.vector_norm(found.double() - wanted.double(), dim=-1)
    return float((apart / length.clamp_min(1e-12)).max())


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_logits_with_capture_are_exactly_those_of_the_models_own_eager_attention(architecture):
    ids = tokens(3, LENGTH)
    with torch.no_grad():
        own = tiny_model(architecture)(ids).logits
    captured = tiny_subject(architecture).run(ids, all_rows(ids), None)
    assert float((captured.vocabulary - own).abs().max()) == 0


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_layer_is_captured_in_the_way_the_issue_names(architecture):
    subject, ids = tiny_subject(architecture), tokens(2, 5)
    captured = subject.run(ids, all_rows(ids), None)
    config = subject.model.config.get_text_config()
    assert subject.capture == ("registered" if architecture in REGISTERED else "intercepted")
    assert captured.outputs.shape[1] == captured.logits.shape[1] == config.num_hidden_layers
    assert captured.logits.shape[3] == config.num_attention_heads


def window(subject: Subject, layer: int) -> int | None:
    """How far back a layer sees, read from the configuration by hand."""
    config = subject.model.config.get_text_config()
    if config.model_type == "gpt_neo":
        return config.window_size if config.attention_layers[layer] == "local" else None
    kinds = getattr(config, "layer_types", None)
    if config.model_type == "mistral" or (kinds and kinds[layer] == "sliding_attention"):
        return config.sliding_window
    return None


def plain_output(subject: Subject, layer: int, scores: Tensor, values: Tensor) -> Tensor:
    """softmax(scores + mask) values through the output projection: the twin, in float64, written from the papers."""
    length = scores.shape[-1]
    back = torch.arange(length)[:, None] - torch.arange(length)
    seen = (back >= 0) & (back < (window(subject, layer) or length))
    scores = scores.double().transpose(1, 2).masked_fill(~seen, -torch.inf)  # batch head query key
    if subject.model.config.model_type == "gpt_oss":
        sinks = subject.layout.attentions[layer].sinks.double()[None, :, None, None].expand(*scores.shape[:3], 1)
        weights = torch.cat([scores, sinks], -1).softmax(-1)[..., :-1]
    else:
        weights = scores.softmax(-1)
    groups = scores.shape[1] // values.shape[1]
    mixed = weights @ values.double().repeat_interleave(groups, 1)
    joined = mixed.transpose(1, 2).flatten(2)
    out = subject.layout.outs[layer]
    return out(joined.to(out.weight.dtype)).double()


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_captured_scores_and_the_models_values_give_the_captured_attention_output(architecture):
    exact = architecture not in SINGLE
    subject = tiny_subject(architecture, dtype=torch.float64 if exact else torch.float32)
    ids = tokens(2, LENGTH)
    captured = subject.run(ids, all_rows(ids), None)
    with torch.no_grad():
        cache = subject.model(ids, use_cache=True).past_key_values
        # eager attention takes its softmax in float32; the registered function in the model's own precision
        bound = 1e-12 if exact and architecture in REGISTERED else 2e-6
        for layer in range(subject.layout.layers):
            values = whole_values(subject, ids, layer, cache)
            twin = plain_output(subject, layer, captured.logits[:, layer], values)
            assert distance(captured.outputs[:, layer], twin) <= bound, layer


def whole_values(subject: Subject, ids: Tensor, layer: int, cache: Any) -> Tensor:
    """A layer's values of all tokens; a sliding cache keeps only the last ones, so there the prefix is asked."""
    values = cache.layers[layer].values
    if values.shape[2] == ids.shape[1]:
        return values
    rows = [subject.encode(row.tolist()) for row in ids]
    return torch.cat([row.layers[layer][1] for row in rows])


# eager attention, which the intercepted ones run, has its softmax in float32
@pytest.mark.parametrize(
    "architecture, precision",
    [(name, "float32") for name in ARCHITECTURES] + [(name, "float64") for name in REGISTERED if name not in SINGLE],
)
def test_a_shared_prefix_is_the_same_as_the_plain_concatenated_prompt(architecture, precision):
    subject = tiny_subject(architecture, dtype=getattr(torch, precision))
    prefix, queries = tokens(1, LENGTH, seed=1), tokens(3, 7, seed=2)
    whole_ids = torch.cat([prefix.expand(3, -1), queries], 1)
    whole = subject.run(whole_ids, all_rows(whole_ids)[:, LENGTH:], None)
    shared = subject.run(queries, all_rows(queries), subject.encode(prefix[0].tolist()))
    bound = 1e-5 if precision == "float32" else 1e-12
    assert distance(shared.vocabulary, whole.vocabulary) <= bound
    assert distance(shared.outputs, whole.outputs) <= bound
    seen = torch.ones(7, 7, dtype=torch.bool).tril()[None, None, :, None]  # what lies ahead has no score
    own = whole.logits[..., LENGTH:]
    assert distance((shared.logits * seen).flatten(3), (own * seen).flatten(3)) <= bound


@pytest.mark.parametrize("architecture", ["llama", "bloom"])
@pytest.mark.parametrize("length", [20, 80])  # every score in memory; by the fused kernel, where there is one
def test_context_scores_are_of_the_sequences_that_are_named_in_that_order_each_at_its_own_rows(architecture, length):
    subject, queries = tiny_subject(architecture), tokens(3, 7, seed=2)
    prefix = subject.encode(tokens(1, length, seed=1)[0].tolist())
    rows = torch.tensor([[0, 6], [1, 5], [2, 4]])
    every = subject.run(queries, rows, prefix).context
    some = subject.run(queries, rows, prefix, ranked=torch.tensor([2, 0])).context
    torch.testing.assert_close(some, every[[2, 0]])


def mixed_prompts(count: int = 32) -> Prompts:
    ids = tokens(count, 40, seed=3).tolist()
    queries = tuple(tuple(row[: 1 + (7 * i) % 40]) for i, row in enumerate(ids))
    return Prompts((1,), (), (), queries, ((5,), (6,)), (0,) * count)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_trace_does_not_depend_on_what_it_was_batched_with(architecture):
    subject, prompts = tiny_subject(architecture), mixed_prompts()
    predictor = Predictor(subject, subject.encode(tokens(1, 30, seed=4)[0].tolist()))
    alone, together = predictor.trace(prompts, tokens=1), predictor.trace(prompts, tokens=10**6)
    assert distance(together.scores, alone.scores) <= 1e-5
    assert distance(together.outputs, alone.outputs) <= 1e-5
    assert distance(together.logits.flatten(3), alone.logits.flatten(3)) <= 1e-5
    assert torch.equal(alone.keys, together.keys)


def test_the_prefix_is_encoded_once_and_never_copied():
    subject = tiny_subject("llama")
    prefix = subject.encode(list(range(3, 30)))
    before = [(keys.data_ptr(), keys.shape, values.clone()) for keys, values in prefix.layers]
    for batch in (1, 16):
        subject.run(tokens(batch, 4), torch.zeros(batch, 1, dtype=torch.long), prefix)
    for (keys, values), (address, shape, was) in zip(prefix.layers, before, strict=True):
        assert keys.data_ptr() == address
        assert keys.shape == shape
        assert torch.equal(values, was)


class OtherAttention(torch.nn.Module):
    """Attention without a softmax: nothing the lab could look into."""

    def __init__(self, attention: torch.nn.Module):
        super().__init__()
        self.q_proj, self.k_proj, self.v_proj = attention.q_proj, attention.k_proj, attention.v_proj
        self.o_proj, self.layer_idx = attention.o_proj, attention.layer_idx

    def forward(self, hidden_states: Tensor, **_: Any) -> tuple[Tensor, None]:
        return self.o_proj(self.q_proj(hidden_states).tanh()), None


def test_a_model_with_one_layer_that_cannot_be_captured_is_refused_by_name():
    model = tiny_model("llama")
    model.model.layers[1].self_attn = OtherAttention(model.model.layers[1].self_attn)
    with pytest.raises(Refusal, match="LlamaForCausalLM cannot be captured"):
        Subject(model, tiny_tokenizer(), "other")


def test_a_model_whose_attention_does_more_than_the_registered_function_is_not_captured_by_it(monkeypatch):
    """The registered function would see every layer and measure another model, so interception takes its place."""
    model = tiny_model("gpt2")
    from transformers.models.gpt2 import modeling_gpt2

    eager = modeling_gpt2.eager_attention_forward

    def twisted(module, query, key, value, mask, **kwargs):
        output, weights = eager(module, query, key * 1.5, value, mask, **kwargs)
        return output.tanh() * 3, weights

    monkeypatch.setattr(modeling_gpt2, "eager_attention_forward", twisted)
    subject = Subject(model, tiny_tokenizer(), "twisted")
    assert subject.capture == "intercepted"


def test_a_model_of_unknown_make_is_refused_by_name():
    from transformers import BertConfig, BertLMHeadModel

    config = BertConfig(vocab_size=50, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8)
    with pytest.raises(Refusal, match="BertLMHeadModel is not supported"):
        Subject(BertLMHeadModel(config), tiny_tokenizer(), "bert")


def test_a_model_that_gives_nan_is_refused():
    model = tiny_model("gpt2")
    model.transformer.h[0].mlp.c_fc.weight.data.fill_(3e38)
    with pytest.raises(Refusal, match="gives NaN or infinite numbers in float32"):
        Subject(model, tiny_tokenizer(), "overflowing")


def test_a_precision_the_model_does_not_run_in_is_refused_by_name():
    with pytest.raises(Refusal, match="xglm cannot run in float64 on cpu"):
        tiny_subject("xglm", dtype=torch.float64)


def test_attention_weights_behind_a_prefix_count_sinks_and_windows_once():
    """A gpt-oss layer with a window narrower than the query sees nothing of the prefix at the query's end."""
    subject = tiny_subject("gpt-oss")
    queries, rows = tokens(1, 12), torch.tensor([[11]])
    outputs = [subject.run(queries, rows, subject.encode(tokens(1, 9, seed=s)[0].tolist())).outputs for s in (1, 2)]
    assert distance(outputs[0][:, 0], outputs[1][:, 0]) <= 1e-5  # layer 0: window of 8
    assert distance(outputs[0][:, 1], outputs[1][:, 1]) > 1e-3  # layer 1: sees everything
