"""Layers for which it is known what order does: nothing to attention without positions, something to the delta rule."""

import torch

from iclgd.labs.order.measures import spread
from iclgd.small import attention, fast
from iclgd.small.attention import Weights
from iclgd.small.fast import RULES
from iclgd.small.streams import generator

F64 = torch.float64
ANCHOR = 60  # what a generator is for: the first part of its key


def anchors(orders: int, seed: int) -> dict[str, float]:
    """The spread of a query's update over orders of twelve random demonstrations, by kind of layer.

    Random weights, two layers and two heads of attention that is not causal; the delta rule on the tokens themselves.
    """
    g = generator(ANCHOR, seed)
    x, y = torch.randn(12, 4, generator=g, dtype=F64) / 2, torch.randn(12, 1, generator=g, dtype=F64)
    query = torch.randn(3, 4, generator=g, dtype=F64) / 2
    weights = Weights(*(0.3 * torch.randn(2, 2, 5, 5, generator=g, dtype=F64) for _ in range(2)))
    rates = torch.full((12,), 0.5, dtype=F64)
    found: dict[str, list[torch.Tensor]] = {"linear attention": [], "softmax attention": [], "delta rule": []}
    for _ in range(orders):
        mixed = torch.randperm(12, generator=g)
        state = attention.tokens(x[mixed], y[mixed], query)
        for kind in ("linear", "softmax"):
            moved = attention.states(state, 12, weights, 2, kind)[-1] - state
            found[f"{kind} attention"].append(moved[12:])
        _, answers = fast.read(RULES["delta"], x[mixed], y[mixed], None, query, {"rate": rates})
        found["delta rule"].append(answers)
    return {name: float(spread(torch.stack(parts)).max()) for name, parts in found.items()}
