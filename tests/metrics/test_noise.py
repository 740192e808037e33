"""Random numbers by counting: they look random, and depend on nothing but their seed and their place."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from iclgd.metrics import noise

COUNT = 200_000
BITS = (1 << 64) - 1


def splitmix(state: int) -> int:
    """One output of SplitMix64, in whole numbers of Python, from the published code."""
    z = (state + 0x9E3779B97F4A7C15) & BITS
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & BITS
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & BITS
    return z ^ (z >> 31)


def plain_mix(z: int) -> int:
    return splitmix((z - 0x9E3779B97F4A7C15) & BITS)


@given(st.integers(0, 2**31), st.integers(0, 2**40))
def test_bits_are_those_of_splitmix64(seed, place):
    start = plain_mix(((2 * seed + 1) * 0x9E3779B97F4A7C15) & BITS)
    wanted = splitmix((start + place * 0x9E3779B97F4A7C15) & BITS)
    found = int(noise.bits_of(torch.tensor([place]), seed)) & BITS
    assert found == wanted


def test_the_published_first_outputs_of_seed_0():
    assert [splitmix(i * 0x9E3779B97F4A7C15 & BITS) for i in range(2)] == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4]


@pytest.mark.parametrize("make, law", [(noise.normal, stats.norm), (noise.uniform, stats.uniform)])
def test_numbers_follow_their_law_and_neighbours_and_seeds_are_independent(make, law):
    drawn = make((COUNT,), 5).numpy()
    assert stats.kstest(drawn, law.cdf).pvalue > 1e-3
    for moment in (1, 2, 3, 4):
        wanted, spread = law.moment(moment), np.sqrt(law.moment(2 * moment) - law.moment(moment) ** 2)
        assert abs((drawn**moment).mean() - wanted) < 4.5 * spread / COUNT**0.5
    other = make((COUNT,), 6).numpy()
    for lag in (1, 2, 3, 64):
        assert abs(np.corrcoef(drawn[lag:], drawn[:-lag])[0, 1]) < 4.5 / COUNT**0.5
        assert abs(np.corrcoef(drawn[lag:] ** 2, drawn[:-lag] ** 2)[0, 1]) < 4.5 / COUNT**0.5
    assert abs(np.corrcoef(drawn, other)[0, 1]) < 4.5 / COUNT**0.5


@pytest.mark.parametrize("make", [noise.normal, noise.uniform])
def test_a_number_depends_on_its_place_and_not_on_shape_or_pieces(make, monkeypatch):
    whole = make((7, 11, 13), 3)
    assert torch.equal(whole.flatten(), make((7 * 11 * 13,), 3))
    assert torch.equal(make((500,), 3), whole.flatten()[:500])
    monkeypatch.setitem(noise.AT_ONCE, "cpu", 64)
    assert torch.equal(make((7, 11, 13), 3), whole)
    assert whole.dtype == torch.float64
    assert not torch.equal(make((7, 11, 13), 4), whole)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize("make", [noise.normal, noise.uniform])
def test_every_device_gives_the_same_numbers(make):
    assert float((make((COUNT,), 3, "cuda").cpu() - make((COUNT,), 3)).abs().max()) <= 1e-12
