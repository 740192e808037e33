"""Float32 products on the tensor cores of a GPU, at float32's precision.

A float32 has 24 bits, and a tensor core rounds what it multiplies to tf32's 11 and adds in float32. A matrix is
therefore split, A = A₁ + A₂ and a rest below 2⁻²² of A, where both parts are tf32 numbers:

    A B ≈ A₁B₁ + A₁B₂ + A₂B₁

What is left out, A₂B₂ and the rests, is of the size of the rounding of one float32 product. Three products on tensor
cores take less time than one without them (the scheme is Markidis 2018's and Ootomo and Yokota's, 2022).
`benchmarks/training.py` measures the errors of both beside float64.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from jaxtyping import Float
from torch import Tensor

LOW = 0x1FFF  # the 13 bits of a float32 that tf32 does not have
HALF = 0x1000


def pays(matrix: Tensor) -> bool:
    """Whether there are tensor cores for it, and float32 was asked for."""
    if matrix.device.type != "cuda" or matrix.dtype != torch.float32:
        return False
    return torch.get_float32_matmul_precision() == "highest" and torch.cuda.get_device_capability(matrix.device) >= (8,)


def rounded(matrix: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """To the nearest tf32 number; what is as near to two goes away from 0."""
    return ((matrix.view(torch.int32) + HALF) & ~LOW).view(torch.float32)


def split(matrix: Float[Tensor, "*shape"]) -> tuple[Float[Tensor, "*shape"], Float[Tensor, "*shape"]]:
    """Its two parts, the large and the small one."""
    large = rounded(matrix)
    return large, rounded(matrix - large)


def multiplied(matrix: Float[Tensor, "token dim"]) -> "Whole | Split":
    """A matrix that is multiplied often, by the products that are quick where it is."""
    return Split(matrix) if pays(matrix) else Whole(matrix)


class Whole:
    """As it is."""

    def __init__(self, matrix: Float[Tensor, "token dim"]):
        self.matrix = matrix

    def right(self, rows: Float[Tensor, "row dim"], out: Float[Tensor, "row token"]) -> Float[Tensor, "row token"]:
        """rows · matrixᵀ."""
        return torch.mm(rows, self.matrix.T, out=out)

    def left(self, rows: Float[Tensor, "row token"], out: Float[Tensor, "row dim"]) -> Float[Tensor, "row dim"]:
        """rows · matrix."""
        return torch.mm(rows, self.matrix, out=out)


class Split:
    """In parts."""

    def __init__(self, matrix: Float[Tensor, "token dim"]):
        large, small = split(matrix)
        self.dim = matrix.shape[1]
        self.parts = torch.cat([large, small, large], 1)  # side by side: three products are one of three times the dim

    def right(self, rows: Float[Tensor, "row dim"], out: Float[Tensor, "row token"]) -> Float[Tensor, "row token"]:
        large, small = split(rows)
        with _tensor_cores():
            return torch.mm(torch.cat([large, large, small], 1), self.parts.T, out=out)

    def left(self, rows: Float[Tensor, "row token"], out: Float[Tensor, "row dim"]) -> Float[Tensor, "row dim"]:
        large, small = split(rows)
        with _tensor_cores():
            both = torch.mm(large, self.parts[:, : 2 * self.dim])
            torch.mm(small, self.parts[:, : self.dim], out=out)
        return out.add_(both[:, : self.dim]).add_(both[:, self.dim :])


@contextmanager
def _tensor_cores() -> Iterator[None]:
    """Products of float32 on tensor cores, which the numbers in them do not notice."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
