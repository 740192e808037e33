"""Heads of `causal` on tiny models: put in, taken out, and scored by what they attend to."""

import numpy as np
import pytest
import torch
from little_causal import SEED, asked, ground_of, ran, scores

from iclgd.errors import Refusal
from iclgd.labs.causal import sets
from iclgd.labs.causal.sets import ablations, head_scores, random_set
from iclgd.learners.function_vector import largest, mediation
from iclgd.models.heads import ablated, dual_step, induction, mean_outputs
from iclgd.models.traces import Predictor
from iclgd.prompts import build_prompts
from iclgd.spec import PromptSpec
from iclgd.tools import Tools
from tiny import tiny_subject


@pytest.fixture(scope="module")
def of_heads(tasks):
    return ran(tiny_subject("llama"), tasks, "heads")


def test_a_model_with_one_head_a_layer_has_the_same_shares_by_head_and_by_layer(tasks):
    """Heads put in one by one are layers put in one by one where only one head writes."""
    subject = tiny_subject("llama")
    with torch.no_grad():
        for out in subject.layout.outs:
            out.weight[:, 8:] = 0
    heads, layers = ran(subject, tasks, "heads"), ran(subject, tasks, "swaps")
    (found,) = heads.select(quantity="scores", by="head")
    assert found.values.shape == (3, 4, 5, 2)
    np.testing.assert_allclose(
        found.values[:, 0], scores(layers, source="icl", into="zero-shot", site="attention"), atol=1e-5
    )
    np.testing.assert_allclose(
        found.values[:, 1:], np.broadcast_to(scores(layers, run="zero-shot"), (3, 3, 5, 2)), atol=1e-5
    )


def test_the_foremost_heads_are_taken_out_and_random_ones_of_the_same_layers(tasks, of_heads):
    prompts = ground_of(tiny_subject("llama"), tasks).prompts
    effects = mediation(tiny_subject("llama"), prompts, 8).effects
    (top,) = of_heads.select(quantity="heads", score="function vector", draw=None)
    assert {tuple(place) for place in top.values} == {tuple(x.tolist()) for x in largest(effects, 2).nonzero()}
    for name in ("function vector", "induction", "dual step"):
        (top,) = of_heads.select(quantity="heads", score=name, draw=None)
        for draw in range(3):
            (random,) = of_heads.select(quantity="heads", score=name, draw=draw)
            assert sorted(random.values[:, 0]) == sorted(top.values[:, 0])
            assert len({tuple(place) for place in random.values}) == 2


def test_random_sets_avoid_the_foremost_heads_where_there_are_enough_others():
    top = torch.zeros(3, 6, dtype=torch.bool)
    top[0, :2] = top[2, :4] = True
    sets = [random_set(top, seed) for seed in range(20)]
    for one in sets:
        assert one.sum(1).tolist() == [2, 0, 4]
        assert not (one & top)[0].any()
    assert len({tuple(one.flatten().tolist()) for one in sets}) > 10
    assert any((one & top)[2].any() for one in sets)  # four of six: of all


def test_random_sets_are_others_for_every_draw_and_for_every_draw_of_demonstrations(tasks, monkeypatch):
    ground = ground_of(tiny_subject("llama"), tasks)
    monkeypatch.setattr(sets, "mean_outputs", lambda *_given: torch.zeros(6, 24))
    monkeypatch.setattr(sets, "_without", lambda *_given: {})
    scores, found = torch.rand(6, 12, generator=torch.Generator().manual_seed(0)), set()
    for ground.seed in range(3):
        every = ablations(ground, {"induction": scores}, (1,), 5, 4)
        chosen = {labels.get("draw"): tuple(one.flatten().tolist()) for labels, one, _ in every}
        assert chosen.pop(None) == tuple(largest(scores, 5).flatten().tolist())
        assert len(chosen) == 4
        found |= set(chosen.values())
    assert len(found) == 12


def test_half_of_a_layer_s_heads_have_the_other_half_beside_them():
    top = torch.zeros(1, 4, dtype=torch.bool)
    top[0, :2] = True
    assert {tuple(random_set(top, seed)[0].tolist()) for seed in range(9)} == {(False, False, True, True)}


