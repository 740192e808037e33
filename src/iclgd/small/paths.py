"""Gradient descent and Newton's iteration as paths: the same weights at any number of steps, whole or not.

In the eigenbasis of S = Xᵀ X, with λ over the largest one, n steps of gradient descent from 0 at the rate 1/λ_max leave
(1 − λ)^n of each direction; k of Newton's iterations leave (1 − λ)^(2^k) from αI and (1 − λ²)^(2^k) from αS. So from αI
the two are one path at different speeds, and the number of steps of gradient descent is a clock for both (Fu 2023).
"""

import torch
from jaxtyping import Float
from torch import Tensor

from iclgd.small.learners import W, X, Y, least_squares


def along(x: X, y: Y, steps: float, power: int = 1) -> W:
    """The least-squares weights less (1 − λ^power)^steps of each direction; ``power`` 2 is Newton's path from αS."""
    values, vectors = torch.linalg.eigh(x.mT @ x)
    left = (1 - (values / values[..., -1:]).clamp(0, 1) ** power) ** steps
    return least_squares(x, y) @ vectors @ torch.diag_embed(1 - left) @ vectors.mT


def nearest(
    answer: Float[Tensor, "*batch query dy"],
    x: X,
    y: Y,
    query: Float[Tensor, "*batch query dx"],
    clock: Float[Tensor, " time"],
    power: int = 1,
) -> tuple[float, float]:
    """(n, E ‖ŷ − ŷ_n‖²): where on a path an answer is nearest, of the times of a clock."""
    values, vectors = torch.linalg.eigh(x.mT @ x)
    ratio = 1 - (values / values[..., -1:]).clamp(0, 1) ** power  # [*batch, dx]
    parts = (query @ vectors)[..., None] * (vectors.mT @ least_squares(x, y).mT)[..., None, :, :]  # query, dx, dy
    gaps = torch.stack(
        [
            (answer - (parts * (1 - ratio**n)[..., None, :, None]).sum(-2)).square().sum(-1).mean()
            for n in clock.tolist()
        ]
    )
    best = int(gaps.argmin())
    return float(clock[best]), float(gaps[best])
