"""The dual on the heads of language models, small and random here, real in the slow test."""

import copy
from dataclasses import replace

import pytest
import torch

from iclgd.choices import parse_one
from iclgd.errors import Refusal
from iclgd.labs.dual.features import directions, random_scores
from iclgd.labs.dual.heads import (
    ERROR,
    LayerHeads,
    analyse,
    analyse_features,
    analyse_group,
    dual_of_group,
    features_needed,
    label_tokens,
    layer_heads,
    layers,
    moved_keys,
    owners,
    participation,
    with_sink,
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


def made(text: str, subject: Subject) -> Modification:
    return with_adapters(parse_one(text, MODIFICATIONS).make(), subject)


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


@pytest.mark.parametrize("name", REGISTERED)
@pytest.mark.parametrize("scale", [1.0, 20.0])
def test_every_head_is_its_zero_shot_part_plus_one_gradient_step(name: str, scale: float) -> None:
    subject = tiny(name, scale)
    found = analyse(subject, PROMPTS, PROMPTS.queries[0], sizes=(8,))
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
        for group in layer.groups():
            dual, own, _ = dual_of_group(group)
            assert own
            keys = group.keys[:, group.demos]
            gram, all_keys = torch.exp(keys @ keys.mT), group.keys.square().sum(-1) / 2
            key_unit, query_unit = torch.exp(all_keys.amax(-1)), torch.exp(group.query.square().sum(-1) / 2)
            got = dual.inputs @ dual.inputs.mT * key_unit[:, None, None] ** 2
            assert ((got - gram).abs() <= 1e-11 * gram.amax()).all()
            wanted = torch.exp((keys @ group.query[..., None])[..., 0])
            got = (dual.inputs @ dual.test[..., None])[..., 0] * (key_unit * query_unit)[:, None]
            assert (got / wanted - 1).abs().max() <= 1e-11
            whole = torch.exp((group.keys @ group.query[..., None])[..., 0]).sum(-1)
            if group.sinks is not None:
                whole = whole + torch.exp(group.sinks)
            assert (dual.denominator * key_unit * query_unit / whole - 1).abs().max() <= 1e-11


@pytest.mark.parametrize("scale", [1.0, 60.0])  # with the heads' own kernels, and without
def test_features_that_are_noise_fail_the_check_though_the_prediction_is_right(
    scale: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    subject, query = tiny("llama", scale), PROMPTS.queries[0]
    right = analyse(subject, PROMPTS, query, sizes=(8,))
    assert right.kernel_residual.max() <= 1e-10
    assert right.holds.all()

    def noise(gram: torch.Tensor) -> torch.Tensor:
        drawn = torch.randn(gram.shape, generator=torch.Generator().manual_seed(0), dtype=gram.dtype)
        return (drawn / drawn.norm(dim=-1, keepdim=True)).tril() + torch.eye(gram.shape[-1])

    monkeypatch.setattr("iclgd.labs.dual.heads.gram_root", noise)
    wrong = analyse(subject, PROMPTS, query, sizes=(8,))
    assert wrong.residual.max() <= 1e-12
    assert wrong.kernel_residual.min() >= 0.1
    assert not wrong.holds.any()


def planted(seed: int = 0, sink: bool = False) -> LayerHeads:
    """Two heads of the same keys: bos, demonstrations of 2 and 3 tokens whose last is the label, two own tokens."""
    g = torch.Generator().manual_seed(seed)
    keys, values = (torch.randn(1, 8, 5, generator=g, dtype=torch.float64).repeat(2, 1, 1) for _ in range(2))
    query = torch.randn(2, 5, generator=g, dtype=torch.float64)
    scores = (keys @ query[..., None])[..., 0]
    sinks = torch.tensor([0.5, -1.0], dtype=torch.float64) if sink else None
    owner = torch.tensor([-1, 0, 0, 1, 1, 1, -1, -1])
    label = torch.tensor([0, 0, 1, 0, 0, 1, 0, 0], dtype=torch.bool)
    output = (with_sink(scores, sinks)[:, None] @ values)[:, 0]
    return LayerHeads(scores, keys, query, values, sinks, output, owner, label, 2)


@pytest.mark.parametrize("sink", [False, True])
def test_the_analysis_of_a_planted_layer_is_known(sink: bool) -> None:
    layer = planted(sink=sink)
    found = analyse_group(layer, 3)
    for head in range(2):
        whole = layer.scores[head].exp().sum() + (layer.sinks[head].exp() if sink else 0)
        weights = layer.scores[head].exp() / whole
        given = weights[:, None] * layer.values[head]
        step, zero = given[1:6].sum(0), given[[0, 6, 7]].sum(0)
        along = given @ step / step.square().sum()
        demos = given[1:6]
        update = sum(
            torch.outer(layer.values[head, i], torch.exp(layer.keys[head] @ layer.keys[head, i])) for i in range(1, 6)
        )
        kernel = torch.exp(layer.keys[head] @ layer.keys[head].T)
        squared = update @ torch.linalg.solve(kernel, update.T)  # ΔW ΔWᵀ D², from what ΔW says at the keys
        wanted = {
            "residual": 0.0,
            "mass": weights[1:6].sum(),
            "share": step.norm() / (step.norm() + zero.norm()),
            "cosine": step @ zero / step.norm() / zero.norm(),
            "span": demos.square().sum() ** 2 / (demos.T @ demos).square().sum(),
            "rank": squared.trace() ** 2 / squared.square().sum(),
            "own": 1.0,
            "first": along[1],
            "labels": along[2] + along[5],
        }
        for name, value in wanted.items():
            assert float(found[name][head]) == pytest.approx(float(value), rel=1e-7, abs=1e-13), name
        assert torch.allclose(found["steps"][head], step)
        parts = torch.stack([along[1:3].sum(), along[3:6].sum(), 0 * along[0]])
        assert torch.allclose(found["contributions"][head], parts)


def test_an_output_that_is_not_the_heads_is_noticed() -> None:
    layer = planted()
    wrong = replace(layer, output=layer.output * 1.001)
    assert analyse_group(wrong, 2)["residual"].tolist() == pytest.approx([0.001 / 1.001] * 2, rel=1e-6)


def test_the_first_token_counts_only_where_the_first_demonstration_is_seen() -> None:
    layer = planted()
    late = replace(layer, owner=torch.tensor([-1, 1, 1, 2, 2, 2, -1, -1]))
    assert analyse_group(late, 3)["first"].tolist() == [0, 0]


def test_scores_that_are_not_products_get_points_and_no_random_features() -> None:
    layer = planted()
    capped = replace(layer, scores=torch.tanh(layer.scores))
    capped = replace(capped, output=(capped.weights[:, None] @ capped.values)[:, 0])
    assert analyse_group(capped, 2)["own"].tolist() == [0, 0]
    assert analyse_group(capped, 2)["residual"].max() <= 1e-13
    draws = [directions(4, 5, torch.Generator().manual_seed(0))]
    assert all(value.isnan().all() for value in analyse_features(capped, draws).values())
    assert all(value.isfinite().all() for value in analyse_features(layer, draws).values())


def test_heads_are_handed_out_by_key_head_in_order() -> None:
    layer = layers(tiny("llama"), PROMPTS, PROMPTS.queries[0])[0]
    assert layer.group == 2
    groups = list(layer.groups())
    assert len(groups) == 2
    for name in ("scores", "keys", "query", "values", "output"):
        assert torch.equal(torch.cat([getattr(group, name) for group in groups]), getattr(layer, name))
    assert all(torch.equal(group.keys[0], group.keys[1]) for group in groups)
    with_sinks = list(replace(layer, sinks=torch.arange(4.0).double()).groups())
    assert [group.sinks.tolist() for group in with_sinks] == [[0, 1], [2, 3]]


@pytest.mark.parametrize("sink", [False, True])
def test_the_error_of_random_features_is_that_of_their_attention(sink: bool) -> None:
    layer, w = planted(sink=sink), directions(6, 5, torch.Generator().manual_seed(1))
    for keys, name in ((layer.keys, "random"), (moved_keys(layer), "moved")):
        found = analyse_features(layer, [w])[name]
        for head in range(2):
            kernel = torch.exp(random_scores(keys[head], layer.query[head], w))
            total = kernel.sum() + (layer.sinks[head].exp() if sink else 0)
            guess = kernel @ layer.values[head] / total
            wanted = (guess - layer.output[head]).norm() / layer.output[head].norm()
            assert float(found[0, head]) == pytest.approx(float(wanted))


@pytest.mark.parametrize("sink", [False, True])
def test_moved_keys_have_their_mean_under_attention_at_minus_the_query(sink: bool) -> None:
    layer = planted(sink=sink)
    weights = layer.scores.softmax(-1)
    mean = (weights[..., None] * moved_keys(layer)).sum(1)
    assert torch.allclose(mean, -layer.query)


def test_label_words_are_the_last_tokens_of_each_demonstration_without_its_separator() -> None:
    two = replace(PROMPTS, demos=(Demo((5, 9, 20, 21), (20, 21)), Demo((6, 30), (30,))))
    assert label_tokens(two, (7, 9)).long().tolist() == [0, 0, 0, 1, 1, 0, 0, 1, 0, 0, 0]
    assert owners(two, (7, 9)).tolist() == [-1, 0, 0, 0, 0, 0, 1, 1, 1, -1, -1]


def test_what_is_captured_is_what_the_prompt_says() -> None:
    """Scores are k·q, the output is the weighted values, and label words stand where they stand."""
    for layer in layers(tiny("llama", 3.0), PROMPTS, PROMPTS.queries[0]):
        assert torch.allclose((layer.keys @ layer.query[..., None])[..., 0], layer.scores, atol=1e-12)
        assert torch.allclose((layer.weights[:, None] @ layer.values)[:, 0], layer.output, atol=1e-12)
        assert layer.label.nonzero()[:, 0].tolist() == [4, 9, 14, 19, 24]


def test_random_features_of_a_query_are_drawn_by_its_seed_and_layer() -> None:
    subject = tiny("llama")
    one, same, other = (analyse(subject, PROMPTS, PROMPTS.queries[0], sizes=(8, 32), seed=s) for s in (0, 0, 1))
    assert one.random.shape == (2, 3, 4)
    assert torch.equal(one.random, same.random)
    assert not torch.equal(one.random, other.random)
    assert torch.equal(one.residual, other.residual)


def test_keys_too_long_for_their_own_kernel_have_another_and_the_analysis_says_so() -> None:
    assert analyse(tiny("llama"), PROMPTS, PROMPTS.queries[0], sizes=(8,)).own.all()
    long = analyse(tiny("llama", 60.0), PROMPTS, PROMPTS.queries[0], sizes=(8,))
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


@pytest.mark.parametrize("rows, dim", [(4, 7), (7, 4)])
def test_participation_counts_directions(rows: int, dim: int) -> None:
    found = torch.zeros(2, rows, dim)
    found[0, range(3), range(3)] = torch.tensor([2.0, -2.0, 2.0])  # three of the same length
    found[1, 0, 0], found[1, 1, 1] = 2.0, 1.0  # λ = 4 and 1: 25/17
    assert participation(found).tolist() == pytest.approx([3, 25 / 17])
    assert participation(found * 1e30).tolist() == pytest.approx([3, 25 / 17])


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
        behind = layer_heads(tape.heads[index], owners(PROMPTS, query), label_tokens(PROMPTS, query))
        for name in ("scores", "keys", "query", "values", "output"):
            assert torch.allclose(getattr(behind, name), getattr(whole, name), atol=1e-12)


MODIFIED = (
    "plain",
    "regularised",
    "regularised-slide",
    "negative:k=2:beta=0.5",
    "arbitrary:k=2:beta=0.5",
    "centred",
    "augmented:c=0.5",
)
AT_ZERO = (
    "regularised:alpha=0",
    "regularised-slide:alpha=0",
    "negative:beta=0",
    "arbitrary:beta=0",
    "centred:beta=0",
    "augmented:c=0",
)


@pytest.mark.parametrize("name", ["llama", "gemma2", "gpt-oss"])
@pytest.mark.parametrize("text", MODIFIED)
def test_a_modified_head_is_the_gradient_step_of_its_modified_dual(name: str, text: str) -> None:
    subject, query = tiny(name), PROMPTS.queries[0]
    modification = made(text, subject)
    ids = subject.tensor([PROMPTS.context + query])
    heads = ModifiedHeads(modification, owners(PROMPTS, ()))
    tape = Tape(torch.tensor([[ids.shape[1] - 1]]), heads={}, modification=heads)
    with torch.no_grad():
        subject.model(ids, use_cache=False, tape=tape)
    for heads in tape.heads.values():
        layer = layer_heads(heads, owners(PROMPTS, query), label_tokens(PROMPTS, query))
        plain = softmax_dual(layer.scores, layer.keys, layer.values, layer.demos, layer.sinks)
        dual = modification.dual(plain, layer.owner[layer.demos], layer.values[:, -1])
        assert (dual.predict(dual.step()) - layer.output).norm() <= 1e-12 * layer.output.norm()


@pytest.mark.parametrize("name", ["llama", "gpt2", "gemma2", "gpt-oss"])
def test_strength_zero_is_the_unmodified_model_bit_for_bit(name: str) -> None:
    subject = tiny(name)
    with InContext().learn(subject, PROMPTS) as predictor:
        plain = predictor.trace(PROMPTS)
    for text in (
        "plain",
        "regularised:alpha=0",
        "regularised-slide:alpha=0",
        "negative:beta=0",
        "centred:beta=0",
        "augmented:c=0",
    ):
        with ModifiedInContext(made(text, subject)).learn(subject, PROMPTS) as predictor:
            changed = predictor.trace(PROMPTS)
        assert torch.equal(plain.scores, changed.scores), text
        assert torch.equal(plain.outputs, changed.outputs), text


@pytest.mark.parametrize("text", MODIFIED[1:])
def test_a_modification_of_some_strength_changes_the_model(text: str) -> None:
    subject = tiny("llama")
    with InContext().learn(subject, PROMPTS) as predictor:
        plain = predictor.trace(PROMPTS)
    with ModifiedInContext(made(text, subject)).learn(subject, PROMPTS) as predictor:
        assert not torch.equal(plain.scores, predictor.trace(PROMPTS).scores)


def test_a_model_that_ignores_the_registered_function_is_refused() -> None:
    subject, heads = tiny_subject("bloom"), ModifiedHeads(Modification(), torch.tensor([-1]))
    with pytest.raises(Refusal, match="use another model"):
        analyse(subject, PROMPTS, PROMPTS.queries[0])
    with pytest.raises(Refusal, match="not changed here"):
        subject.run(subject.tensor([[1, 2]]), torch.tensor([[1]]), None, heads)


def test_without_demonstrations_there_is_nothing_to_analyse() -> None:
    with pytest.raises(Refusal, match="at least one"):
        analyse(tiny("llama"), replace(PROMPTS, demos=()), PROMPTS.queries[0])


@pytest.mark.slow
@pytest.mark.parametrize("task", ["sentiment", "kinds", "continents"])
def test_every_head_of_the_embedded_model_is_one_gradient_step(smollm2: Subject, task: str) -> None:
    """All 270 heads, 8 demonstrations: relative residual at most 1e-9."""
    episode = load_episode(task, EpisodeSpec(k=8, queries=2))
    prompts = build_prompts(smollm2.tokenizer, episode, PromptSpec(), smollm2.room)
    subject = Subject(copy.deepcopy(smollm2.model).double(), smollm2.tokenizer, smollm2.name)
    for query in prompts.queries:
        assert analyse(subject, prompts, query, sizes=(16,)).residual.max() <= 1e-9


@pytest.mark.slow
def test_strength_zero_is_the_embedded_model_bit_for_bit(smollm2: Subject) -> None:
    episode = load_episode("sentiment", EpisodeSpec(k=8, queries=4))
    prompts = build_prompts(smollm2.tokenizer, episode, PromptSpec(), smollm2.room)
    with InContext().learn(smollm2, prompts) as predictor:
        plain = predictor.trace(prompts)
    for text in (
        "regularised:alpha=0",
        "regularised-slide:alpha=0",
        "negative:beta=0",
        "centred:beta=0",
        "augmented:c=0",
    ):
        with ModifiedInContext(made(text, smollm2)).learn(smollm2, prompts) as predictor:
            assert torch.equal(plain.scores, predictor.trace(prompts).scores), text
