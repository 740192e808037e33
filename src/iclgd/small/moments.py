"""Episodes as linear attention sees them: the second moment of the demonstrations, drawn without drawing them.

For normal inputs and linear functions a demonstration is e = (x, y) = G z with z standard normal in dx + dy dimensions
and G = [[R, 0], [W R, σ I]], R Rᵀ = Σ. So Σ_i e_i e_iᵀ = G A Gᵀ with A ~ Wishart(I, N), and Bartlett's decomposition
A = L Lᵀ gives A from dx + dy columns at any N: L is lower triangular with L_jj² ~ χ²(N − j), counted from 0, and
standard normal entries below the diagonal; at N < dx + dy it has N columns.
"""

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Generator, Tensor

from iclgd.tasks.laws import LinearMap
from iclgd.tasks.regression import Regression


class Moments(NamedTuple):
    """What a stack of linear attention layers needs of an episode."""

    c: Float[Tensor, "*batch dim dim"]
    """(1/N) Σ e eᵀ of the demonstrations."""
    query: Float[Tensor, "*batch query dx"]
    target: Float[Tensor, "*batch query dy"]


def exact(task: Regression) -> bool:
    """Whether the moments of a family can be drawn by themselves."""
    return isinstance(task.function, LinearMap) and task.inputs.law == "normal"


def draw(
    task: Regression, episodes: int, generator: Generator, queries: int = 1, dtype: torch.dtype = torch.float32
) -> Moments:
    """Moments with the law of those of ``task.draw``; the cost does not depend on the number of demonstrations."""
    assert isinstance(task.function, LinearMap)
    x = task.inputs.draw(episodes, queries, generator, dtype)
    w = task.function.weights(episodes, generator, dtype)  # [episode, dy, dx]
    dy, dx = w.shape[-2:]
    level = torch.rand(episodes, 1, 1, generator=generator, dtype=dtype) if task.noise_varies else 1.0
    root = task.inputs.root.to(dtype)
    factor = bartlett(episodes, dx + dy, task.demos, generator, dtype)
    upper = root @ factor[:, :dx]
    lower = w @ upper + task.noise * level * factor[:, dx:]
    half = torch.cat([upper, lower], -2)  # [episode, dim, column]
    return Moments(half @ half.mT / task.demos, x, x @ w.mT)


def bartlett(
    batch: int, dim: int, degrees: int, generator: Generator, dtype: torch.dtype
) -> Float[Tensor, "batch dim column"]:
    """L with L Lᵀ ~ Wishart(I, degrees), min(dim, degrees) columns."""
    columns = min(dim, degrees)
    factor = torch.randn(batch, dim, columns, generator=generator, dtype=dtype).tril(-1)
    seed = int(torch.randint(2**62, (), generator=generator))
    squares = np.random.default_rng(seed).chisquare(degrees - np.arange(columns), (batch, columns))
    place = torch.arange(columns)
    factor[:, place, place] = torch.from_numpy(np.sqrt(squares)).to(dtype)
    return factor
