"""What labels have to do with a head's step."""

from dataclasses import replace

import pytest
import torch
from test_dual_heads import PROMPTS, planted, tiny

from iclgd.errors import Refusal
from iclgd.labs.dual.heads import analyse, layers
from iclgd.labs.dual.labels import flip_effect, flipped, step_of
from iclgd.prompts import Demo

THREE = replace(
    PROMPTS,
    demos=(Demo((5, 20), (20,)), Demo((6, 7, 21), (21,)), Demo((8, 22, 23), (22, 23))),
    labels=((20,), (21,), (22, 23)),
)


def test_every_label_word_is_replaced_by_the_next_class() -> None:
    wrong = flipped(THREE)
    assert wrong.demos == (Demo((5, 21), (21,)), Demo((6, 7, 22, 23), (22, 23)), Demo((8, 20), (20,)))
    assert (wrong.queries, wrong.labels, wrong.bos) == (THREE.queries, THREE.labels, THREE.bos)
    assert flipped(flipped(flipped(THREE))) == THREE


def test_one_label_word_cannot_be_flipped() -> None:
    with pytest.raises(Refusal, match="one label word"):
        flipped(replace(THREE, labels=((20,),)))


def test_the_step_is_the_one_that_gradient_descent_takes() -> None:
    subject, query = tiny("gpt-oss", 3.0), PROMPTS.queries[0]
    by_descent = analyse(subject, PROMPTS, query, sizes=(8,)).steps
    direct = torch.stack([step_of(layer) for layer in layers(subject, PROMPTS, query)])
    assert (direct - by_descent).abs().max() <= 1e-12 * direct.abs().max()


def test_the_step_of_a_planted_layer_leaves_out_the_querys_own_tokens() -> None:
    layer = planted(sink=True)
    wanted = (layer.weights[..., None] * layer.values)[:, 1:6].sum(1)
    assert torch.allclose(step_of(layer), wanted)


def test_the_effect_of_flipping_is_the_difference_of_the_two_steps() -> None:
    subject, query = tiny("llama", 3.0), PROMPTS.queries[0]
    found = flip_effect(subject, PROMPTS, query)
    assert found.cosine.shape == found.change.shape == (3, 4)
    right, wrong = (
        torch.stack([step_of(layer) for layer in layers(subject, asked, query)])
        for asked in (PROMPTS, flipped(PROMPTS))
    )
    dots = (right * wrong).sum(-1)
    lengths = [x.square().sum(-1) for x in (right, wrong)]
    assert torch.allclose(found.cosine, dots / (lengths[0] * lengths[1]).sqrt())
    assert torch.allclose(found.change, ((lengths[0] + lengths[1] - 2 * dots) / lengths[0]).sqrt())
    assert (found.change > 0).all()


def test_where_both_classes_have_the_same_word_flipping_changes_nothing() -> None:
    same = replace(
        PROMPTS, demos=tuple(Demo((*demo.ids[:-1], 20), (20,)) for demo in PROMPTS.demos), labels=((20,), (20,))
    )
    found = flip_effect(tiny("llama"), same, PROMPTS.queries[0])
    assert (found.change == 0).all()
