"""Feature maps of the exponential kernel: exact relative to their lengths, whatever the lengths are."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from iclgd.labs.dual import features
from iclgd.labs.dual.features import (
    directions,
    gaussian_gram,
    gram_root,
    kernel_residual,
    log_lengths,
    log_random_features,
    log_random_variance,
    nearness,
    own_points,
    points,
    random_scores,
    taylor,
    taylor_terms,
    with_query,
    writable,
)

sizes = st.integers(1, 9)
seeds = st.integers(0, 2**20)
lengths = st.sampled_from([0.0, 0.1, 1.0, 7.0, 40.0])


def drawn(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@given(seeds, sizes, sizes, sizes, lengths)
@settings(deadline=None, max_examples=100)
def test_products_of_features_are_the_kernel_relative_to_their_lengths(
    seed: int, tokens: int, queries: int, dim: int, length: float
) -> None:
    """One root of the keys serves every query, and the query's row is exact relative to each of its own entries."""
    keys, asked = (drawn(seed + i, n, dim) * length / dim**0.5 for i, n in enumerate((tokens, queries)))
    apart = torch.exp(-(keys[:, None] - keys).square().sum(-1) / 2)
    near = torch.exp(-(asked[:, None] - keys).square().sum(-1) / 2)
    unit = with_query(gram_root(gaussian_gram(keys)), near)
    assert unit.shape == (queries, tokens + 1, tokens + 1)
    for psi, row in zip(unit, near, strict=True):
        assert (psi[1:] @ psi[1:].T - apart).abs().max() <= 3e-12
        assert (psi[1:] @ psi[0] - row).abs().max() <= 1e-300
        assert float(psi[0] @ psi[0]) == 1


@given(seeds, sizes, st.integers(1, 4))
@settings(deadline=None, max_examples=30)
def test_keys_that_coincide_with_each_other_and_with_the_query_have_features(seed: int, copies: int, dim: int) -> None:
    query = drawn(seed, dim)
    at = own_points(query, query.repeat(copies, 1))
    unit = with_query(gram_root(gaussian_gram(at[1:])), nearness(at)[None])[0]
    assert (unit @ unit.T - 1).abs().max() <= 3e-12


@given(seeds, st.integers(2, 9), sizes, lengths)
@settings(deadline=None, max_examples=50)
def test_the_gaussian_gram_matrix_is_the_kernel_over_the_lengths(
    seed: int, count: int, dim: int, length: float
) -> None:
    at = drawn(seed, 3, count, dim) * length / dim**0.5
    wanted = torch.exp(-(at[:, :, None] - at[:, None]).square().sum(-1) / 2)
    assert (gaussian_gram(at) - wanted).abs().max() <= 1e-11
    assert (nearness(at) - wanted[:, 0, 1:]).abs().max() <= 1e-11
    assert torch.allclose(log_lengths(at), at.norm(dim=-1) ** 2 / 2)


def test_own_points_are_the_query_and_then_the_keys() -> None:
    query, keys = drawn(0, 2, 3), drawn(1, 2, 4, 3)
    at = own_points(query, keys)
    assert torch.equal(at[:, 0], query)
    assert torch.equal(at[:, 1:], keys)


def test_the_residual_of_a_kernel_is_zero_for_its_features_and_large_for_noise() -> None:
    """The same with the query's axis kept right, as the prediction of a dual would have it."""
    at = drawn(2, 2, 41, 5)
    gram, near = gaussian_gram(at[:, 1:]), nearness(at)
    unit = with_query(gram_root(gram), near[:, None])[:, 0]
    assert kernel_residual(gram, near, unit).max() <= 1e-11
    noise = unit.clone()
    noise[:, 1:, 1:] = drawn(3, 2, 40, 40)
    noise = noise / noise.norm(dim=-1, keepdim=True)
    assert kernel_residual(gram, near, noise).min() >= 1


@pytest.mark.parametrize("pair", [(0, 3), (3, 0), (5, 5), (5, 7)])
def test_the_residual_sees_one_wrong_entry_of_the_kernel(pair: tuple[int, int]) -> None:
    at = drawn(4, 9, 30)
    whole = gaussian_gram(at)
    unit = with_query(gram_root(whole[1:, 1:]), whole[:1, 1:])[0]
    wrong = whole.clone()
    wrong[pair] += 1e-3
    wrong[pair[::-1]] = wrong[pair]
    if pair[0] and pair[1]:
        found = kernel_residual(wrong[1:, 1:], wrong[0, 1:], unit)
    else:
        found = kernel_residual(whole[1:, 1:], wrong[0, 1:], unit)
    assert float(found) == pytest.approx(1e-3 * (2**0.5 if pair[0] != pair[1] else 1), rel=1e-6)


def test_the_residual_is_the_frobenius_norm_and_above_every_entry() -> None:
    at = drawn(5, 60, 4)
    gram, near = gaussian_gram(at[1:]), nearness(at)
    unit = with_query(gram_root(gram), near[None])[0]
    noisy = unit + 1e-3 * drawn(6, 60, 60)
    off = noisy @ noisy.T - gaussian_gram(at)
    found = torch.stack([kernel_residual(gram, near, noisy, seed) for seed in range(50)])
    assert float(found.square().mean().sqrt()) == pytest.approx(float(off.norm()), rel=0.1)
    assert found.min() > off.abs().max()


