"""Cells of `causal` on tiny models: exchanged layers, heads put in, heads taken out."""

from pathlib import Path

import numpy as np
import pytest
import torch

from iclgd.errors import Refusal
from iclgd.lab import Cell
from iclgd.labs.causal.ground import RUNS, SWAPS, WHERE, Ground, other_query, random_update
from iclgd.labs.causal.run import identity, run
from iclgd.labs.causal.sets import head_scores, random_set
from iclgd.labs.causal.spec import CausalSpec
from iclgd.learners.descent import GradientDescent
from iclgd.learners.function_vector import largest, mediation
from iclgd.learners.prompted import InContext, ZeroShot
from iclgd.models.heads import ablated, dual_step, induction, mean_outputs
from iclgd.models.traces import Predictor
from iclgd.prompts import build_prompts
from iclgd.spec import PromptSpec
from iclgd.tools import Tools, silent
from little import little_task
from tiny import tiny_subject


@pytest.fixture(scope="module")
def tasks(tmp_path_factory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("causal")
    return little_task(folder), little_task(folder, "other", ("red", "blue"))


def asked(tasks, **more) -> CausalSpec:
    task, other = map(str, tasks)
    given = {"model": "memory:tiny", "task": task, "other": other, "device": "cpu", "init": "trained"}
    return CausalSpec.of(given | {"k": 4, "queries": 5, "rates": 0.3, "heads": 2, "sets": 3} | more)


def ran(subject, tasks, part, **more):
    cell = next(one for one in asked(tasks, **more).cells() if one.labels["part"] == part)
    return run(cell, Tools(subjects={"memory:tiny": subject}))


def ground_of(subject, tasks) -> Ground:
    spec, tools = asked(tasks).cells()[0].spec, Tools()
    return Ground(subject, tools.episode(spec.task, spec.episode), PromptSpec(), 0, silent)


def scores(result, **labels) -> np.ndarray:
    (found,) = result.select(quantity="scores", **{"null": None, "layers": None, "score": None, "draw": None} | labels)
    return found.values


@pytest.fixture(scope="module")
def swaps(tasks):
    return ran(tiny_subject("llama"), tasks, "swaps")


def test_the_runs_are_the_package_s_learners(tasks, swaps):
    subject = tiny_subject("llama")
    prompts = ground_of(subject, tasks).prompts
    for name, learner in zip(RUNS, (ZeroShot(), InContext(), GradientDescent(rate=0.3)), strict=True):
        with learner.learn(subject, prompts) as predictor:
            expected = predictor.trace(prompts).scores
        np.testing.assert_allclose(scores(swaps, run=name), expected, atol=1e-5)


@pytest.mark.parametrize("architecture", ["llama", "qwen3", "gpt-neox", "olmo2", "gemma3", "bloom", "gpt-oss"])
def test_all_layers_exchanged_at_once_are_the_other_run(architecture, tasks):
    subject = tiny_subject(architecture)
    with subject.in_precision(torch.float64):
        found = ran(subject, tasks, "swaps", queries=2, k=2)
    for source, into in SWAPS:
        end, start = scores(found, run=source), scores(found, run=into)
        assert np.abs(end - start).max() > 1e-3
        whole = scores(found, source=source, into=into, site="attention", layers="all")
        np.testing.assert_allclose(whole, end, rtol=0, atol=1e-10)
        stream = scores(found, source=source, into=into, site="blocks")[-1]
        np.testing.assert_allclose(stream, end, rtol=0, atol=1e-10)


def test_positions_in_the_embedding_do_not_come_along_with_attention(tasks):
    """GPT-2 adds a position to the embedding, and reading moves the last token to another one."""
    subject = tiny_subject("gpt2")
    with subject.in_precision(torch.float64):
        found = ran(subject, tasks, "swaps", queries=2, k=2)
    end = scores(found, run="icl")
    whole = scores(found, source="icl", into="zero-shot", site="attention", layers="all")
    assert np.abs(whole - end).max() > 1e-3
    np.testing.assert_allclose(
        scores(found, source="icl", into="zero-shot", site="blocks")[-1], end, rtol=0, atol=1e-10
    )


def test_one_layer_of_a_run_in_another_is_what_a_hook_does(tasks, swaps):
    subject = tiny_subject("llama")
    prompts = ground_of(subject, tasks).prompts
    traces = {}
    for name, learner in (("icl", InContext()), ("gd", GradientDescent(rate=0.3))):
        with learner.learn(subject, prompts) as predictor:
            traces[name] = predictor.trace(prompts)
    words = [label[0] for label in prompts.labels]
    for source in ("icl", "gd"):
        for site, modules in (("attention", subject.layout.outs), ("blocks", subject.layout.blocks)):
            part = traces[source].outputs if site == "attention" else traces[source].blocks
            for i, query in enumerate(prompts.queries):
                value = part[i, 1, 0]

                def put(_module, _args, output, value=value):
                    given = (output if isinstance(output, torch.Tensor) else output[0]).clone()
                    given[:, -1] = value
                    return given if isinstance(output, torch.Tensor) else (given, *output[1:])

                handle = modules[1].register_forward_hook(put)
                logits = subject.own_logits(subject.tensor([prompts.bos + query]))[0, -1]
                handle.remove()
                found = scores(swaps, source=source, into="zero-shot", site=site)[1, i]
                np.testing.assert_allclose(found, logits.log_softmax(-1)[words], atol=1e-4)


def test_reading_s_layers_in_the_finetuned_model_run_on_its_weights(tasks, swaps):
    """Nothing of a layer after the exchanged one is the base model's."""
    into_zero = scores(swaps, source="icl", into="zero-shot", site="attention")
    into_gd = scores(swaps, source="icl", into="gd", site="attention")
    assert into_gd.shape == (3, 5, 2)
    assert np.abs(into_gd - into_zero)[0].max() > 1e-3
    before = scores(swaps, run="gd")
    assert np.abs(into_gd - before).max((1, 2)).min() > 1e-4


@pytest.mark.parametrize("source, into", SWAPS)
def test_the_last_layer_of_a_run_in_another_stands_on_that_other_run_s_stream(source, into, tasks, swaps):
    """By hand: the stream before the last block of one run, its attention output of the other, then the MLP."""
    ground = ground_of(tiny_subject("llama"), tasks)
    with ground.trained(0.3) as (_, _, tuned):
        seen = {"zero-shot": ground_of(tiny_subject("llama"), tasks).read("zero-shot")[1], "gd": tuned}
    seen["icl"] = ground.read("icl")[1]
    block = ground.subject.layout.blocks[-1]
    with torch.no_grad():
        stream = seen[into].blocks[:, -2] + seen[source].attention[:, -1]
        given = stream + block.mlp(block.post_attention_layernorm(stream))
        expected = ground.of_words(ground.subject.unembed(given))
    np.testing.assert_allclose(
        scores(swaps, source=source, into=into, site="attention")[-1], expected, rtol=0, atol=1e-4
    )


@pytest.mark.parametrize("null", ["other query", "random"])
def test_a_null_is_an_update_on_top_of_the_zero_shot_run_s_own_values(null, tasks, swaps):
    """After the last block nothing but the unembedding is left, so that its scores are known."""
    ground = ground_of(tiny_subject("llama"), tasks)
    zero, icl = (ground.read(run)[1].blocks[:, -1] for run in ("zero-shot", "icl"))
    (one,) = swaps.select(quantity="scores", source="icl", into="zero-shot", site="blocks", null=null, layers=None)
    if null == "other query":
        expected = ground.of_words(ground.subject.unembed(zero + (icl - zero).roll(1, 0)))
        np.testing.assert_allclose(one.values[-1], expected, atol=1e-4)
        return
    whole = random_update(ground.read("zero-shot")[1].blocks, ground.read("icl")[1].blocks, ground.seed)[:, -1]
    torch.testing.assert_close((whole - zero).norm(dim=-1), (icl - zero).norm(dim=-1))
    np.testing.assert_allclose(one.values[-1], ground.of_words(ground.subject.unembed(whole)), atol=1e-4)


def test_nulls_go_into_the_zero_shot_run_of_every_source_and_are_other_numbers(swaps):
    found = {
        (one.labels["source"], one.labels["into"], one.labels["null"]) for one in swaps.arrays if "null" in one.labels
    }
    assert found == {(source, "zero-shot", null) for source in ("icl", "gd") for null in ("other query", "random")}
    for site in WHERE:
        labels = {"source": "icl", "into": "zero-shot", "site": site}
        own = scores(swaps, **labels)
        for null in ("other query", "random"):
            assert np.abs(scores(swaps, null=null, **labels) - own).max() > 1e-3


def test_null_updates_are_the_next_query_s_or_as_long():
    into, source = torch.randn(4, 3, 6, dtype=torch.float64), torch.randn(4, 3, 6, dtype=torch.float64)
    moved = other_query(into, source) - into
    torch.testing.assert_close(moved[2], (source - into)[1])
    noise = random_update(into, source, 0) - into
    torch.testing.assert_close(noise.norm(dim=-1), (source - into).norm(dim=-1))
    assert torch.cosine_similarity(noise, source - into, dim=-1).abs().mean() < 0.8
    assert not torch.equal(noise, random_update(into, source, 1) - into)


def test_training_that_diverges_leaves_reading_and_a_fact(tasks):
    found = ran(tiny_subject("llama"), tasks, "swaps", rates=1e30)
    assert found.facts["diverged"]
    sources = {(one.labels["source"], one.labels["into"]) for one in found.arrays if "source" in one.labels}
    assert sources == {("icl", "zero-shot"), ("zero-shot", "icl")}


def test_the_other_task_is_part_of_the_identity_of_heads_alone(tasks, tmp_path):
    swapped, heads = asked(tasks).cells()
    tools = Tools()
    assert set(identity(swapped, tools)) == {"weights", "episode"}
    another = heads.spec.model_copy(update={"other": str(little_task(tmp_path, "theirs", ("Word", "Group")))})
    one, two = identity(heads, tools), identity(Cell("causal", another, heads.labels), tools)
    assert (one["episode"], one["weights"]) == (two["episode"], two["weights"])
    assert one["other"] != two["other"]


# heads


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


def test_a_head_s_dual_step_is_of_demonstrations_without_bos_and_the_mean_over_queries(tasks, of_heads):
    ground = ground_of(tiny_subject("llama"), tasks)
    lasts, places = ground.read("icl")[0], torch.arange(len(ground.prompts.context))
    assert len(ground.prompts.bos) == 1

    def mean(demos: torch.Tensor) -> torch.Tensor:
        return torch.stack([dual_step(ground.subject, one.prefix, one.token, demos) for one in lasts]).mean(0)

    (found,) = of_heads.select(quantity="head score", score="dual step")
    np.testing.assert_allclose(found.values, mean(places >= 1), atol=1e-5)
    assert np.abs(found.values - mean(places >= 0).numpy()).max() > 1e-3


def test_families_that_keep_their_values_have_two_scores(tasks):
    ground = ground_of(tiny_subject("bloom"), tasks)
    assert set(head_scores(ground)) == {"function vector", "induction"}
    with pytest.raises(Refusal, match="keeps its values to itself"):
        dual_step(ground.subject, ground.read("icl")[0][0].prefix, 3, torch.ones(2, dtype=torch.bool))


def test_answers_without_heads_are_those_of_the_ablated_model(tasks, of_heads):
    subject = tiny_subject("llama")
    ground, other = ground_of(subject, tasks), asked(tasks).cells()[1].spec
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
