"""Learners that put something in the place of the demonstrations: a change of weights, a state, a direction."""

from dataclasses import replace

import pytest
import torch
from rival import asked, traced

from iclgd.errors import Refusal
from iclgd.learners import LEARNERS
from iclgd.learners.context_vector import ContextVector, main_direction
from iclgd.learners.function_vector import FunctionVector
from iclgd.learners.left_out import left_out, read_left_out
from iclgd.learners.prompted import ZeroShot
from iclgd.learners.static_patch import StaticPatch
from iclgd.learners.task_vector import TaskVector
from iclgd.models.patches import read
from little import little_cell, little_result, little_task
from tiny import tiny_subject

ARCHITECTURES = ["llama", "gpt2", "gemma3"]


def test_a_demonstration_is_asked_behind_the_others_and_without_its_label():
    prompts = asked(3)
    contexts = list(left_out(prompts))
    for place, (context, query) in enumerate(contexts):
        demo = prompts.demos[place]
        assert query + demo.label == demo.ids
        others = [one.ids for i, one in enumerate(prompts.demos) if i != place]
        assert context == (1, *others[0], 5, *others[1], 5)


def test_of_two_demonstrations_each_is_asked_behind_the_other():
    prompts = asked(2)
    one, two = prompts.demos
    assert list(left_out(prompts)) == [((1, *two.ids, 5), one.ids[:5]), ((1, *one.ids, 5), two.ids[:6])]


def test_what_is_read_of_a_demonstration_behind_the_others_is_what_one_pass_over_their_text_gives():
    subject, prompts = tiny_subject("llama"), asked(3)
    queries, found = read_left_out(subject, prompts)
    one, two, three = (demo.ids for demo in prompts.demos)
    contexts = ((1, *two, 5, *three, 5), (1, *one, 5, *three, 5), (1, *one, 5, *two, 5))
    for place, (context, demo, length) in enumerate(zip(contexts, prompts.demos, (5, 6, 7), strict=True)):
        assert queries[place] == (1, *demo.ids[:length])
        logits = subject.own_logits(subject.tensor([context + demo.ids[:length]]))[0, -1]
        torch.testing.assert_close(found.logits[place], logits, rtol=1e-4, atol=1e-4)
    assert len(found.blocks) == len(found.inputs) == 3


@pytest.mark.parametrize("learner", [StaticPatch(), TaskVector(), FunctionVector()])
def test_one_demonstration_has_no_others_to_be_asked_behind(learner):
    with pytest.raises(Refusal, match="`k` must be at least 2"):
        with learner.learn(tiny_subject("llama"), asked(1)):
            pass


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize(
    "learner", [StaticPatch(), StaticPatch("vector"), TaskVector(), FunctionVector(), ContextVector()]
)
def test_the_model_is_what_it_was_afterwards(architecture, learner):
    subject, prompts = tiny_subject(architecture), asked()
    weights, before = subject.fingerprint(), traced(ZeroShot(), subject, prompts)
    changed = traced(learner, subject, prompts)
    assert not torch.allclose(changed.scores, before.scores, atol=1e-4)
    assert subject.fingerprint() == weights
    assert torch.equal(traced(ZeroShot(), subject, prompts).scores, before.scores)


def test_a_static_patch_without_a_ridge_reads_each_demonstration_as_behind_the_others():
    subject, prompts = tiny_subject("llama"), asked()
    with subject.in_precision(torch.float64):
        queries, target = read_left_out(subject, prompts)
        with StaticPatch(ridge=0).learn(subject, prompts) as predictor:
            found = read(subject, [query[1:] for query in queries], predictor.prefix)
        plain = read(subject, queries, None)
    torch.testing.assert_close(found.logits, target.logits, rtol=0, atol=1e-8)
    assert (plain.logits - target.logits).abs().max() > 0.1


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_task_vector_stands_at_the_prompt_s_last_token_after_its_block_and_nowhere_before(architecture):
    subject, prompts = tiny_subject(architecture), asked()
    state = read_left_out(subject, prompts)[1].blocks[:, 1].mean(0)
    zero, found = traced(ZeroShot(), subject, prompts), traced(TaskVector(layer=1), subject, prompts)
    prompt = found.blocks[:, :, 0]  # query layer dim
    torch.testing.assert_close(prompt[:, 1], state.expand(5, -1).to(prompt))
    torch.testing.assert_close(prompt[:, 0], zero.blocks[:, 0, 0])
    assert not torch.allclose(found.blocks[:, 1, 1], state.to(prompt), atol=1e-3)  # not at the label word


def test_after_the_last_block_a_task_vector_answers_all_queries_alike():
    subject, prompts = tiny_subject("llama"), replace(asked(), labels=((7,), (9,)))
    scores = traced(TaskVector(layer=2), subject, prompts).scores
    torch.testing.assert_close(scores, scores[:1].expand_as(scores))
    assert traced(TaskVector(layer=0), subject, prompts).scores.std(0).max() > 1e-3