@given(seeds, sizes, sizes, st.sampled_from([0.0, 0.3, 1.0, 10.0, 100.0, 590.0, 3000.0]))
@settings(deadline=None, max_examples=100)
def test_points_have_the_scores_but_for_one_number_and_can_be_written_down(
    seed: int, tokens: int, dim: int, scale: float
) -> None:
    keys, scores = drawn(seed, tokens, dim) * 30, drawn(seed + 1, tokens)
    scores = scores * scale / scores.abs().max()
    at, middle = points(scores, keys)
    got = torch.exp(at[1:] @ at[0] + middle - scores.max())
    assert (got - torch.exp(scores - scores.max())).abs().max() <= 1e-12
    assert bool(writable(at))
    assert float(torch.exp(at[1:] @ at[0] - log_lengths(at)[0] - log_lengths(at)[1:].max()).min()) > 1e-300


def test_points_keep_short_differences_of_keys_and_shrink_long_ones() -> None:
    keys = torch.tensor([[1.0, 0.0], [3.0, 0.0], [2.0, 1.5]], dtype=torch.float64)
    scores = torch.tensor([0.0, -1.0, -4.0], dtype=torch.float64)
    at, middle = points(scores, keys)
    assert float(middle) == -2
    assert torch.allclose(at[1:, 1:], keys - keys.mean(0))
    assert torch.allclose(at[0], torch.tensor([2**0.5, 0, 0], dtype=torch.float64))
    assert torch.allclose(at[1:, 0], torch.tensor([2.0, 1.0, -2.0], dtype=torch.float64) / 2**0.5)
    far, _ = points(scores, keys * 100)
    assert float(far[1:, 1:].norm(dim=-1).max()) == pytest.approx(features.REACH)
    flat, _ = points(scores * 0, keys)  # equal scores: the query has length 1 and no key has a part in its direction
    assert float(flat[0, 0]) == 1
    assert (flat[1:, 0] == 0).all()


def test_points_of_several_heads_are_those_of_each_head() -> None:
    """Keys are shrunk by the longest of their own head, measured over its coordinates."""
    keys = torch.stack([drawn(12, 4, 3), drawn(13, 4, 3) * 100])
    scores = drawn(14, 2, 4)
    at, middle = points(scores, keys)
    for head in range(2):
        alone, its_middle = points(scores[head], keys[head])
        assert torch.allclose(at[head], alone, rtol=1e-14)
        assert float(middle[head]) == float(its_middle)


def test_a_head_can_be_written_down_until_its_largest_weight_leaves_a_double() -> None:
    """‖q‖²/2 + ‖k‖²/2 − max k·q may be 600; the longest key counts, not the first."""
    query = torch.tensor([0.0, 0.0], dtype=torch.float64)
    for squared, fits in ((1199.9, True), (1200.1, False)):
        keys = torch.tensor([[1.0, 0.0], [0.0, squared**0.5]], dtype=torch.float64)
        assert bool(writable(own_points(query, keys))) == fits
    near = torch.tensor([[40.0, 0.0]], dtype=torch.float64)
    assert bool(writable(own_points(near[0], near)))  # as long as they like, where they point the same way
    assert not bool(writable(own_points(-near[0], near)))


def test_taylor_features_are_products_of_powers_over_roots_of_factorials() -> None:
    """1, x, x²/√2 of x = 2 and y = −3, the powers of the last coordinate running fastest."""
    x, y = torch.tensor([1, 2, 4 / 2**0.5]).double(), torch.tensor([1, -3, 9 / 2**0.5]).double()
    found = taylor(torch.tensor([[2.0, -3.0]]).double(), 3)
    assert torch.allclose(found[0], torch.outer(x, y).flatten())


def test_products_of_enough_taylor_features_are_the_kernel() -> None:
    at = drawn(15, 5, 2)
    products = at @ at.T
    phi = taylor(at, taylor_terms(float(products.abs().max())))
    assert torch.allclose(phi @ phi.T, torch.exp(products), rtol=1e-13)


def test_random_features_have_the_formula_of_the_performer() -> None:
    x, w = drawn(7, 2, 3, 4), drawn(8, 5, 4)
    for row in range(2):
        for token in range(3):
            for m in range(5):
                wanted = float(w[m] @ x[row, token] - x[row, token] @ x[row, token] / 2) - math.log(5) / 2
                assert float(log_random_features(x, w)[row, token, m]) == pytest.approx(wanted, abs=1e-12)


def test_random_scores_are_the_logarithms_of_products_of_random_features() -> None:
    keys, query, w = drawn(9, 2, 3, 4), drawn(10, 2, 4), drawn(11, 6, 4)
    phi = [torch.exp(log_random_features(x, w)) for x in (keys, query[:, None])]
    wanted = (phi[0] @ phi[1].mT)[..., 0].log()
    assert torch.allclose(random_scores(keys, query, w), wanted)


def test_the_variance_of_a_random_kernel_value_by_hand() -> None:
    keys, query = torch.tensor([[1.0, 2.0], [-1.0, -1.0]]).double(), torch.tensor([0.5, -1.0]).double()
    lengths = torch.tensor([1.5**2 + 1, 0.5**2 + 4]).double()
    assert torch.allclose(log_random_variance(keys, query), torch.log(torch.exp(lengths) - 1))


def test_directions_are_standard_normal_and_drawn_by_their_generator() -> None:
    w = directions(4000, 3, torch.Generator().manual_seed(0))
    assert w.shape == (4000, 3)
    assert w.mean().abs() <= 0.03
    assert float(w.var()) == pytest.approx(1, abs=0.03)
    assert torch.equal(w, directions(4000, 3, torch.Generator().manual_seed(0)))
