"""Random numbers by counting: the i-th number of a seed is a function of the seed and i alone.

Every device gives the same ones, in any order and in pieces of any size. Bits are SplitMix64's (Steele, Lea and Flood
2014): a counter in steps of the golden ratio, mixed by shifts and products of 64-bit whole numbers, which wrap around.
Normal numbers are Box and Muller's (1958), two from two uniform ones, in float64.
"""

import math
from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

STEP, FIRST, SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
AT_ONCE = {"cpu": 2**17, "cuda": 2**22}  # numbers made at once: what fits a cache, what fills a device


def normal(shape: Sequence[int], seed: int, device: torch.device | str = "cpu") -> Tensor:
    """Independent standard normal numbers, in float64."""
    return _filled(shape, seed, device, _normal)


def uniform(shape: Sequence[int], seed: int, device: torch.device | str = "cpu") -> Tensor:
    """Independent numbers from [0, 1), in float64."""
    return _filled(shape, seed, device, _unit)


def _filled(shape: Sequence[int], seed: int, device: torch.device | str, numbers: Callable[[Tensor], Tensor]) -> Tensor:
    made = torch.empty(math.prod(shape), dtype=torch.float64, device=device)
    size = AT_ONCE[made.device.type]
    for start in range(0, len(made), size):
        part = made[start : start + size]
        count = len(part) + len(part) % 2
        index = torch.arange(start, start + count, device=device)
        part.copy_(numbers(bits_of(index, seed))[: len(part)])
    return made.view(*shape)


def bits_of(index: Int[Tensor, " n"], seed: int) -> Int[Tensor, " n"]:
    """64 random bits for each index; another seed starts the counter elsewhere."""
    start = _mixed(torch.tensor([seed * 2 + 1], device=index.device) * _signed(STEP))
    return _mixed((index + 1) * _signed(STEP) + start)


def _mixed(z: Int[Tensor, " n"]) -> Int[Tensor, " n"]:
    z = (z ^ _shifted(z, 30)) * _signed(FIRST)
    z = (z ^ _shifted(z, 27)) * _signed(SECOND)
    return z ^ _shifted(z, 31)


def _shifted(z: Int[Tensor, " n"], by: int) -> Int[Tensor, " n"]:
    """To the right, zeros coming in: torch's own shift copies the sign."""
    return (z >> by) & ((1 << (64 - by)) - 1)


def _signed(constant: int) -> int:
    """The same 64 bits as a signed number."""
    return constant - (1 << 64) if constant >> 63 else constant


def _unit(bits: Int[Tensor, " n"]) -> Float[Tensor, " n"]:
    """The highest 53 bits as a number from [0, 1)."""
    return _shifted(bits, 11).double() * 2.0**-53


def _normal(bits: Int[Tensor, " n"]) -> Float[Tensor, " n"]:
    """√(−2 log u) cos 2πv and √(−2 log u) sin 2πv of neighbours u from (0, 1] and v from [0, 1)."""
    u, v = _unit(bits).view(-1, 2).unbind(-1)
    length, angle = (-2 * torch.log1p(-u)).sqrt(), v * (2 * math.pi)
    return torch.stack([length * angle.cos(), length * angle.sin()], -1).flatten()