@pytest.mark.parametrize("architecture, middle, third", [("llama", 1, 1), ("gpt-neo", 2, 1)])
def test_without_a_layer_a_task_vector_takes_the_middle_and_a_function_vector_a_third(architecture, middle, third):
    """Of 3 layers and of 4."""
    subject, prompts = tiny_subject(architecture), asked()
    zero = traced(ZeroShot(), subject, prompts)
    for learner, layer in ((TaskVector(), middle), (FunctionVector(), third)):
        moved = (traced(learner, subject, prompts).blocks - zero.blocks)[:, :, 0].abs().amax((0, 2)) > 1e-4
        assert int(moved.nonzero()[0]) == layer


@pytest.mark.parametrize(
    "given, rank, biased", [({"rank": 1}, 1, False), ({}, 4, False), ({"kind": "vector"}, 0, True)]
)
def test_a_static_patch_has_the_kind_and_the_rank_that_are_asked_for(given, rank, biased):
    """A matrix fitted on four demonstrations has rank 4."""
    subject, prompts = tiny_subject("llama"), asked()
    lasts = [mlp.last for mlp in subject.layout.mlps()]
    before = [last.weight.detach().double().clone() for last in lasts]
    with StaticPatch(**given).learn(subject, prompts):
        for last, was in zip(lasts, before, strict=True):
            sizes = torch.linalg.svdvals(last.weight.detach().double() - was)
            assert int((sizes > 1e-5 * was.norm()).sum()) == rank
            assert (last.bias is not None) == biased


def test_a_layer_that_the_model_has_not_is_refused():
    for learner in (TaskVector(layer=3), FunctionVector(layer=3)):
        with pytest.raises(Refusal, match="`layer` is 3, and the model's last is 2"):
            with learner.learn(tiny_subject("llama"), asked()):
                pass


def test_an_in_context_vector_of_no_strength_is_no_vector():
    subject, prompts = tiny_subject("llama"), asked()
    zero, found = traced(ZeroShot(), subject, prompts), traced(ContextVector(strength=0), subject, prompts)
    torch.testing.assert_close(found.scores, zero.scores)


def test_an_in_context_vector_turns_states_and_leaves_their_length():
    subject, prompts = tiny_subject("llama"), asked()
    zero, found = traced(ZeroShot(), subject, prompts), traced(ContextVector(strength=0.5), subject, prompts)
    one, other = zero.blocks[:, 0], found.blocks[:, 0]  # of the first block, which reads what it read before
    torch.testing.assert_close(one.norm(dim=-1), other.norm(dim=-1))
    assert torch.cosine_similarity(one, other, dim=-1).max() < 0.999


def test_the_main_direction_points_the_way_that_answers_lie():
    random = torch.Generator().manual_seed(0)
    way = torch.nn.functional.normalize(torch.randn(3, 8, generator=random), dim=-1)
    moves = -2.0 * way + 0.05 * torch.randn(6, 3, 8, generator=random)
    found = main_direction(moves)
    torch.testing.assert_close(found.norm(dim=-1), torch.ones(3))
    assert torch.cosine_similarity(found, -way, dim=-1).min() > 0.99
    torch.testing.assert_close(main_direction(-moves), -found)


def test_an_in_context_vector_leads_from_what_is_asked_to_what_is_answered():
    """As far as the strength says of the mean state, along the first eigenvector of Σ m mᵀ, m how states move."""
    subject, prompts = tiny_subject("llama"), asked()
    texts = (
        [(1, *d.ids[:n]) for d, n in zip(prompts.demos, (5, 6, 7, 8), strict=True)],
        [(1, *demo.ids) for demo in prompts.demos],
    )
    before, after = (read(subject, part, None).blocks.double() for part in texts)
    moves = (after - before).flatten(1)
    main = torch.linalg.eigh(moves.T @ moves).eigenvectors[:, -1]
    main = (main * torch.sign((moves @ main).sum())).view(3, -1)[0]
    vector = 0.3 * main / main.norm() * before[:, 0].norm(dim=-1).mean()
    zero, found = (
        traced(one, subject, prompts).blocks[:, 0].double() for one in (ZeroShot(), ContextVector(strength=0.3))
    )
    moved = zero + vector
    expected = moved * zero.norm(dim=-1, keepdim=True) / moved.norm(dim=-1, keepdim=True)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)  # the first block reads what it read before
    assert ((found - zero)[:, 0] @ (after - before)[:, 0].mean(0)).min() > 0  # at the prompt's last token


@pytest.mark.parametrize(
    "learner", ["static-patch", "static-patch:kind=vector", "task-vector", "function-vector", "in-context-vector"]
)
def test_rivals_enter_a_comparison_with_everything_that_learners_have(learner, tmp_path):
    assert learner.split(":")[0] in LEARNERS
    subject = tiny_subject("llama")
    nulls = ("random", "other-query", "wrong-labels")
    found = little_result(subject, little_cell(little_task(tmp_path), learner, contrast=True, nulls=nulls))
    assert found.facts["diverged"] is None
    names = {one.labels.get("metric") for one in found.arrays}
    assert {"accuracy", "SimAOU", "SimAM_delta", "agreement", "contrast-AOU"} <= names
    assert {one.labels.get("null") for one in found.arrays} >= set(nulls)