def test_a_layer_whose_every_head_is_taken_out_has_no_other_set():
    assert random_set(torch.ones(2, 3, dtype=torch.bool), 0).all()


def test_without_a_head_its_mean_is_given_at_every_token_of_every_pass(tasks):
    subject = tiny_subject("llama")
    ground = ground_of(subject, tasks)
    text = ground.prompts.context
    seen = []
    handle = subject.layout.outs[1].register_forward_pre_hook(lambda _m, args: seen.append(args[0].clone()))
    subject.own_logits(subject.tensor([text]))
    mean = mean_outputs(subject, text)
    torch.testing.assert_close(mean[1], seen[0][0].mean(0))
    seen.clear()
    handle.remove()
    chosen = torch.zeros(3, 4, dtype=torch.bool)
    chosen[1, 2] = True
    with ablated(subject, chosen, mean):
        handle = subject.layout.outs[1].register_forward_pre_hook(lambda _m, args: seen.append(args[0].clone()))
        prefix = subject.encode(text)
        Predictor(subject, prefix).scores(ground.prompts.queries, [(3,), (4,)])
        handle.remove()
    assert len(seen) >= 2
    for given in seen:
        rows = given.reshape(-1, 32)
        torch.testing.assert_close(rows[:, 16:24], mean[1, 16:24].expand(len(rows), -1))
        assert rows[:, :16].std(0).min() > 0


def test_heads_that_write_nothing_are_not_missed(tasks):
    subject = tiny_subject("llama")
    with torch.no_grad():
        for out in subject.layout.outs:
            out.weight[:, :16] = 0  # heads 0 and 1
    ground = ground_of(subject, tasks)
    mean = mean_outputs(subject, ground.prompts.context)
    labels, queries = [(3,), (4,)], ground.prompts.queries
    plain = Predictor(subject, subject.encode(ground.prompts.context)).scores(queries, labels)
    for heads, changes in (((0, 1), False), ((2, 3), True)):
        chosen = torch.zeros(3, 4, dtype=torch.bool)
        chosen[:, list(heads)] = True
        with ablated(subject, chosen, mean):
            found = Predictor(subject, subject.encode(ground.prompts.context)).scores(queries, labels)
        assert torch.allclose(found, plain, atol=1e-6) != changes


def test_a_planted_induction_head_scores_one_and_others_do_not():
    """Scores of a model whose attention is planted: one head looks at what followed the same token before."""
    subject = tiny_subject("llama")
    plain = induction(subject, (1,))
    assert plain.shape == (3, 4)
    real = subject.run

    def planted(ids, rows, *args, **kwargs):
        found = real(ids, rows, *args, **kwargs)
        for i in range(rows.shape[1]):
            found.logits[:, 1, i, 3, :] = 0
            found.logits[:, 1, i, 3, int(rows[0, i]) - 23] = 50
        return found

    subject.run = planted
    found = induction(subject, (1,))
    assert found[1, 3] > 0.999
    found[1, 3] = plain[1, 3]
    torch.testing.assert_close(found, plain)


