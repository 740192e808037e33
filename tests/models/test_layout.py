"""Where keys and values live, proved by what depends on what."""

import pytest
import torch

from iclgd.models.layout import Layout, Part, Slot
from iclgd.models.subject import Subject
from tiny import ARCHITECTURES, tiny_model, tiny_subject, tiny_tokenizer, tokens


def reached(slots: list[Slot], target: torch.Tensor) -> list[torch.Tensor]:
    """For each slot's parameter, which of its output entries the target depends on."""
    parameters = [slot.parameter for slot in slots]
    found = torch.autograd.grad(target, parameters, allow_unused=True)
    marks = []
    for slot, gradient in zip(slots, found, strict=True):
        gradient = torch.zeros_like(slot.parameter) if gradient is None else gradient
        others = [axis for axis in range(gradient.ndim) if axis != slot.axis]
        marks.append((gradient != 0).any(dim=others) if others else gradient != 0)
    return marks


def first_keys_and_values(model) -> torch.Tensor:
    """A number that depends on every key and value entry of the first layer, and on nothing else of it."""
    cache = model(tokens(2, 6), use_cache=True).past_key_values
    random = torch.Generator().manual_seed(5)
    keys, values = cache.layers[0].keys, cache.layers[0].values
    return sum((states * torch.randn(states.shape, generator=random)).sum() for states in (keys, values))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_kv_slots_are_exactly_the_entries_that_keys_and_values_depend_on(architecture):
    model = tiny_model(architecture)
    layout = Layout(model)
    slots = {slot.name: slot for slot in layout.slots("qkv") if slot.layer == 0}
    kept = {slot.name: slot for slot in layout.slots("kv") if slot.layer == 0}
    marks = dict(zip(slots, reached(list(slots.values()), first_keys_and_values(model)), strict=True))
    assert set(kept) <= set(slots)
    for name, depends in marks.items():
        slot = kept.get(name)
        if slot is None:
            assert not depends.any(), f"{name} is a query's, yet keys or values depend on it"
        else:
            wanted = torch.ones_like(depends) if slot.keep is None else slot.keep.bool()
            assert torch.equal(depends, wanted), name


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_step_on_the_kv_slots_moves_keys_and_values_but_no_query(architecture):
    subject, ids = tiny_subject(architecture), tokens(1, 6)
    before = subject.encode(ids[0].tolist())
    queries = query_directions(subject, ids)
    with subject.training("kv") as slots, torch.no_grad():
        for slot in slots:
            if slot.layer == 0:
                slot.parameter.add_(slot.restrict(torch.full_like(slot.parameter, 0.1)))
        after = subject.encode(ids[0].tolist())
        assert not torch.equal(before.layers[0][0], after.layers[0][0])
        assert not torch.equal(before.layers[0][1], after.layers[0][1])
        assert torch.equal(query_directions(subject, ids), queries)


def query_directions(subject: Subject, ids: torch.Tensor) -> torch.Tensor:
    """The query entries of the first layer's projection, as the module gives them."""
    kept: list[torch.Tensor] = []
    attention = subject.layout.attentions[0]
    names = subject.layout.names
    module = attention.get_submodule(names.separate[0] if names.separate else names.fused[0])
    handle = module.register_forward_hook(lambda _m, _a, out: kept.append(out))
    try:
        subject.encode(ids[0].tolist())
    finally:
        handle.remove()
    if names.separate:
        return kept[0]
    entries = next(slot.keep for slot in subject.layout.slots("kv") if slot.keep is not None).bool()
    return kept[0][..., ~entries]


def disturb(subject: Subject, part: Part) -> None:
    with subject.training(part) as slots:
        assert all(slot.parameter.requires_grad for slot in slots)
        with torch.no_grad():
            for slot in slots:
                slot.parameter.mul_(1.1).add_(1e-3)
        raise KeyboardInterrupt


@pytest.mark.parametrize("architecture", ["llama", "gpt2", "gpt-neox", "falcon-groups"])
@pytest.mark.parametrize("part", ["kv", "qkv", "attention", "all"])
def test_weights_are_restored_bit_for_bit_after_an_exception(architecture, part):
    subject = tiny_subject(architecture)
    before = {name: p.clone() for name, p in subject.model.named_parameters()}
    with pytest.raises(KeyboardInterrupt):
        disturb(subject, part)
    for name, parameter in subject.model.named_parameters():
        assert torch.equal(parameter, before[name]), name
        assert not parameter.requires_grad
        assert parameter.grad is None


def test_all_slots_are_every_parameter_once():
    model = tiny_model("gpt2")  # its embedding is tied to its unembedding
    slots = Layout(model).slots("all")
    assert {id(slot.parameter) for slot in slots} == {id(p) for p in model.parameters()}
    assert len(slots) == len(list(model.parameters()))


def test_attention_slots_are_everything_inside_the_attention_modules():
    model = tiny_model("qwen3")
    names = {slot.name for slot in Layout(model).slots("attention")}
    assert {"0.q_proj.weight", "0.o_proj.weight", "2.k_norm.weight"} <= names
    assert not any("mlp" in name for name in names)


def test_restrict_keeps_the_gradient_inside_the_slot_only():
    slot = next(slot for slot in Layout(tiny_model("gpt2")).slots("kv") if slot.parameter.ndim == 2)
    restricted = slot.restrict(torch.ones_like(slot.parameter))
    assert restricted[:, :32].eq(0).all()  # queries
    assert restricted[:, 32:].eq(1).all()  # keys and values


@pytest.mark.parametrize(
    "architecture, words",
    [("llama", "k_proj and v_proj"), ("gpt2", "c_attn (second and third thirds)"), ("phi3", "qkv_proj")],
)
def test_the_layout_says_in_words_where_k_and_v_live(architecture, words):
    assert words in Layout(tiny_model(architecture)).projections()


@pytest.mark.parametrize(
    "architecture, heads", [("llama", 2), ("gpt2", 4), ("falcon-heads", 4), ("falcon-multi-query", 1), ("gemma3", 2)]
)
def test_key_heads_are_counted_as_the_cache_has_them(architecture, heads):
    subject = Subject(tiny_model(architecture), tiny_tokenizer(), architecture)
    assert subject.layout.key_heads == heads == subject.encode([1, 2]).layers[0][0].shape[1]


@pytest.mark.parametrize("architecture", ["llama", "gpt2", "opt", "gemma3"])
def test_the_part_called_down_is_the_weight_of_each_mlp_s_last_map_and_nothing_else(architecture):
    layout = tiny_subject(architecture).layout
    slots = layout.slots("down")
    assert [slot.layer for slot in slots] == list(range(layout.layers))
    for slot, block in zip(slots, layout.blocks, strict=True):
        inside = [module.weight for module in block.modules() if getattr(module, "weight", None) is not None]
        assert sum(slot.parameter is weight for weight in inside) == 1
        assert slot.keep is None
        assert sorted(slot.parameter.shape)[0] == layout.config.hidden_size  # the other side is the MLP's inside
        assert slot.parameter.shape[0 if architecture == "gpt2" else 1] > layout.config.hidden_size
