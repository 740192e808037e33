"""Random features of heads: which are drawn, how far they are off, and how many are needed."""

from dataclasses import replace

import pytest
import torch
from tiny_heads import PROMPTS, planted, tiny

from iclgd.labs.dual.features import directions, random_scores
from iclgd.labs.dual.heads import ERROR, analyse, analyse_features, analyse_group, features_needed, layers, moved_keys


def test_scores_that_are_not_products_get_points_and_no_random_features() -> None:
    layer = planted()
    capped = replace(layer, scores=torch.tanh(layer.scores))
    capped = replace(capped, output=(capped.weights[:, None] @ capped.values)[:, 0])
    assert analyse_group(capped, 2)["own"].tolist() == [0, 0]
    assert analyse_group(capped, 2)["residual"].max() <= 1e-13
    draws = [directions(4, 5, torch.Generator().manual_seed(0))]
    assert all(value.isnan().all() for value in analyse_features(capped, draws).values())
    assert all(value.isfinite().all() for value in analyse_features(layer, draws).values())


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
