"""Runs of a prompt's last token behind all that stands before it, edited in layers and heads."""

import pytest
import torch

from iclgd.models.heads import written_by
from iclgd.models.last_token import SITES, Edits, LastToken, read_on
from tiny import ARCHITECTURES, tiny_subject, tokens

CONTEXT, QUERY = tuple(tokens(1, 6, 1)[0].tolist()), tuple(tokens(1, 4, 2)[0].tolist())


def whole_text(subject, layer, site, change):
    """Next-token logits of context and query in one pass without a cache, with one module changed at the last token."""
    ids = subject.tensor([CONTEXT + QUERY])

    def at_end(given):
        given = given.clone()
        given[:, -1] = change(given[:, -1])
        return given

    def after(_module, _args, output):
        return at_end(output) if isinstance(output, torch.Tensor) else (at_end(output[0]), *output[1:])

    if site == "heads":
        handle = subject.layout.outs[layer].register_forward_pre_hook(lambda _m, args: (at_end(args[0]), *args[1:]))
    else:
        modules = subject.layout.outs if site == "attention" else subject.layout.blocks
        handle = modules[layer].register_forward_hook(after)
    try:
        return subject.own_logits(ids)[0, -1]
    finally:
        handle.remove()


@pytest.mark.parametrize("architecture", sorted(ARCHITECTURES))
def test_an_edit_is_what_a_hook_on_the_whole_text_does(architecture):
    subject = tiny_subject(architecture)
    last = LastToken(subject, subject.encode(CONTEXT), QUERY)
    plain, heads, layers = last.plain(), subject.layout.heads, subject.layout.layers
    torch.testing.assert_close(plain.logits[0], subject.own_logits(subject.tensor([CONTEXT + QUERY]))[0, -1])
    for site in SITES:
        own = getattr(plain, site)
        units, values = (heads if site == "heads" else 1), own + torch.randn(own.shape)
        where = torch.zeros(2, layers, units, dtype=torch.bool)
        where[0, 1, units - 1] = where[1, 0] = True
        size = own.shape[-1] // units

        def one_unit(given, values=values, size=size):
            return torch.cat([given[:, :-size], values[:, 1, -size:]], -1)

        found = last.edited(Edits(site, where, values))
        torch.testing.assert_close(found[0], whole_text(subject, 1, site, one_unit), rtol=1e-4, atol=1e-4)
        every = whole_text(subject, 0, site, lambda given, values=values: values[:, 0])
        torch.testing.assert_close(found[1], every, rtol=1e-4, atol=1e-4)
        assert not torch.allclose(found[0], plain.logits[0], atol=1e-3)


def test_many_edits_are_run_in_batches_each_with_its_own_values(monkeypatch):
    subject = tiny_subject("llama")
    last = LastToken(subject, subject.encode(CONTEXT), QUERY)
    values = torch.randn(7, 3, 32)
    where = torch.ones(7, 3, 1, dtype=torch.bool)
    whole = last.edited(Edits("attention", where, values))
    monkeypatch.setattr("iclgd.models.last_token.AT_ONCE", 3)
    torch.testing.assert_close(last.edited(Edits("attention", where, values)), whole)
    assert whole.std(0).min() > 0


def test_reading_on_is_reading_both_at_once():
    subject = tiny_subject("gemma3")
    one, other = read_on(subject, subject.encode(CONTEXT), QUERY), subject.encode(CONTEXT + QUERY)
    assert one.length == other.length == 10
    for (keys, values), (their_keys, their_values) in zip(one.layers, other.layers, strict=True):
        torch.testing.assert_close(keys, their_keys)
        torch.testing.assert_close(values, their_values)
    assert read_on(subject, other, ()) is other
    assert read_on(subject, None, CONTEXT).length == 6
    assert read_on(subject, None, ()) is None


def test_a_query_of_one_token_without_a_context_has_nothing_before_it():
    subject = tiny_subject("llama", bos=False)
    last = LastToken(subject, None, (7,))
    torch.testing.assert_close(last.plain().logits[0], subject.own_logits(subject.tensor([(7,)]))[0, -1])


@pytest.mark.parametrize("architecture", sorted(ARCHITECTURES))
def test_all_heads_of_all_layers_write_what_attention_adds_to_the_stream(architecture):
    """With MLPs silenced, the last block's output is the embedding and what every head wrote."""
    subject = tiny_subject(architecture)
    biases = [p for n, p in subject.model.named_parameters() if n.endswith(("bias", "bias_o"))]
    with torch.no_grad():
        for bias in biases:
            bias.zero_()
    silence_mlps(subject)
    start = []

    def keep(_module, args, kwargs):
        start.append((args[0] if args else kwargs["hidden_states"]).reshape(-1))

    last = LastToken(subject, subject.encode(CONTEXT), QUERY)
    handle = subject.layout.blocks[0].register_forward_pre_hook(keep, with_kwargs=True)
    plain = last.plain()
    handle.remove()
    chosen = torch.ones(subject.layout.layers, subject.layout.heads, dtype=torch.bool)
    ended = start[0] + written_by(subject, plain.heads[0], chosen)
    torch.testing.assert_close(ended, plain.blocks[0, -1], rtol=1e-4, atol=1e-4)
    some = chosen.clone()
    some[1, 2] = False
    alone = written_by(subject, plain.heads[0], ~some)
    assert alone.norm() > 1e-3
    torch.testing.assert_close(
        written_by(subject, plain.heads[0], some) + alone, written_by(subject, plain.heads[0], chosen)
    )


def silence_mlps(subject):
    """Every map of a block that is not attention's gives nothing; norms stay."""
    with torch.no_grad():
        for block, attention in zip(subject.layout.blocks, subject.layout.attentions, strict=True):
            inside = {id(parameter) for parameter in attention.parameters()}
            for parameter in block.parameters():
                if parameter.ndim > 1 and id(parameter) not in inside:
                    parameter.zero_()
