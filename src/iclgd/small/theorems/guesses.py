"""Weights that have a mean, and the query's label slot as a first guess: the best that any number of heads can do.

One layer of linear attention, whatever its heads, answers linearly in the products C_ab q_c of the second moment
C = (1/N) Σ e eᵀ of the demonstrations and the query token q = (x_q, slot); least squares on drawn episodes gives the
best such answer.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from iclgd.small import learners
from iclgd.small.attention import moment
from iclgd.tasks.regression import Episodes


def _products(episodes: Episodes, guess: Float[Tensor, "1 dx"] | None) -> Tensor:
    tokens = torch.cat([episodes.x, episodes.y], -1)
    dim = tokens.shape[-1]
    upper = torch.triu_indices(dim, dim)
    c = moment(tokens)[:, upper[0], upper[1]]  # [episode, pair]
    query = episodes.query[:, 0]
    products = (c[:, :, None] * query[:, None, :]).flatten(1)
    # with a guess in the slot the residual stream brings it; times C it is again a combination of the products
    return products if guess is None else torch.cat([products, query @ guess.mT], -1)


def best_heads(drawn: Episodes, fresh: Episodes, guess: Float[Tensor, "1 dx"] | None) -> float:
    """Mean squared error on fresh episodes of the answer that is best on drawn ones."""
    target = drawn.target[:, 0]
    weights = torch.linalg.lstsq(_products(drawn, guess), target).solution
    return float((_products(fresh, guess) @ weights - fresh.target[:, 0]).square().mean())


def best_step(drawn: Episodes, fresh: Episodes, start: Float[Tensor, "1 dx"]) -> float:
    """The same for one gradient step from ``start``, its rate fitted to drawn episodes."""

    def parts(episodes: Episodes) -> tuple[Tensor, Tensor]:
        begin = start.expand(len(episodes.x), -1, -1)
        step = learners.descent(begin, episodes.x, episodes.y)
        return learners.predict(begin, episodes.query), learners.predict(step, episodes.query)

    zero, step = parts(drawn)
    rate = float((step * (drawn.target - zero)).sum() / step.square().sum())
    zero, step = parts(fresh)
    return float((zero + rate * step - fresh.target).square().mean())
