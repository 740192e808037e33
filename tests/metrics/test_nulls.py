"""Nulls keep what they should keep, and nothing else."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from iclgd.metrics.likeness import sim_am_delta, sim_aou
from iclgd.metrics.nulls import isotropic, isotropic_maps, other_query, other_query_maps, partners, uniform

QUICK = settings(max_examples=30, deadline=None)
seeds = st.integers(0, 2**31)


def traces(seed, *shape):
    random = np.random.default_rng(seed)
    return [torch.from_numpy(random.standard_normal(shape)) for _ in range(2)]


def maps(seed, lengths, layers=2, heads=3):
    keys = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    zero, tuned = traces(seed, len(lengths), layers, heads, max(lengths))
    return zero * keys[:, None, None], tuned * keys[:, None, None], keys


def sizes_of(zero, changed):
    return (changed - zero).norm(dim=-1)


@QUICK
@given(seeds, st.integers(1, 5), st.integers(1, 3), st.integers(1, 20))
def test_random_directions_have_the_sizes_of_the_updates(seed, queries, layers, dim):
    zero, tuned = traces(seed, queries, layers, dim)
    made = isotropic(zero, tuned, seed)
    assert torch.allclose(sizes_of(zero, made), sizes_of(zero, tuned), atol=1e-12)


def test_random_directions_lean_nowhere():
    zero, tuned = traces(0, 400, 1, 64)
    made = isotropic(zero, tuned, 1)
    cosines = sim_aou(zero, tuned, made)
    assert abs(float(cosines.mean())) < 4 * (1 / 64) ** 0.5 / 400**0.5
    assert float(cosines.std()) == pytest.approx((1 / 64) ** 0.5, rel=0.15)
    assert abs(float((made - zero).mean())) < 0.02


lengths = st.lists(st.integers(1, 6), min_size=1, max_size=5)


@QUICK
@given(seeds, lengths)
def test_random_maps_have_the_sizes_of_the_updates_and_no_noise_where_there_is_no_key(seed, lengths):
    zero, tuned, keys = maps(seed, lengths)
    made = isotropic_maps(zero, tuned, keys, seed)
    assert torch.allclose(sizes_of(zero, made), sizes_of(zero, tuned), atol=1e-12)
    assert (made * ~keys[:, None, None] == 0).all()


@pytest.mark.parametrize("null", [isotropic, other_query])
def test_a_null_of_no_update_is_no_update(null):
    zero, _ = traces(0, 4, 2, 8)
    assert torch.equal(null(zero, zero, 3), zero)


@QUICK
@given(seeds, st.integers(2, 40))
def test_partners_are_a_permutation_without_fixed_points(seed, count):
    found = partners(count, seed)
    assert sorted(found) == list(range(count))
    assert all(partner != query for query, partner in enumerate(found))


def test_partners_differ_by_seed():
    assert len({tuple(partners(6, seed)) for seed in range(20)}) > 10


@QUICK
@given(seeds, st.integers(2, 6))
def test_another_querys_update_is_exactly_that(seed, queries):
    zero, tuned = traces(seed, queries, 2, 5)
    made = other_query(zero, tuned, seed)
    for query, partner in enumerate(partners(queries, seed)):
        assert torch.allclose(made[query] - zero[query], tuned[partner] - zero[partner], atol=1e-12)


@QUICK
@given(seeds, st.lists(st.integers(1, 6), min_size=2, max_size=5))
def test_another_querys_map_is_aligned_at_the_last_token(seed, lengths):
    zero, tuned, keys = maps(seed, lengths)
    made = other_query_maps(zero, tuned, keys, seed)
    for query, partner in enumerate(partners(len(lengths), seed)):
        for back in range(1, max(lengths) + 1):  # counted from the last token
            own = lengths[query] - back
            if own < 0:
                continue
            there = lengths[partner] - back
            wanted = (tuned - zero)[partner, ..., there] if there >= 0 else torch.zeros(2, 3, dtype=torch.float64)
            assert torch.allclose((made - zero)[query, ..., own], wanted, atol=1e-12)
    assert (made * ~keys[:, None, None] == 0).all()


def test_one_query_alone_has_no_other_query():
    """Undefined, not the query's own update, which would be no null at all."""
    zero, tuned = traces(0, 1, 2, 5)
    assert sim_aou(zero, tuned, other_query(zero, tuned, 0)).isnan().all()
    zero, tuned, keys = maps(0, [4])
    assert sim_am_delta(zero, tuned, other_query_maps(zero, tuned, keys, 0)).isnan().all()


def test_uniform_updates_are_positive_numbers_below_one_as_in_the_papers_code():
    zero, icl = traces(0, 50, 2, 64)
    update = uniform(zero, 7) - zero
    assert float(update.min()) >= -1e-12
    assert float(update.max()) <= 1
    assert float(update.mean()) == pytest.approx(0.5, abs=0.02)
    shifted = sim_aou(zero, icl + 3, uniform(zero, 7))
    assert float(shifted.mean()) > 0.5  # it measures the mean component of an update, whatever it means


@pytest.mark.parametrize("null", [isotropic, other_query])
def test_a_null_is_drawn_by_its_seed(null):
    zero, tuned = traces(0, 6, 2, 8)
    assert torch.equal(null(zero, tuned, 1), null(zero, tuned, 1))
    assert not torch.equal(null(zero, tuned, 1), null(zero, tuned, 2))
