"""The dual on the heads of language models, small and random here, real in the slow test."""

import copy
from dataclasses import replace

import pytest
import torch
from tiny_heads import PROMPTS, planted, tiny

from iclgd.errors import Refusal
from iclgd.labs.dual.heads import (
    analyse,
    analyse_group,
    dual_of_group,
    label_tokens,
    layer_heads,
    layers,
    owners,
    participation,
)
from iclgd.models.capture import Tape
from iclgd.models.subject import Subject
from iclgd.prompts import Demo, build_prompts
from iclgd.spec import EpisodeSpec, PromptSpec
from iclgd.tasks.episodes import load_episode
from tiny import REGISTERED


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
    assert float(participation(found[1])) == pytest.approx(25 / 17)  # rows of their own


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
