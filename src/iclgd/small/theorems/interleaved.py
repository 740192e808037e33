"""Inputs and labels as separate tokens: a softmax layer that copies, then gradient descent (von Oswald 2023, prop. 2).

Tokens are (content x, content y, copy of x, position): begin, x_1, y_1, …, x_N, y_N, x_q. The first layer gives every
token its predecessor's x; a label token then holds the pair (x_i, y_i) and linear attention goes on as if the pairs had
been given. The begin token, which is empty, gives x_1 a predecessor, so that the construction holds for any W₀ and any
number of steps. Departure: the public code has no begin token and trains the layers.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from iclgd.small.attention import Weights

F64 = torch.float64


def frequencies(pairs: int, positions: int) -> Float[Tensor, " pair"]:
    """Geometric from 2π/3 down to half a turn over all positions: near neighbours differ, far ones do not return."""
    return torch.logspace(math.log10(2 * math.pi / 3), math.log10(math.pi / max(positions, 2)), pairs, dtype=F64)


def positions(count: int, pairs: int) -> Float[Tensor, "token position"]:
    """(cos ω t, sin ω t) for each frequency, t = 0 … count − 1."""
    angle = torch.arange(count, dtype=F64)[:, None] * frequencies(pairs, count)
    return torch.cat([angle.cos(), angle.sin()], -1)


def back_one(count: int, pairs: int) -> Float[Tensor, "position position"]:
    """The rotation that takes the position vector of t to that of t − 1."""
    cos, sin = (torch.diag(f(frequencies(pairs, count))) for f in (torch.cos, torch.sin))
    return torch.cat([torch.cat([cos, sin], 1), torch.cat([-sin, cos], 1)])


def interleave(
    x: Float[Tensor, "*batch demo dx"],
    y: Float[Tensor, "*batch demo dy"],
    query: Float[Tensor, "*batch dx"],
    pairs: int = 5,
    start: Float[Tensor, "dy dx"] | None = None,
) -> Float[Tensor, "*batch token dim"]:
    """begin, x_1, y_1, …, x_N, y_N, x_q: all but the last are the demonstrations that attention may read."""
    *batch, demos, dx = x.shape
    dy, count = y.shape[-1], 2 * demos + 2
    state = x.new_zeros(*batch, count, 2 * dx + dy + 2 * pairs)
    state[..., 1:-1:2, :dx] = x
    state[..., 2:-1:2, dx : dx + dy] = y
    state[..., -1, :dx] = query
    if start is not None:
        state[..., -1, dx : dx + dy] = -query @ start.T
    state[..., 2 * dx + dy :] = positions(count, pairs)
    return state


def copy_layer(dx: int, dy: int, demos: int, pairs: int = 5, error: float = 1e-18) -> Weights:
    """Softmax attention sharp enough that what leaks from other tokens is below ``error``."""
    count, content = 2 * demos + 2, 2 * dx + dy
    place = positions(count, pairs)
    likeness = place @ place[0]
    gap = float(likeness[0] - likeness[1:].max())
    qk, pv = torch.zeros(2, content + 2 * pairs, content + 2 * pairs, dtype=F64)
    qk[content:, content:] = back_one(count, pairs) * math.log(count / error) / gap
    pv[dx + dy : content, :dx] = torch.eye(dx)
    return Weights(qk[None, None], pv[None, None])


def descent_layer(
    dx: int, dy: int, demos: int, rate: float, pairs: int = 5, start: Float[Tensor, "dy dx"] | None = None
) -> Weights:
    """The GD step for these tokens: keys are copies, queries are x or its copy, whichever the token has.

    Attention divides by the 2N + 1 tokens it reads, of which N carry a pair; the rate makes up for it.
    """
    content = 2 * dx + dy
    qk, pv = torch.zeros(2, content + 2 * pairs, content + 2 * pairs, dtype=F64)
    x, y, copy = slice(0, dx), slice(dx, dx + dy), slice(dx + dy, content)
    qk[copy, x] = qk[copy, copy] = torch.eye(dx, dtype=F64)
    scale = rate * (2 * demos + 1) / demos
    pv[y, y] = -scale * torch.eye(dy, dtype=F64)
    if start is not None:
        pv[y, copy] = scale * start.to(F64)
    return Weights(qk[None, None], pv[None, None])
