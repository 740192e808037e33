"""Layers with a state that is trained as they read: linear attention, the delta rule with gates, and their chunks.

The state S maps keys to values; its loss on one pair is ½‖S k − v‖², or −⟨S k, v⟩ for linear attention.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

Keys = Float[Tensor, "time dk"]
Values = Float[Tensor, "time dv"]
State = Float[Tensor, "dv dk"]


def squared(s: State, k: Tensor, v: Tensor) -> Tensor:
    return 0.5 * (s @ k - v).square().sum()


def inner(s: State, k: Tensor, v: Tensor) -> Tensor:
    return -(s @ k) @ v


def by_autograd(
    keys: Keys,
    values: Values,
    rates: Float[Tensor, " time"],
    loss: Callable[[State, Tensor, Tensor], Tensor],
    decays: Float[Tensor, " time"] | None = None,
    start: State | None = None,
    minibatch: int = 1,
) -> list[State]:
    """S after each pair by SGD, one pair a step, each from the decayed state: S ← αS − β ∇loss(αS).

    In a mini-batch all gradients are taken at the state before it.
    """
    s = values.new_zeros(values.shape[-1], keys.shape[-1]) if start is None else start
    every, seen = [], s
    for t in range(len(keys)):
        s = s if decays is None else decays[t] * s
        seen = s if t % minibatch == 0 else seen
        at = seen.detach().requires_grad_()
        (gradient,) = torch.autograd.grad(loss(at, keys[t], values[t]), at)
        s = s - rates[t] * gradient
        every.append(s)
    return every


def proximal(keys: Keys, values: Values, weights: Float[Tensor, " time"]) -> list[State]:
    """S after each pair: argmin ‖S − S_{t−1}‖² + δ‖S k − v‖², solved as least squares (Longhorn)."""
    s, eye = values.new_zeros(values.shape[-1], keys.shape[-1]), torch.eye(keys.shape[-1], dtype=keys.dtype)
    every = []
    for k, v, root in zip(keys, values, weights.sqrt(), strict=True):
        rows, targets = torch.cat([eye, root * k[None]]), torch.cat([s.T, root * v[None]])
        s = torch.linalg.lstsq(rows, targets).solution.T
        every.append(s)
    return every


def diagonal_steps(keys: Keys, values: Values, weights: Float[Tensor, " time"]) -> list[State]:
    """S ← S ∘ (1 − Δ k²) + Δ v kᵀ with Δ = δ/(1 + δ‖k‖²), the square entry by entry.

    So Longhorn's public code reads a token (`step` in models/longhorn.py), in parallel for all entries of the state: of
    the k kᵀ in the proximal step it keeps the diagonal. Its δ is one of every value; here it is one for all.
    """
    s, every = values.new_zeros(values.shape[-1], keys.shape[-1]), []
    for k, v, weight in zip(keys, values, weights, strict=True):
        rate = weight / (1 + weight * k.square().sum())
        s = s * (1 - rate * k.square()) + rate * torch.outer(v, k)
        every.append(s)
    return every


def conjugate_gradients(h: Float[Tensor, "dk dk"], query: Float[Tensor, " dk"], steps: int) -> Float[Tensor, " dk"]:
    """H⁻¹ q after some steps; exact after dk of them (MesaNet 2025)."""
    x, r = torch.zeros_like(query), query.clone()
    d = r.clone()
    for _ in range(steps):
        size = r @ r
        step = size / (d @ h @ d)
        x, r = x + step * d, r - step * (h @ d)
        d = r + (r @ r) / size * d
    return x


def gated_delta(keys: Keys, values: Values, rates: Tensor, decays: Tensor) -> State:
    """S ← αS (I − β k kᵀ) + β v kᵀ, as gated delta networks write it."""
    s, eye = values.new_zeros(values.shape[-1], keys.shape[-1]), torch.eye(keys.shape[-1], dtype=keys.dtype)
    for k, v, rate, decay in zip(keys, values, rates, decays, strict=True):
        s = decay * s @ (eye - rate * torch.outer(k, k)) + rate * torch.outer(v, k)
    return s


def chunked_delta(keys: Keys, values: Values, rates: Float[Tensor, " time"], chunk: int) -> State:
    """The delta rule chunk by chunk (the WY form of Yang 2024): S += (T V − T K Sᵀ)ᵀ K with one triangular inverse T.

    T = (I + tril(diag(β) K Kᵀ, −1))⁻¹ diag(β).
    """
    s = values.new_zeros(values.shape[-1], keys.shape[-1])
    for start in range(0, len(keys), chunk):
        k, v, b = (part[start : start + chunk] for part in (keys, values, rates))
        lower = torch.tril(b[:, None] * (k @ k.T), -1) + torch.eye(len(k), dtype=k.dtype)
        t = torch.linalg.solve_triangular(lower, torch.diag(b), upper=False)
        s = s + (t @ v - t @ k @ s.T).T @ k
    return s
