"""Heads of training put into the zero-shot run: what a run of the lab has, beside hooks by hand."""

import numpy as np
import pytest
import torch
from little_causal import asked, ground_of, ran, scores

from iclgd.labs.causal.ground import random_update
from iclgd.labs.causal.sets import put_in
from iclgd.learners.descent import GradientDescent
from tiny import tiny_subject


@pytest.fixture(scope="module")
def swaps(tasks):
    return ran(tiny_subject("llama"), tasks, "swaps")


def by_head(result, null=None) -> np.ndarray:
    (found,) = result.select(quantity="scores", source="gd", into="zero-shot", site="heads", null=null)
    return found.values


def test_training_s_head_in_the_zero_shot_run_is_what_a_hook_does(tasks, swaps):
    """The output of layer 1's head 2 in the finetuned model, put before the output projection of the base model."""
    subject = tiny_subject("llama")
    prompts, seen = ground_of(subject, tasks).prompts, []
    with GradientDescent(rate=0.3).learn(subject, prompts):
        handle = subject.layout.outs[1].register_forward_pre_hook(lambda _m, args: seen.append(args[0][0, -1].clone()))
        for query in prompts.queries:
            subject.own_logits(subject.tensor([prompts.bos + query]))
        handle.remove()
    words = [label[0] for label in prompts.labels]
    for i, query in enumerate(prompts.queries):

        def put(_module, args, value=seen[i]):
            given = args[0].clone()
            given[:, -1, 16:24] = value[16:24]
            return (given, *args[1:])

        handle = subject.layout.outs[1].register_forward_pre_hook(put)
        logits = subject.own_logits(subject.tensor([prompts.bos + query]))[0, -1]
        handle.remove()
        np.testing.assert_allclose(by_head(swaps)[1, 2, i], logits.log_softmax(-1)[words], atol=1e-4)


def test_where_one_head_writes_its_share_is_the_layer_s_for_training_too(tasks):
    subject = tiny_subject("llama")
    with torch.no_grad():
        for out in subject.layout.outs:
            out.weight[:, 8:] = 0
    found = ran(subject, tasks, "swaps")
    for null in (None, "other query"):
        layers = scores(found, source="gd", into="zero-shot", site="attention", null=null)
        np.testing.assert_allclose(by_head(found, null)[:, 0], layers, atol=1e-5)
    np.testing.assert_allclose(
        by_head(found)[:, 1:], np.broadcast_to(scores(found, run="zero-shot"), (3, 3, 5, 2)), atol=1e-5
    )


def test_nulls_of_heads_are_other_numbers(swaps):
    own = by_head(swaps)
    assert own.shape == (3, 4, 5, 2)
    for null in ("other query", "random"):
        assert np.abs(by_head(swaps, null) - own).max() > 1e-3


def test_nulls_of_heads_are_put_in_as_training_s_own_are(tasks, swaps):
    """Another query's update on top of this query's own heads; a random one as long as each head's."""
    ground = ground_of(tiny_subject("llama"), tasks)
    with ground.trained(0.3) as (_, _, tuned):
        theirs = tuned.heads
    ours = ground.read("zero-shot")[1].heads
    expected = {
        "other query": ours + (theirs - ours).roll(1, 0),
        "random": random_update(ours, theirs, ground.seed, heads=4),
    }
    for null, values in expected.items():
        np.testing.assert_allclose(
            by_head(swaps, null), put_in(ground, "", ground.read("zero-shot")[0], values), atol=1e-5
        )


def test_a_random_update_is_as_long_head_by_head():
    into, source = torch.randn(4, 3, 8, dtype=torch.float64), torch.randn(4, 3, 8, dtype=torch.float64)
    found = (random_update(into, source, 0, heads=4) - into).unflatten(-1, (4, 2))
    torch.testing.assert_close(found.norm(dim=-1), (source - into).unflatten(-1, (4, 2)).norm(dim=-1))


def test_only_the_first_weights_have_training_s_heads(tasks):
    cells = [cell for cell in asked(tasks, init="trained,random").cells() if cell.labels["part"] == "swaps"]
    assert {cell.labels["init"]: cell.spec.heads for cell in cells} == {"trained": True, "random": False}
