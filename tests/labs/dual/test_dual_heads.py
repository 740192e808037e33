"""The dual on the heads of language models, small and random here, real in the slow test."""

import copy
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from iclgd.choices import parse_one
from iclgd.errors import Refusal
from iclgd.labs.dual.bound import DELTA, best_split, head_bound, sweep
from iclgd.labs.dual.features import gram_root
from iclgd.labs.dual.heads import (
    ERROR,
    Layer,
    _layer,
    dual_of_layer,
    features_needed,
    layers,
    owners,
    participation,
    read,
)
from iclgd.labs.dual.model import softmax_dual
from iclgd.labs.dual.modifications import MODIFICATIONS
from iclgd.labs.dual.modified import Modification
from iclgd.labs.dual.pretrained import ModifiedHeads, ModifiedInContext, with_adapters
from iclgd.learners.prompted import InContext
from iclgd.models.capture import Tape
from iclgd.models.subject import Subject
from iclgd.prompts import Demo, Prompts, build_prompts
from iclgd.spec import EpisodeSpec, PromptSpec
from iclgd.tasks.episodes import load_episode
from tiny import REGISTERED, tiny_model, tiny_subject

PROMPTS = Prompts(
    bos=(0,),
    demos=tuple(Demo((5 + i, 9, 12 + i, 20 + i % 2), (20 + i % 2,)) for i in range(5)),
    separator=(3,),
    queries=((7, 9, 11), (8, 30, 9, 14)),
    labels=((20,), (21,)),
    answers=(0, 1),
    blanks=((9, 11),),
)


def tiny(name: str, scale: float = 1.0) -> Subject:
    """A small random model in float64; ``scale`` spreads its scores."""
    model = tiny_model(name, dtype=torch.float64)
    if name == "gpt-oss":
        model.set_experts_implementation("eager")  # the fast one does not know float64
    subject = Subject(model, None, name)
    with torch.no_grad():
        for slot in subject.layout.slots("qkv"):
            slot.parameter.mul_(scale)
    return subject


def made(text: str, subject: Subject) -> Modification:
    return with_adapters(parse_one(text, MODIFICATIONS).make(), subject)


@pytest.mark.parametrize("name", REGISTERED)
@pytest.mark.parametrize("scale", [1.0, 20.0])
def test_every_head_is_its_zero_shot_part_plus_one_gradient_step(name: str, scale: float) -> None:
    subject = tiny(name, scale)
    found = read(subject, PROMPTS, PROMPTS.queries[0], sizes=(8,))
    assert found.residual.shape == (3, 4)
    assert found.residual.max() <= 1e-12
    there = found.share > 1e-100  # with scores this far apart some heads give the demonstrations nothing at all
    assert torch.allclose(found.contributions.sum(-1)[there], torch.ones(1, dtype=torch.float64))
    assert found.contributions.isfinite().all()
    assert ((found.share >= 0) & (found.share <= 1)).all()
    assert found.random.isfinite().all() == (name != "gemma2")  # capped scores are not k·q


@pytest.mark.parametrize("name", [name for name in REGISTERED if name != "gemma2"])  # capped
def test_the_dual_of_a_head_has_the_kernel_of_its_own_keys(name: str) -> None:
    """φ(k_i)·φ(k_j) = exp(k_i·k_j) and φ(k_i)·φ(q) = exp(k_i·q): nothing of the model's scores is used."""
    for layer in layers(tiny(name), PROMPTS, PROMPTS.queries[0]):
        dual, own = dual_of_layer(layer)
        assert own
        keys = layer.keys[:, layer.demos]
        gram = torch.exp(keys @ keys.mT)
        assert ((dual.inputs @ dual.inputs.mT - gram).abs() <= 1e-11 * gram.amax()).all()
        wanted = torch.exp((keys @ layer.query[..., None])[..., 0])
        assert ((dual.inputs @ dual.test[..., None])[..., 0] / wanted - 1).abs().max() <= 1e-11


def test_keys_too_long_for_their_own_kernel_have_another_and_the_reading_says_so() -> None:
    assert read(tiny("llama"), PROMPTS, PROMPTS.queries[0], sizes=(8,)).own.all()
    long = read(tiny("llama", 60.0), PROMPTS, PROMPTS.queries[0], sizes=(8,))
    assert not long.own.all()
    assert long.residual.max() <= 1e-12


def test_moving_all_keys_changes_no_weight_and_makes_random_features_cheaper() -> None:
    layer = layers(tiny("llama", 8.0), PROMPTS, PROMPTS.queries[0])[0]
    mean = (layer.weights[..., None] * layer.keys).sum(1)
    moved = layer.keys - (mean + layer.query)[:, None]
    weights = (moved @ layer.query[..., None])[..., 0].softmax(-1)
    assert (weights - layer.weights).abs().max() <= 1e-12
    assert features_needed(layer, moved).mean() < features_needed(layer, layer.keys).mean()


