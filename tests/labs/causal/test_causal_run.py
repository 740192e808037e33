"""Cells of `causal` on tiny models: layers of one run in another."""

import numpy as np
import pytest
import torch
from little_causal import asked, ground_of, ran, scores

from iclgd.lab import Cell
from iclgd.labs.causal.ground import RUNS, SWAPS, WHERE, other_query, random_update
from iclgd.labs.causal.run import identity
from iclgd.learners.descent import GradientDescent
from iclgd.learners.prompted import InContext, ZeroShot
from iclgd.tools import Tools
from little import little_task
from tiny import tiny_subject


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
    swapped, exchanged, heads = asked(tasks).cells()
    tools = Tools()
    assert set(identity(swapped, tools)) == set(identity(exchanged, tools)) == {"weights", "episode"}
    another = heads.spec.model_copy(update={"other": str(little_task(tmp_path, "theirs", ("Word", "Group")))})
    one, two = identity(heads, tools), identity(Cell("causal", another, heads.labels), tools)
    assert (one["episode"], one["weights"]) == (two["episode"], two["weights"])
    assert one["other"] != two["other"]
