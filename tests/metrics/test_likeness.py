"""Each likeness against a plain implementation: loops over numpy arrays, float64."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from iclgd.metrics.likeness import sim_am, sim_am_delta, sim_aou, sim_aou_norm
from iclgd.metrics.nulls import noise_score

QUICK = settings(max_examples=40, deadline=None)
sizes = st.integers(1, 4)
seeds = st.integers(0, 2**31)
scales = st.sampled_from([1e-12, 1e-3, 1.0, 1e6])


# the plain implementation


def plain_cosine(a, b) -> float:
    dot = sum(float(x) * float(y) for x, y in zip(a, b, strict=True))
    size = math.sqrt(sum(float(x) ** 2 for x in a)) * math.sqrt(sum(float(y) ** 2 for y in b))
    return dot / size if size > 0 else math.nan


def plain_unit(a) -> np.ndarray:
    return a / math.sqrt(sum(float(x) ** 2 for x in a))


def plain_sim_aou(zero, icl, tuned, normalised=False) -> np.ndarray:
    scores = np.empty(zero.shape[:2])
    for query in range(zero.shape[0]):
        for layer in range(zero.shape[1]):
            h = [trace[query, layer] for trace in (zero, icl, tuned)]
            z, i, t = [plain_unit(x) for x in h] if normalised else h
            scores[query, layer] = plain_cosine(i - z, t - z)
    return scores


def plain_mean_over_heads(a, b, lengths) -> np.ndarray:
    """Cosines over the keys that exist, averaged over the heads that have one."""
    scores = np.empty(a.shape[:2])
    for query, length in enumerate(lengths):
        for layer in range(a.shape[1]):
            found = [plain_cosine(a[query, layer, h, :length], b[query, layer, h, :length]) for h in range(a.shape[2])]
            known = [cosine for cosine in found if not math.isnan(cosine)]
            scores[query, layer] = sum(known) / len(known) if known else math.nan
    return scores


# random traces


def outputs(random, shape, scale, dead):
    """Three traces; where ``dead``, one query and layer whose tuned output is exactly the zero-shot one."""
    zero = random.standard_normal(shape)
    icl, tuned = (zero + scale * random.standard_normal(shape) for _ in range(2))
    if dead:
        tuned[-1, -1] = zero[-1, -1]
    return zero, icl, tuned


def maps(random, queries, layers, heads, lengths, scale, dead):
    """Attention logits with 0 where there is no key; where ``dead``, heads that did not change at all."""
    exist = np.arange(max(lengths)) < np.array(lengths)[:, None]
    shape = (queries, layers, heads, max(lengths))
    zero = random.standard_normal(shape) * exist[:, None, None]
    icl, tuned = (zero + scale * random.standard_normal(shape) * exist[:, None, None] for _ in range(2))
    if dead:
        tuned[0, 0, 0] = zero[0, 0, 0]
        icl[-1, -1] = zero[-1, -1]
    return zero, icl, tuned


def torched(*arrays):
    return [torch.from_numpy(array) for array in arrays]


def agree(found: torch.Tensor, wanted: np.ndarray, within: float = 1e-6) -> None:
    np.testing.assert_allclose(found.numpy(), wanted, rtol=0, atol=within, equal_nan=True)
    known = found[~found.isnan()]
    assert (known.abs() <= 1 + 1e-12).all()


@QUICK
@given(seeds, sizes, sizes, st.integers(1, 40), scales, st.booleans())
def test_sim_aou_is_the_cosine_of_the_updates(seed, queries, layers, dim, scale, dead):
    arrays = outputs(np.random.default_rng(seed), (queries, layers, dim), scale, dead)
    found = sim_aou(*torched(*arrays))
    agree(found, plain_sim_aou(*arrays))
    assert bool(found[-1, -1].isnan()) or not dead


@QUICK
@given(seeds, sizes, sizes, st.integers(2, 40), st.sampled_from([1e-3, 1.0, 1e6]), st.booleans())
def test_sim_aou_norm_is_the_same_of_outputs_scaled_to_length_one(seed, queries, layers, dim, scale, dead):
    arrays = outputs(np.random.default_rng(seed), (queries, layers, dim), scale, dead)
    found = sim_aou_norm(*torched(*arrays))
    agree(found, plain_sim_aou(*arrays, normalised=True))
    assert bool(found[-1, -1].isnan()) or not dead


keyed = st.lists(st.integers(1, 7), min_size=1, max_size=4)  # own tokens of each query: one of them may be alone


@QUICK
@given(seeds, keyed, sizes, sizes, scales, st.booleans())
def test_sim_am_is_the_mean_over_heads_of_cosines_over_the_keys_that_exist(seed, lengths, layers, heads, scale, dead):
    random = np.random.default_rng(seed)
    _, icl, tuned = maps(random, len(lengths), layers, heads, lengths, scale, dead)
    if dead:
        icl[0, 0, 0] = 0
    found = sim_am(*torched(icl, tuned))
    agree(found, plain_mean_over_heads(icl, tuned, lengths))
    assert not dead or heads > 1 or bool(found[0, 0].isnan())


@QUICK
@given(seeds, keyed, sizes, sizes, scales, st.booleans())
def test_sim_am_delta_and_alpha_are_the_same_of_the_changes(seed, lengths, layers, heads, scale, dead):
    """α is this with two finetuned traces in the places of ICL's and the finetuned one's."""
    zero, one, two = maps(np.random.default_rng(seed), len(lengths), layers, heads, lengths, scale, dead)
    found = sim_am_delta(*torched(zero, one, two))
    agree(found, plain_mean_over_heads(one - zero, two - zero, lengths))
    assert not dead or bool(found[-1, -1].isnan())


def test_heads_that_did_not_change_are_left_out_of_the_mean_and_none_left_is_nan():
    zero, icl, tuned = torched(*maps(np.random.default_rng(0), 1, 2, 2, [3], 1.0, dead=False))
    tuned[0, 0, 0] = zero[0, 0, 0]  # one head of layer 0
    icl[0, 1] = zero[0, 1]  # every head of layer 1
    found = sim_am_delta(zero, icl, tuned)
    other = plain_cosine((icl - zero)[0, 0, 1], (tuned - zero)[0, 0, 1])
    assert float(found[0, 0]) == pytest.approx(other, abs=1e-12)
    assert bool(found[0, 1].isnan())


def test_on_one_token_a_map_has_only_a_sign():
    zero, icl, tuned = (torch.full((1, 1, 1, 1), x) for x in (1.0, 3.0, -2.0))
    assert sim_am_delta(zero, icl, tuned).item() == -1
    assert sim_am(icl, zero).item() == 1


@QUICK
@given(seeds, st.floats(1e-6, 1e6), st.floats(1e-6, 1e6))
def test_likeness_does_not_change_with_the_sizes_of_the_updates(seed, a, b):
    random = np.random.default_rng(seed)
    zero = torch.zeros(2, 3, 8, dtype=torch.float64)
    icl, tuned = torched(*random.standard_normal((2, 2, 3, 8)))
    assert torch.allclose(sim_aou(zero, a * icl, b * tuned), sim_aou(zero, icl, tuned), atol=1e-12)
    none, one, two = (t[:, :, None] for t in (zero, icl, tuned))
    assert torch.allclose(sim_am_delta(none, a * one, b * two), sim_am_delta(none, one, two), atol=1e-12)
    assert torch.allclose(sim_am(a * one, b * two), sim_am(one, two), atol=1e-12)


@pytest.mark.parametrize("scale", [1e-30, 1e-170, 1e-300])
def test_updates_so_small_that_their_squares_underflow_still_have_a_direction(scale):
    zero = torch.zeros(1, 1, 2, dtype=torch.float64)
    icl, tuned = torch.tensor([[[1.0, 1.0]]]).double() * scale, torch.tensor([[[1.0, 0.0]]]).double() * scale
    assert sim_aou(zero, icl, tuned).item() == pytest.approx(math.sqrt(0.5), abs=1e-12)


def test_low_precision_traces_are_measured_in_float64():
    zero, icl, tuned = (t.bfloat16() for t in torched(*outputs(np.random.default_rng(1), (3, 2, 16), 1.0, False)))
    found = sim_aou(zero, icl, tuned)
    assert found.dtype == torch.float64
    agree(found, plain_sim_aou(*(t.double().numpy() for t in (zero, icl, tuned))))


# what noise scores (Deutch 2023, §3.1)


@pytest.mark.parametrize("ratio", [0.1, 1.0, math.sqrt(3), 5.0])
def test_sim_aou_norm_of_independent_random_updates_is_what_the_formula_says(ratio):
    s = math.sqrt(1 + ratio**2)
    wanted = (s - 1) ** 2 / ((s - 1) ** 2 + ratio**2)
    assert noise_score("SimAOU_norm", ratio, dim=4096, draws=200, seed=0).mean().item() == pytest.approx(
        wanted, abs=4e-3
    )


def test_noise_of_norm_root_three_scores_a_quarter_normalised_and_nothing_otherwise():
    normalised = noise_score("SimAOU_norm", math.sqrt(3), dim=4096, draws=400, seed=1)
    plain = noise_score("SimAOU", math.sqrt(3), dim=4096, draws=400, seed=1)
    assert normalised.mean().item() == pytest.approx(0.25, abs=3e-3)
    assert plain.mean().item() == pytest.approx(0.0, abs=3e-3)
    assert plain.std().item() == pytest.approx(1 / math.sqrt(4096), rel=0.15)