def test_induction_is_the_attention_that_the_softmax_gives():
    subject = tiny_subject("llama")
    found = induction(subject, (1,), seed=2)
    random = torch.Generator().manual_seed(2)
    half = torch.randint(0, 99, (8, 24), generator=random)
    subject.model.set_attn_implementation("eager")
    ids = torch.cat([torch.ones(8, 1, dtype=torch.long), half, half], 1)
    weights = subject.model(ids, output_attentions=True).attentions
    expected = [[w[:, h, torch.arange(25, 49), torch.arange(2, 26)].mean() for h in range(4)] for w in weights]
    torch.testing.assert_close(found, torch.tensor(expected), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("architecture", ["llama", "gpt-oss", "gemma2"])
def test_the_dual_step_is_what_demonstrations_give_beside_all_else(architecture, tasks):
    """Values of the demonstrations scaled by ten scale the step by ten, and nothing else."""
    subject = tiny_subject(architecture)
    ground = ground_of(subject, tasks)
    last, bos = ground.read("icl")[0][0], len(ground.prompts.bos)
    demos = torch.arange(len(ground.prompts.context)) >= bos
    found = dual_step(subject, last.prefix, last.token, demos)
    assert found.shape == (3, 4)
    assert bool(((found >= 0) & (found < 1)).all())
    assert found[1].min() > 0.05  # the others may have a window that hides the demonstrations
    none = torch.zeros_like(demos)
    assert not dual_step(subject, last.prefix, last.token, none).any()
    last.prefix.layers[1][1][:, :, bos : len(demos)] *= 10
    larger = dual_step(subject, last.prefix, last.token, demos)[1]
    torch.testing.assert_close(larger / (1 - larger), 10 * found[1] / (1 - found[1]), rtol=1e-3, atol=1e-4)


def test_families_that_keep_their_values_have_two_scores(tasks):
    ground = ground_of(tiny_subject("bloom"), tasks)
    assert set(head_scores(ground)) == {"function vector", "induction"}
    with pytest.raises(Refusal, match="keeps its values to itself"):
        dual_step(ground.subject, ground.read("icl")[0][0].prefix, 3, torch.ones(2, dtype=torch.bool))


def test_answers_without_heads_are_those_of_the_ablated_model(tasks, of_heads):
    subject = tiny_subject("llama")
    ground, other = ground_of(subject, tasks), asked(tasks).cells()[-1].spec
    episode = Tools().episode(other.other, other.episode)
    mean = mean_outputs(subject, build_prompts(subject.tokenizer, episode, PromptSpec(), None).context)
    (places,) = of_heads.select(quantity="heads", score="induction", draw=None)
    chosen = torch.zeros(3, 4, dtype=torch.bool)
    chosen[tuple(places.values.T)] = True
    with ablated(subject, chosen, mean):
        expected = [
            subject.own_logits(subject.tensor([ground.prompts.context + query]))[0, -1].log_softmax(-1)[
                list(ground.words)
            ]
            for query in ground.prompts.queries
        ]
    found = scores(of_heads, run="icl", score="induction")
    np.testing.assert_allclose(found, torch.stack(expected), atol=1e-4)


def test_a_head_s_dual_step_is_of_demonstrations_without_bos_and_the_mean_over_queries(tasks, of_heads):
    ground = ground_of(tiny_subject("llama"), tasks)
    lasts, places = ground.read("icl")[0], torch.arange(len(ground.prompts.context))
    assert len(ground.prompts.bos) == 1

    def mean(demos: torch.Tensor) -> torch.Tensor:
        return torch.stack([dual_step(ground.subject, one.prefix, one.token, demos) for one in lasts]).mean(0)

    (found,) = of_heads.select(quantity="head score", score="dual step")
    np.testing.assert_allclose(found.values, mean(places >= 1), atol=1e-5)
    assert np.abs(found.values - mean(places >= 0).numpy()).max() > 1e-3


def test_scores_are_of_the_first_demonstrations_and_queries_and_of_the_draw_s_tokens(tasks, monkeypatch):
    monkeypatch.setattr(sets, "PROMPTS", 2)
    ground = ground_of(tiny_subject("llama"), tasks)
    found, prompts = head_scores(ground), ground.prompts
    torch.testing.assert_close(found["function vector"], mediation(ground.subject, prompts, 2).effects)
    own, usual = (induction(ground.subject, prompts.bos, seed) for seed in (SEED, 0))
    torch.testing.assert_close(found["induction"], own)
    assert not torch.allclose(own, usual, atol=1e-3)
    demos = torch.arange(len(prompts.context)) >= 1
    one, two = (dual_step(ground.subject, last.prefix, last.token, demos) for last in ground.read("icl")[0][:2])
    torch.testing.assert_close(found["dual step"], (one + two) / 2)


def test_a_cell_of_heads_has_the_runs_that_its_shares_are_of(tasks, of_heads):
    ground = ground_of(tiny_subject("llama"), tasks)
    for run in ("zero-shot", "icl"):
        np.testing.assert_allclose(scores(of_heads, run=run), ground.read(run)[1].scores, atol=1e-5)
        for score in ("function vector", "induction", "dual step"):
            assert np.abs(scores(of_heads, run=run, score=score) - scores(of_heads, run=run)).max() > 1e-4
    (answers,) = of_heads.select(quantity="answers")
    assert answers.values.tolist() == list(ground.prompts.answers)