def test_the_features_needed_are_those_of_the_variance() -> None:
    layer = layers(tiny("llama"), PROMPTS, PROMPTS.queries[0])[0]
    top = layer.scores.argmax(-1)
    for head, log in enumerate(features_needed(layer, layer.keys)):
        variance = torch.expm1((layer.keys[head, top[head]] + layer.query[head]).square().sum())
        assert float(log) == pytest.approx(max(0.0, float(torch.log10(variance / ERROR**2))), abs=1e-9)


def test_a_sliding_window_leaves_out_what_it_hides() -> None:
    near, far, _ = layers(tiny("gemma3"), PROMPTS, PROMPTS.queries[0])
    assert (near.scores.shape[1], far.scores.shape[1]) == (8, len(PROMPTS.context) + 3)
    assert near.owner.tolist() == owners(PROMPTS, PROMPTS.queries[0])[-8:].tolist()


def test_a_demonstration_owns_its_separator_and_bos_belongs_to_the_query() -> None:
    assert owners(PROMPTS, (7, 9)).tolist() == [-1] + [i for i in range(5) for _ in range(5)] + [-1, -1]


def test_participation_counts_equal_values() -> None:
    assert float(participation(torch.tensor([2.0, 2.0, 2.0, 0.0]))) == pytest.approx(3)
    assert float(participation(torch.tensor([1.0, 0.0]))) == pytest.approx(1)


def test_keeping_heads_changes_no_number() -> None:
    subject = tiny("llama")
    ids = subject.tensor([PROMPTS.context])
    rows = torch.tensor([[4]])
    bare, kept = Tape(rows), Tape(rows, heads={})
    with torch.no_grad():
        assert torch.equal(subject.model(ids, tape=bare).logits, subject.model(ids, tape=kept).logits)


def test_heads_behind_a_shared_prefix_are_the_heads_of_the_whole_prompt() -> None:
    subject, query = tiny("llama"), PROMPTS.queries[0]
    prefix = subject.encode(PROMPTS.context)
    tape = Tape(torch.tensor([[len(query) - 1]]), prefix, heads={})
    with torch.no_grad():
        subject.model(subject.tensor([query]), past_key_values=subject._cache(prefix, 1), use_cache=True, tape=tape)
    for index, whole in enumerate(layers(subject, PROMPTS, query)):
        behind = _layer(tape.heads[index], owners(PROMPTS, query))
        for name in ("scores", "keys", "query", "values", "output"):
            assert torch.allclose(getattr(behind, name), getattr(whole, name), atol=1e-12)


CHANGES = ("plain", "regularised", "regularised-slide", "negative:k=2:beta=0.5", "augmented:c=0.5")


@pytest.mark.parametrize("name", ["llama", "gemma2", "gpt-oss"])
@pytest.mark.parametrize("text", CHANGES)
def test_a_modified_head_is_the_gradient_step_of_its_modified_dual(name: str, text: str) -> None:
    subject, query = tiny(name), PROMPTS.queries[0]
    modification = made(text, subject)
    ids = subject.tensor([PROMPTS.context + query])
    heads = ModifiedHeads(modification, len(PROMPTS.bos), len(PROMPTS.context))
    tape = Tape(torch.tensor([[ids.shape[1] - 1]]), heads={}, modification=heads)
    with torch.no_grad():
        subject.model(ids, use_cache=False, tape=tape)
    for kept in tape.heads.values():
        layer = _layer(kept, owners(PROMPTS, query))
        plain = softmax_dual(layer.scores, layer.keys, layer.values, layer.demos, layer.sinks)
        dual = modification.dual(plain, layer.values[:, -1])
        assert (dual.predict(dual.step()) - layer.output).norm() <= 1e-12 * layer.output.norm()


@pytest.mark.parametrize("name", ["llama", "gpt2", "gemma2", "gpt-oss"])
def test_strength_zero_is_the_unmodified_model_bit_for_bit(name: str) -> None:
    subject = tiny(name)
    with InContext().learn(subject, PROMPTS) as predictor:
        plain = predictor.trace(PROMPTS)
    for text in ("plain", "regularised:alpha=0", "regularised-slide:alpha=0", "negative:beta=0", "augmented:c=0"):
        with ModifiedInContext(made(text, subject)).learn(subject, PROMPTS) as predictor:
            changed = predictor.trace(PROMPTS)
        assert torch.equal(plain.scores, changed.scores), text
        assert torch.equal(plain.outputs, changed.outputs), text


@pytest.mark.parametrize("text", CHANGES[1:])
def test_a_modification_of_some_strength_changes_the_model(text: str) -> None:
    subject = tiny("llama")
    with InContext().learn(subject, PROMPTS) as predictor:
        plain = predictor.trace(PROMPTS)
    with ModifiedInContext(made(text, subject)).learn(subject, PROMPTS) as predictor:
        assert not torch.equal(plain.scores, predictor.trace(PROMPTS).scores)


