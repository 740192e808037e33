"""Several layers as a chain of duals: the data of layer l are what layer l − 1 put out, for every token."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from iclgd.labs.dual.model import Relu, behind_relu, softmax_dual


@dataclass(frozen=True)
class Layer:
    """Softmax attention, with a ReLU network behind it or not; added to the tokens where ``residual``."""

    w_query: Float[Tensor, "dk dim"]
    w_key: Float[Tensor, "dk dim"]
    w_value: Float[Tensor, "dim dim"]
    network: Relu | None = None
    residual: bool = False

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


def run(layers: Sequence[Layer], tokens: Float[Tensor, "token dim"], seen: Bool[Tensor, "token token"]) -> Tensor:
    for layer in layers:
        tokens = layer(tokens, seen)
    return tokens


def run_by_duals(
    layers: Sequence[Layer],
    tokens: Float[Tensor, "token dim"],
    seen: Bool[Tensor, "token token"],
    demos: Bool[Tensor, " token"],
) -> Tensor:
    """The chain: layer l's duals are built from what layer l − 1's duals predicted."""
    for layer in layers:
        tokens = layer.by_duals(tokens, seen, demos)
    return tokens
