"""Random numbers that are a function of their seed and place: the same on every device, in chunks of any size.

A generator of one device draws other numbers than that of another, so that a null or an untrained model would not be
the same model on a GPU. Here number i of a seed is a hash of (seed, i), computed wherever the numbers are wanted.
"""

import math
from hashlib import sha256
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch
    from torch import Tensor

CHUNK = {"cpu": 2**16}  # numbers at a time: what a cache holds; elsewhere what keeps a device busy
LARGE = 2**24
LOGICAL = 0xFFFFFFFF
LARGEST = 2**32  # places that a seed has


def normal(
    shape: "tuple[int, ...] | torch.Size",
    seed: object,
    device: "torch.device | str" = "cpu",
    dtype: "torch.dtype | None" = None,
    first: int = 0,
) -> "Tensor":
    """Standard normal numbers: the inverse of the distribution function at `uniform`."""
    numbers = uniform(shape, seed, device, dtype, first)
    for part in numbers.view(-1).split(CHUNK.get(numbers.device.type, LARGE)):
        part.mul_(2).sub_(1).erfinv_().mul_(math.sqrt(2))
    return numbers


def uniform(
    shape: "tuple[int, ...] | torch.Size",
    seed: object,
    device: "torch.device | str" = "cpu",
    dtype: "torch.dtype | None" = None,
    first: int = 0,
) -> "Tensor":
    """Numbers strictly between 0 and 1, each an odd multiple of 2⁻²⁵; ``seed`` is anything with a repr of its own.

    Those of the places from ``first`` on, so that a part of a large tensor has the numbers it has in the whole.
    """
    import torch

    count = math.prod(shape)
    if first + count > LARGEST:
        raise ValueError(f"a seed has {LARGEST} numbers, not {first + count}")
    keys = [int.from_bytes(sha256(f"{seed!r} {i}".encode()).digest()[:4], "big", signed=True) for i in range(2)]
    numbers = torch.empty(count, device=device, dtype=torch.float64 if dtype is None else dtype)
    chunk = CHUNK.get(numbers.device.type, LARGE)
    for begin in range(0, count, chunk):
        stop = min(begin + chunk, count)
        place = torch.arange(first + begin, first + stop, device=device, dtype=torch.int64)
        mixed = _mix(_mix(place.to(torch.int32) ^ keys[0]) + keys[1])  # wraps above 2³¹
        numbers[begin:stop] = (_right(mixed, 8).to(numbers.dtype) + 0.5) * 2.0**-24
        numbers[begin:stop].clamp_(max=1 - torch.finfo(numbers.dtype).eps / 2)  # in float32 the largest rounds up to 1
    return numbers.view(shape)


def _mix(x: "Tensor") -> "Tensor":
    """A permutation of the 32-bit integers in which every bit hangs on all (xor, shift and multiply, twice)."""
    x = (x ^ _right(x, 16)) * 0x7FEB352D
    x = (x ^ _right(x, 15)) * (0x846CA68B - 2**32)
    return x ^ _right(x, 16)


def _right(x: "Tensor", bits: int) -> "Tensor":
    """A shift that brings in zeros: torch's own keeps the sign."""
    return (x >> bits) & (LOGICAL >> bits)
