"""What identities share: sizes and inputs by seed, and how far apart two sides are."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from iclgd.small.streams import generator

F64 = torch.float64
IDENTITY = 40  # what a generator is for: the first part of its key


class Problem(NamedTuple):
    """A regression in context, with everything drawn afresh."""

    x: Float[Tensor, "batch demo dx"]
    y: Float[Tensor, "batch demo dy"]
    query: Float[Tensor, "batch query dx"]
    generator: torch.Generator

    @property
    def sizes(self) -> tuple[int, int, int]:
        """dx, dy and the number of demonstrations."""
        return self.x.shape[-1], self.y.shape[-1], self.x.shape[-2]

    @property
    def rate(self) -> float:
        """Below 1/λ of the largest eigenvalue, since ‖x‖² ≤ dx: descent converges and rounding does not grow."""
        return 0.9 / self.x.shape[-1]

    def normal(self, *shape: int) -> Tensor:
        return torch.randn(*shape, generator=self.generator, dtype=F64)


def source(seed: int) -> torch.Generator:
    return generator(IDENTITY, seed)


def whole(least: int, most: int, g: torch.Generator) -> int:
    """A whole number, both ends included."""
    return int(torch.randint(least, most + 1, (), generator=g))


def problem(seed: int, batch: int = 3, queries: int = 2, dy: int | None = None) -> Problem:
    """Inputs in [−1, 1], any labels, sizes by the seed."""
    g = source(seed)
    dx, outputs, demos = whole(2, 8, g), whole(1, 4, g), whole(3, 12, g)
    x, query = (torch.rand(batch, n, dx, generator=g, dtype=F64) * 2 - 1 for n in (demos, queries))
    return Problem(x, torch.randn(batch, demos, dy or outputs, generator=g, dtype=F64), query, g)


def apart(one: Tensor, two: Tensor) -> float:
    """The largest difference, relative to the largest number of the second side (or to 1, if that is smaller)."""
    return float((one - two).abs().max()) / max(1.0, float(two.abs().max()))
