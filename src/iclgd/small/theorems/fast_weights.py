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
) -> State:
    """SGD, one pair a step, each from the decayed state: S ← αS − β ∇loss(αS)."""
    s = values.new_zeros(values.shape[-1], keys.shape[-1])
    for t in range(len(keys)):
        s = (s if decays is None else decays[t] * s).detach().requires_grad_()
        (gradient,) = torch.autograd.grad(loss(s, keys[t], values[t]), s)
        s = s.detach() - rates[t] * gradient
    return s


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
