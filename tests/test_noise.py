"""Numbers by seed and place: random enough, and the same however they are drawn."""

import math

import numpy as np
import pytest
import torch
from scipy import stats

from iclgd import noise

SIZE = 200_000


def slowly(seed, place: int) -> float:
    """The same number in Python integers, which do not wrap."""
    from hashlib import sha256

    keys = [int.from_bytes(sha256(f"{seed!r} {i}".encode()).digest()[:4], "big") for i in range(2)]

    def mix(x):
        x = ((x ^ (x >> 16)) * 0x7FEB352D) % 2**32
        x = ((x ^ (x >> 15)) * 0x846CA68B) % 2**32
        return x ^ (x >> 16)

    return ((mix((mix(place ^ keys[0]) + keys[1]) % 2**32) >> 8) + 0.5) / 2**24


@pytest.mark.parametrize("seed", [0, 1, ("zero", 3), 2**40])
def test_a_number_is_the_hash_of_its_seed_and_place(seed):
    found = noise.uniform((50,), seed)
    assert found.tolist() == [slowly(seed, place) for place in range(50)]


def test_numbers_do_not_depend_on_chunks_or_shape(monkeypatch):
    whole = noise.normal((6, 50), 3)
    monkeypatch.setitem(noise.CHUNK, "cpu", 7)
    assert torch.equal(noise.normal((300,), 3).view(6, 50), whole)


def test_uniform_numbers_are_uniform_and_independent_of_their_neighbours():
    found = noise.uniform((SIZE,), 0).numpy()
    assert stats.kstest(found, "uniform").pvalue > 1e-3
    for lag in (1, 2, 3, 16, 576):
        assert abs(np.corrcoef(found[:-lag], found[lag:])[0, 1]) < 4 / math.sqrt(SIZE)
    bits = (found * 2**24).astype(int)
    counts = [(bits >> b & 1).mean() for b in range(24)]
    assert max(abs(np.array(counts) - 0.5)) < 4 * 0.5 / math.sqrt(SIZE)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_normal_numbers_have_the_normals_moments_and_tails(dtype):
    found = noise.normal((SIZE,), 1, dtype=dtype)
    assert found.dtype == dtype
    assert bool(found.isfinite().all())
    assert stats.kstest(found.numpy(), "norm").pvalue > 1e-3
    assert abs(float((found**4).mean()) - 3) < 5 * math.sqrt(96 / SIZE)


def test_seeds_are_unrelated():
    all_of = torch.stack([noise.normal((20_000,), seed) for seed in range(20)])
    apart = torch.corrcoef(all_of) - torch.eye(20, dtype=torch.float64)
    assert float(apart.abs().max()) < 5 / math.sqrt(20_000)


def test_the_ends_are_never_reached():
    """erfinv of ±1 is infinite; the outermost numbers are half a step inside."""
    assert torch.erfinv(torch.tensor(2 * (0.5 / 2**24) - 1)).isfinite()


def test_more_numbers_than_a_seed_has_are_refused():
    with pytest.raises(ValueError, match="4294967296"):
        noise.uniform((2**33,), 0)


def test_numbers_of_single_precision_stay_below_one_and_are_finite():
    """Four of these 28 million round up to 1 otherwise, and the weights of a model that large would be infinite."""
    drawn = noise.uniform((49152, 576), (0, 1), dtype=torch.float32)
    assert float(drawn.min()) > 0
    assert float(drawn.max()) < 1
    assert noise.normal((49152, 576), (0, 1), dtype=torch.float32).isfinite().all()
