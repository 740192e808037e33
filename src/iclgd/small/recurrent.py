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
    phi = keys.new_zeros(*keys.shape[:-2], values.shape[-1], keys.shape[-1]) if start is None else start
    outputs = []
    for k, v, q in zip(keys.unbind(-2), values.unbind(-2), queries.unbind(-2), strict=True):
        error = v - (phi @ k[..., None])[..., 0]
        phi = phi + rate * error[..., :, None] * k[..., None, :]
        outputs.append((phi @ q[..., None])[..., 0])
    return torch.stack(outputs, -2)


def mesa(keys: Keys, values: Values, queries: Keys, penalty: float) -> Values:
    """Φ_t = argmin ½ Σ_{i ≤ t} ‖Φ k_i − v_i‖² + (λ/2) ‖Φ‖², output Φ_t q_t (von Oswald 2023b, eq. 8, Λ⁻¹ = λ I).

    The inverse R = (λ I + Σ k kᵀ)⁻¹ is kept up by Sherman and Morrison: R ← R − R k kᵀ R / (1 + kᵀ R k).
    """
    inverse = torch.eye(keys.shape[-1], dtype=keys.dtype).expand(*keys.shape[:-2], -1, -1) / penalty
    total = keys.new_zeros(*keys.shape[:-2], values.shape[-1], keys.shape[-1])
    outputs = []
    for k, v, q in zip(keys.unbind(-2), values.unbind(-2), queries.unbind(-2), strict=True):
        rk = inverse @ k[..., None]
        inverse = inverse - rk @ rk.mT / (1 + k[..., None, :] @ rk)
        total = total + v[..., :, None] * k[..., None, :]
        outputs.append((total @ inverse @ q[..., None])[..., 0])
    return torch.stack(outputs, -2)
