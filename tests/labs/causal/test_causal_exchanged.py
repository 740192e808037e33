"""Single heads between reading and the finetuned model: on results that were made up, and on tiny models."""

import numpy as np
import pytest
import torch
from little_causal import ground_of, ran, scores
from planted_causal import Plant, planted

from iclgd.labs.causal.exchanged import Exchanged, table
from iclgd.learners.descent import GradientDescent
from tiny import tiny_subject


def test_the_table_says_from_where_to_where_and_what_heads_carry():
    rows = {str(row[0]): [str(entry) for entry in row[1:]] for row in table(planted(seeds=3)).rows}
    assert list(rows) == ["icl into zero-shot", "gd into zero-shot, 0.01", "icl into gd, 0.01", "gd into icl, 0.01"]
    foremost, share, total, together, like = rows["icl into gd, 0.01"]
    assert foremost == "layer 3, head 2"
    assert share.startswith(".22 ")  # twice what it carries into the zero-shot run
    assert rows["icl into zero-shot"][1].startswith(".11 ")
    assert total.startswith("1.32 ")  # 2 · (0 + … + 11) / 100
    assert together.startswith("1.30 ")  # the ten largest
    assert like.startswith("1.00 ")
    foremost, share, *_, like = rows["gd into icl, 0.01"]
    assert foremost == "layer 0, head 0"
    assert like.startswith("-1.00 ")
    assert rows["icl into zero-shot"][-1] == ""
    foremost, share, *_, like = rows["gd into zero-shot, 0.01"]  # of training's own effect, not of reading's
    assert (foremost, share[:4], like[:5]) == ("layer 3, head 2", ".11 ", "1.00 ")


def test_what_the_foremost_carry_is_measured_on_other_queries():
    view = planted(seeds=2, heads=2)
    (_, _, total, together, _) = Exchanged(view, "icl", "gd", 0.01).row()
    assert str(together).startswith(".42 ")  # 2 · (.11 + .10)
    assert str(total).startswith("1.32 ")  # however many draws there are


def test_where_training_diverged_there_are_no_rows_of_it():
    plant = Plant()
    plant.diverged = True
    assert [str(row[0]) for row in table(planted(plant, seeds=2)).rows] == ["icl into zero-shot"]


@pytest.fixture(scope="module")
def exchanged(tasks):
    subject = tiny_subject("llama")
    with subject.in_precision(torch.float64):
        return ran(subject, tasks, "exchanged")


def test_one_head_of_reading_in_the_finetuned_model_is_what_a_hook_does_there(tasks, exchanged):
    subject = tiny_subject("llama")
    with subject.in_precision(torch.float64):
        ground = ground_of(subject, tasks)
        heads, prompts = ground.read("icl")[1].heads, ground.prompts
        width = heads.shape[-1] // subject.layout.heads
        layer, head = 1, 2
        own = slice(head * width, (head + 1) * width)
        with GradientDescent(rate=0.3).learn(subject, prompts):
            for i, query in enumerate(prompts.queries):

                def put(_module, args, i=i):
                    given = args[0].clone()
                    given[:, -1, own] = heads[i, layer, own]
                    return (given, *args[1:])

                handle = subject.layout.blocks[layer].self_attn.o_proj.register_forward_pre_hook(put)
                logits = subject.own_logits(subject.tensor([prompts.bos + query]))[0, -1]
                handle.remove()
                found = scores(exchanged, source="icl", into="gd", site="heads")[layer, head, i]
                np.testing.assert_allclose(found, logits.log_softmax(-1)[list(ground.words)], rtol=0, atol=1e-10)


def test_one_head_of_training_in_reading_is_what_a_hook_does_there(tasks, exchanged):
    subject = tiny_subject("llama")
    with subject.in_precision(torch.float64):
        ground = ground_of(subject, tasks)
        with ground.trained(0.3) as (_, _, tuned):
            heads = tuned.heads
        width = heads.shape[-1] // subject.layout.heads
        own, prompts = slice(width, 2 * width), ground.prompts  # the second head of the first layer
        for i, query in enumerate(prompts.queries):

            def put(_module, args, i=i):
                given = args[0].clone()
                given[:, -1, own] = heads[i, 0, own]
                return (given, *args[1:])

            handle = subject.layout.blocks[0].self_attn.o_proj.register_forward_pre_hook(put)
            logits = subject.own_logits(subject.tensor([prompts.context + query]))[0, -1]
            handle.remove()
            found = scores(exchanged, source="gd", into="icl", site="heads")[0, 1, i]
            np.testing.assert_allclose(found, logits.log_softmax(-1)[list(ground.words)], rtol=0, atol=1e-10)


def test_the_runs_beside_are_those_that_heads_come_from_and_go_into(tasks, exchanged):
    swaps = ran(tiny_subject("llama"), tasks, "swaps")
    for name in ("icl", "gd"):
        np.testing.assert_allclose(scores(exchanged, run=name), scores(swaps, run=name), atol=1e-4)


def test_training_that_diverged_exchanges_nothing(tasks):
    found = ran(tiny_subject("llama"), tasks, "exchanged", rates=1e38)
    assert found.facts["diverged"]
    assert not found.select(quantity="scores", site="heads")
