"""What else the dual view says, true by the tests and used nowhere else: linear attention, a network behind, a chain.

Several layers are a chain of duals: the data of layer l are what layer l − 1 put out, for every token.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from iclgd.labs.dual.model import Dual, softmax_dual


def linear_dual(
    keys: Float[Tensor, "*batch token dim"],
    values: Float[Tensor, "*batch token dv"],
    query: Float[Tensor, "*batch dim"],
    demos: Bool[Tensor, " token"],
) -> Dual:
    """Linear attention Σ_i v_i (k_i · q): φ is the identity and D = 1 (slides; Dai 2022, eq. 6)."""
    start = values[..., ~demos, :].mT @ keys[..., ~demos, :]
    scores = (keys[..., demos, :] @ query[..., None])[..., 0]
    return Dual(start, keys[..., demos, :], values[..., demos, :], query, query.new_ones(query.shape[:-1]), scores)


@dataclass(frozen=True)
class Relu:
    """x ↦ W₂ relu(W₁ x + b₁) + b₂, the network behind an attention layer."""

    w1: Float[Tensor, "hidden dv"]
    b1: Float[Tensor, " hidden"]
    w2: Float[Tensor, "out hidden"]
    b2: Float[Tensor, " out"]

    def __call__(self, x: Float[Tensor, "*batch dv"]) -> Float[Tensor, "*batch out"]:
        return (x @ self.w1.T + self.b1).relu() @ self.w2.T + self.b2


def behind_relu(dual: Dual, network: Relu) -> tuple[Dual, Float[Tensor, "*batch out"]]:
    """The dual of attention followed by a ReLU network, and the constant to add to its prediction (Ren and Liu, §4).

    Labels become W_F v_i with W_F = W₂ diag(1[W₁ h + b₁ > 0]) W₁, and the constant is W₂ diag(·) b₁ + b₂. Which
    units are on depends on h itself: the labels of this dual are known only once its prediction is.
    """
    h = dual.predict(dual.step())
    on = (h @ network.w1.T + network.b1 > 0).to(h.dtype)  # *batch hidden
    opened = network.w2 * on[..., None, :]  # *batch out hidden
    through = opened @ network.w1
    constant = (opened @ network.b1[..., None])[..., 0] + network.b2
    return replace(dual, start=through @ dual.start, labels=dual.labels @ through.mT), constant


@dataclass(frozen=True)
class AttentionLayer:
    """Softmax attention, with a ReLU network behind it or not; added to the tokens where ``residual``."""

    w_query: Float[Tensor, "dk dim"]
    w_key: Float[Tensor, "dk dim"]
    w_value: Float[Tensor, "dim dim"]
    network: Relu | None
    residual: bool

    def __call__(
        self, tokens: Float[Tensor, "token dim"], seen: Bool[Tensor, "token token"]
    ) -> Float[Tensor, "token dim"]:
        """What a transformer computes; token i attends the tokens j with ``seen[i, j]``."""
        out = self._scores(tokens).masked_fill(~seen, -torch.inf).softmax(-1) @ (tokens @ self.w_value.T)
        if self.network is not None:
            out = self.network(out)
        return tokens + out if self.residual else out

    def by_duals(
        self,
        tokens: Float[Tensor, "token dim"],
        seen: Bool[Tensor, "token token"],
        demos: Bool[Tensor, " token"],
    ) -> Float[Tensor, "token dim"]:
        """The same with every token's output the prediction of its own dual after its own gradient step.

        Each token is the query of its own dual, so a layer is not one trained model but as many as it has tokens.
        """
        scores, keys, values = self._scores(tokens), tokens @ self.w_key.T, tokens @ self.w_value.T
        rows = []
        for i in range(len(tokens)):
            see = seen[i]
            dual = softmax_dual(scores[i, see], keys[see], values[see], demos[see])
            constant: Tensor | float = 0.0
            if self.network is not None:
                dual, constant = behind_relu(dual, self.network)
            rows.append(dual.predict(dual.step()) + constant)
        out = torch.stack(rows)
        return tokens + out if self.residual else out

    def _scores(self, tokens: Tensor) -> Float[Tensor, "query key"]:
        return (tokens @ self.w_query.T) @ (tokens @ self.w_key.T).T / self.w_key.shape[0] ** 0.5


def chain(
    layers: Sequence[AttentionLayer], tokens: Float[Tensor, "token dim"], seen: Bool[Tensor, "token token"]
) -> Tensor:
    for layer in layers:
        tokens = layer(tokens, seen)
    return tokens


def chain_by_duals(
    layers: Sequence[AttentionLayer],
    tokens: Float[Tensor, "token dim"],
    seen: Bool[Tensor, "token token"],
    demos: Bool[Tensor, " token"],
) -> Tensor:
    """Layer l's duals are built from what layer l − 1's duals predicted."""
    for layer in layers:
        tokens = layer.by_duals(tokens, seen, demos)
    return tokens