def test_a_model_that_ignores_the_registered_function_is_refused() -> None:
    subject = tiny_subject("bloom")
    with pytest.raises(Refusal, match="use another model"):
        read(subject, PROMPTS, PROMPTS.queries[0])
    with pytest.raises(Refusal, match="not changed here"):
        subject.run(subject.tensor([[1, 2]]), torch.tensor([[1]]), None, ModifiedHeads(Modification(), 0, 0))


def test_without_demonstrations_there_is_nothing_to_read() -> None:
    with pytest.raises(Refusal, match="raise `k`"):
        read(tiny("llama"), replace(PROMPTS, demos=()), PROMPTS.queries[0])


@given(st.integers(0, 2**20), st.integers(1, 5), st.integers(1, 3), st.integers(1, 6), st.sampled_from([1.0, 2.0, 4.0]))
@settings(deadline=None, max_examples=30)
def test_the_bound_is_computed_from_the_dual_itself(seed: int, demos: int, own: int, dim: int, split: float) -> None:
    """Every quantity of theorem 3.2 from explicit features and weights, where they can be written down."""
    g = torch.Generator().manual_seed(seed)
    keys, values, query = (torch.randn(*s, generator=g, dtype=torch.float64) for s in [(9, dim), (9, dim), (dim,)])
    keys, total = keys / 2, demos + own
    scores = keys[:total] @ query
    owner = torch.tensor([0] * demos + [-1] * own)
    layer = Layer(scores[None], keys[None, :total], query[None], values[None, :total], None, query[None], owner)
    held = slice(total, None)
    found = head_bound(layer, keys[None, held], values[None, held], split)

    phi = gram_root(torch.cat([query[None] * split, keys[:total] / split, keys[held] / split]))[1:]
    trained = values[:total].T @ phi[:total] / scores.exp().sum()
    answers, labels = phi @ trained.T, torch.cat([values[:total], values[held]])
    loss = -(answers * labels).sum(-1)
    gap = (loss[total:].mean() - loss[:demos].mean()).abs()
    inside = torch.cat([torch.arange(demos), torch.arange(total, len(phi))])
    radius = torch.maximum(labels[inside].norm(dim=-1).max(), answers[inside].norm(dim=-1).max())
    trace = phi[:demos].square().sum()
    bound = trained.norm() * radius * dim * trace.sqrt() / demos
    bound = bound + (torch.log(torch.tensor(1 / DELTA, dtype=torch.float64)) / demos).sqrt()
    wanted = {"trace": trace, "weight": trained.norm(), "radius": radius, "bound": bound}
    for name, value in wanted.items():
        assert torch.allclose(10 ** getattr(found, name)[0], value, rtol=1e-6), name
    assert torch.allclose(10 ** found.gap[0], gap, rtol=1e-6, atol=1e-9 * float(loss.abs().max()))


def test_the_best_split_is_no_worse_than_the_heads_own() -> None:
    subject = tiny("llama")
    for layer in layers(subject, PROMPTS, PROMPTS.queries[0]):
        out = layer.owner == 4
        pair = layer.keys[:, out], layer.values[:, out]
        assert (best_split(layer, *pair).bound <= head_bound(layer, *pair).bound).all()


def test_a_sweep_covers_the_counts_asked_for_and_refuses_too_many() -> None:
    found = sweep(tiny("llama"), PROMPTS, PROMPTS.queries[0], (1, 3), held=2)
    assert [own.tokens.unique().tolist() for own, _ in found.values()] == [[5], [15]]
    assert found[3][0].bound.shape == (3, 4)
    with pytest.raises(Refusal, match="raise `k`"):
        sweep(tiny("llama"), PROMPTS, PROMPTS.queries[0], (4,), held=2)


@pytest.mark.slow
@pytest.mark.parametrize("task", ["sentiment", "kinds", "continents"])
def test_every_head_of_the_embedded_model_is_one_gradient_step(smollm2: Subject, task: str) -> None:
    """All 270 heads, 8 demonstrations: relative residual at most 1e-9."""
    episode = load_episode(task, EpisodeSpec(k=8, queries=2))
    prompts = build_prompts(smollm2.tokenizer, episode, PromptSpec(), smollm2.room)
    subject = Subject(copy.deepcopy(smollm2.model).double(), smollm2.tokenizer, smollm2.name)
    for query in prompts.queries:
        assert read(subject, prompts, query, sizes=(16,)).residual.max() <= 1e-9


@pytest.mark.slow
def test_strength_zero_is_the_embedded_model_bit_for_bit(smollm2: Subject) -> None:
    episode = load_episode("sentiment", EpisodeSpec(k=8, queries=4))
    prompts = build_prompts(smollm2.tokenizer, episode, PromptSpec(), smollm2.room)
    with InContext().learn(smollm2, prompts) as predictor:
        plain = predictor.trace(prompts)
    for text in ("regularised:alpha=0", "regularised-slide:alpha=0", "negative:beta=0", "augmented:c=0"):
        with ModifiedInContext(made(text, smollm2)).learn(smollm2, prompts) as predictor:
            assert torch.equal(plain.scores, predictor.trace(prompts).scores), text
