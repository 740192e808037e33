"""Layers that learn as they read, one demonstration after another: the delta rule and the mesa layer."""

import torch
from jaxtyping import Float
from torch import Tensor

Keys = Float[Tensor, "*batch time dk"]
Values = Float[Tensor, "*batch time dv"]


def delta_rule(
    keys: Keys, values: Values, queries: Keys, rate: float | Tensor, start: Float[Tensor, "*batch dv dk"] | None = None
) -> Values:
    """Φ ← Φ + η (v − Φ k) kᵀ, output Φ q: SGD with one demonstration a step."""
    return _asked(delta_weights(keys, values, rate, start), queries)


def delta_weights(
    keys: Keys, values: Values, rate: float | Tensor, start: Float[Tensor, "*batch dv dk"] | None = None
) -> list[Float[Tensor, "*batch dv dk"]]:
    """Φ after each demonstration."""
    phi = keys.new_zeros(*keys.shape[:-2], values.shape[-1], keys.shape[-1]) if start is None else start
    every = []
    for k, v in zip(keys.unbind(-2), values.unbind(-2), strict=True):
        error = v - (phi @ k[..., None])[..., 0]
        phi = phi + rate * error[..., :, None] * k[..., None, :]
        every.append(phi)
    return every


def mesa(keys: Keys, values: Values, queries: Keys, penalty: float) -> Values:
    """Φ_t = argmin ½ Σ_{i ≤ t} ‖Φ k_i − v_i‖² + (λ/2) ‖Φ‖², output Φ_t q_t (von Oswald 2023b, eq. 8, Λ⁻¹ = λ I)."""
    return _asked(mesa_weights(keys, values, penalty), queries)


def mesa_weights(keys: Keys, values: Values, penalty: float | Tensor) -> list[Float[Tensor, "*batch dv dk"]]:
    """Φ after each demonstration.

    The inverse R = (λ I + Σ k kᵀ)⁻¹ is kept up by Sherman and Morrison: R ← R − R k kᵀ R / (1 + kᵀ R k).
    """
    inverse = torch.eye(keys.shape[-1], dtype=keys.dtype).expand(*keys.shape[:-2], -1, -1) / penalty
    total = keys.new_zeros(*keys.shape[:-2], values.shape[-1], keys.shape[-1])
    every = []
    for k, v in zip(keys.unbind(-2), values.unbind(-2), strict=True):
        rk = inverse @ k[..., None]
        inverse = inverse - rk @ rk.mT / (1 + k[..., None, :] @ rk)
        total = total + v[..., :, None] * k[..., None, :]
        every.append(total @ inverse)
    return every


def _asked(weights: list[Float[Tensor, "*batch dv dk"]], queries: Keys) -> Values:
    """The query of each time, answered by the weights of that time."""
    pairs = zip(weights, queries.unbind(-2), strict=True)
    return torch.stack([(phi @ q[..., None])[..., 0] for phi, q in pairs], -2)
