"""Layers that learn as they read: the mesa layer, the delta rule, test-time training."""

import torch

from iclgd.small import learners
from iclgd.small.identities.drawn import F64, apart, source, whole
from iclgd.small.recurrent import delta_rule, delta_weights, mesa, mesa_weights
from iclgd.small.theorems import fast_weights
from iclgd.small.theorems.duality import linear_attention, outer_update
from iclgd.small.theorems.fast_weights import by_autograd, chunked_delta, gated_delta


def _stream(seed: int, time: int = 40) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Generator]:
    g = source(seed)
    dk, dv = whole(3, 8, g), whole(2, 5, g)
    keys = torch.randn(time, dk, generator=g, dtype=F64) / dk**0.5
    return keys, torch.randn(time, dv, generator=g, dtype=F64), torch.randn(time, dk, generator=g, dtype=F64), g


def mesa_is_ridge(seed: int) -> dict[str, float]:
    """The mesa layer at every time is ridge regression on what was read (von Oswald 2023b)."""
    keys, values, queries, _ = _stream(seed)
    found = mesa(keys, values, queries, 0.3)
    solved = [
        learners.predict(learners.ridge(keys[: t + 1], values[: t + 1], 0.3), queries[t : t + 1]) for t in range(40)
    ]
    return {"residual": apart(found, torch.cat(solved))}


def mesa_by_conjugate_gradients(seed: int) -> dict[str, float]:
    """G (H + Λ)⁻¹ q by conjugate gradients: exact after as many steps as a key has dimensions (MesaNet 2025)."""
    keys, values, queries, _ = _stream(seed)
    dk, query = keys.shape[-1], queries[-1]
    h = keys.T @ keys + 0.3 * torch.eye(dk, dtype=F64)
    answer = mesa_weights(keys, values, 0.3)[-1] @ query
    written = outer_update(values, keys)
    after = {steps: apart(written @ fast_weights.conjugate_gradients(h, query, steps), answer) for steps in (1, dk)}
    return {"residual": after[dk], "after one step": after[1]}


def delta_is_sgd(seed: int) -> dict[str, float]:
    """The delta rule, plain, gated and in chunks, is SGD on ½‖S k − v‖² with one pair a step, taken by autograd.

    ``order`` is what reading the pairs in reverse changes in the state, relative to it.
    """
    keys, values, queries, g = _stream(seed)
    rates, decays = torch.rand(2, 40, generator=g, dtype=F64)
    descent = by_autograd(keys, values, rates, fast_weights.squared)[-1]
    gated = by_autograd(keys, values, rates, fast_weights.squared, decays)[-1]
    constant = delta_weights(keys, values, 0.5)[-1]
    backwards = delta_weights(keys.flip(0), values.flip(0), 0.5)[-1]
    every = delta_rule(keys, values, queries, 0.5)
    half = torch.full((40,), 0.5, dtype=F64)
    return {
        "residual": apart(constant, by_autograd(keys, values, half, fast_weights.squared)[-1]),
        "gated": apart(gated_delta(keys, values, rates, decays), gated),
        "chunks": max(apart(chunked_delta(keys, values, rates, size), descent) for size in (8, 16, 64)),
        "output": apart(every[-1], constant @ queries[-1]),
        "order": float((backwards - constant).norm() / constant.norm()),
    }


def linear_attention_is_sgd(seed: int) -> dict[str, float]:
    """Linear attention is SGD on −⟨S k, v⟩, and one batch step from 0; gradient ascent gives its negative.

    A decay of the state is an L2 term: the step of the loss + (1 − α)/(2β) ‖S‖².
    """
    keys, values, queries, g = _stream(seed)
    one = torch.ones(40, dtype=F64)
    read = linear_attention(values, keys, queries)
    online = by_autograd(keys, values, one, fast_weights.inner)[-1]
    upwards = by_autograd(keys, values, -one, fast_weights.inner)[-1]
    decay = float(torch.rand((), generator=g)) * 0.5 + 0.5

    def penalised(s: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return fast_weights.inner(s, k, v) + (1 - decay) / 2 * s.square().sum()

    decayed = values.new_zeros(values.shape[-1], keys.shape[-1])
    for k, v in zip(keys, values, strict=True):
        decayed = decay * decayed + torch.outer(v, k)
    batch = -torch.func.grad(lambda s: sum(fast_weights.inner(s, k, v) for k, v in zip(keys, values, strict=True)))(
        torch.zeros_like(decayed)
    )
    return {
        "residual": apart(queries @ online.T, read),
        "batch": apart(queries @ batch.T, read),
        "ascent": apart(-upwards, online),
        "decay": apart(decayed, by_autograd(keys, values, one, penalised)[-1]),
    }


def softmax_is_local_mean(seed: int) -> dict[str, float]:
    """Softmax attention is the z that minimises Σ exp(q·k_i) ‖z − v_i‖²: a local constant fit (Wang 2025)."""
    keys, values, queries, _ = _stream(seed)
    weights = (queries @ keys.T).softmax(-1)
    z = weights @ values
    at = z.clone().requires_grad_()
    loss = (weights * (at[:, None] - values).square().sum(-1)).sum()
    (gradient,) = torch.autograd.grad(loss, at)
    solved = torch.stack(
        [torch.linalg.lstsq(w.sqrt()[:, None], w.sqrt()[:, None] * values).solution[0] for w in weights]
    )
    return {"residual": apart(z, solved), "gradient": float(gradient.abs().max())}
