"""Linear attention as a weight update: the identities from which Dai 2022 starts.

A linear map W₀ + Σ e_i k_iᵀ applied to q equals W₀ q + LinearAttention(e, k, q): values are error signals, keys are the
inputs on which they arose.
"""

import torch
from jaxtyping import Float
from torch import Tensor

Values = Float[Tensor, "demo dv"]
Keys = Float[Tensor, "demo dk"]


def linear_attention(values: Values, keys: Keys, query: Float[Tensor, "query dk"]) -> Float[Tensor, "query dv"]:
    """Σ_i v_i (k_i · q), without softmax and without mean (Dai 2022, eq. 6)."""
    return (query @ keys.T) @ values


def outer_update(values: Values, keys: Keys) -> Float[Tensor, "dv dk"]:
    """ΔW = Σ_i v_i ⊗ k_i (Dai 2022, eq. 4)."""
    return values.T @ keys


def error_signals(start: Float[Tensor, "dv dk"], keys: Keys, labels: Values, rate: float) -> Values:
    """−η times the error of SGD on ½‖W k − y‖², one demonstration a step and in order.

    Each is taken at the weights the earlier ones left, which are W₀ plus linear attention over them.
    """
    signals = labels.new_zeros(0, labels.shape[1])
    for i in range(keys.shape[0]):
        key = keys[i : i + 1]
        answer = key @ start.T + linear_attention(signals, keys[:i], key)
        signals = torch.cat([signals, rate * (labels[i : i + 1] - answer)])
    return signals


def split_weights(
    w_value: Float[Tensor, "dv dim"],
    w_key: Float[Tensor, "dk dim"],
    demos: Float[Tensor, "demo dim"],
    own: Float[Tensor, "own dim"],
) -> tuple[Float[Tensor, "dv dk"], Float[Tensor, "dv dk"]]:
    """(W_ZSL, ΔW_ICL): linear attention over the query's own tokens and over the demonstrations (Dai 2022, eq. 10)."""
    start, update = (outer_update(t @ w_value.T, t @ w_key.T) for t in (own, demos))
    return start, update
