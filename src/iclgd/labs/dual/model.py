"""The dual of an attention head: f(x) = W φ(x), its start, its loss, one gradient step, and the prediction.

Theorem 3.1 of Ren and Liu: with X = [X_D, X_T] (demonstrations, the query's own tokens) the output for the query,
h = Σ_i A_i v_i, is f(q) after one step of gradient descent on

    L(W) = −1/(ηD) Σ_{i∈D} v_iᵀ W φ(k_i)       from       W₀ = (1/D) Σ_{i∈T} v_i φ(k_i)ᵀ,

where D is the softmax's denominator. The slides call D a constant; it depends on the query, and so do W₀ and L.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from iclgd.labs.dual.features import gaussian_gram, gram_root, log_lengths, points, with_query


@dataclass(frozen=True)
class Dual:
    """f(x) = W φ(x) for one query, with what it is trained on. Leading axes are independent models."""

    start: Float[Tensor, "*batch dv feature"]  # W₀
    inputs: Float[Tensor, "*batch pair feature"]  # φ(k_i)
    labels: Float[Tensor, "*batch pair dv"]  # v_i
    test: Float[Tensor, "*batch feature"]  # φ(q)
    denominator: Float[Tensor, "*batch"]  # D
    scores: Float[Tensor, "*batch demo"]  # k_i · q of the demonstrations' tokens
    ridge: float = 0.0  # α: the loss has + α/(2η) ‖W‖² more

    def loss(self, weights: Float[Tensor, "*batch dv feature"], rate: float) -> Float[Tensor, "*batch"]:
        fit = ((self.inputs @ weights.mT) * self.labels).sum((-1, -2))
        return -fit / (rate * self.denominator) + self.ridge / (2 * rate) * weights.square().sum((-1, -2))

    def update(self, rate: float = 1.0) -> Float[Tensor, "*batch dv feature"]:
        """ΔW = −η ∇L(W₀), by autograd; η cancels."""
        with torch.enable_grad():
            weights = self.start.detach().clone().requires_grad_()
            (gradient,) = torch.autograd.grad(self.loss(weights, rate).sum(), weights)
        return -rate * gradient

    def step(self, rate: float = 1.0) -> Float[Tensor, "*batch dv feature"]:
        """W₀ + ΔW."""
        return self.start + self.update(rate)

    def predict(self, weights: Float[Tensor, "*batch dv feature"]) -> Float[Tensor, "*batch dv"]:
        return (weights @ self.test[..., None])[..., 0]

    @property
    def zero_shot(self) -> Float[Tensor, "*batch dv"]:
        """W₀ φ(q): the part of the output that is there before the step."""
        return self.predict(self.start)


def softmax_dual(
    scores: Float[Tensor, "*batch token"],
    keys: Float[Tensor, "*batch token dim"],
    values: Float[Tensor, "*batch token dv"],
    demos: Bool[Tensor, " token"],
    sink: Float[Tensor, "*batch"] | None = None,
) -> Dual:
    """Softmax attention over any ``scores`` (k_i · q with whatever else the head does to them), by `points`.

    ``sink`` is one more score that takes weight and gives nothing (GPT-OSS): it enters D and nothing else.
    """
    at, middle = points(scores, keys)
    return kernel_dual(at, values, demos, None if sink is None else sink - middle)


def kernel_dual(
    at: Float[Tensor, "*batch point coordinate"],
    values: Float[Tensor, "*batch token dv"],
    demos: Bool[Tensor, " token"],
    sink: Float[Tensor, "*batch"] | None = None,
) -> Dual:
    """Softmax attention of the first point to the others, with φ(x)·φ(y) = exp(x·y) between all of them."""
    gram = gaussian_gram(at)
    unit = with_query(gram_root(gram[..., 1:, 1:]), gram[..., :1, 1:])[..., 0, :, :]
    return dual_from(unit, at, values, demos, sink)


def dual_from(
    unit: Float[Tensor, "*batch point feature"],
    at: Float[Tensor, "*batch point coordinate"],
    values: Float[Tensor, "*batch token dv"],
    demos: Bool[Tensor, " token"],
    sink: Float[Tensor, "*batch"] | None = None,
) -> Dual:
    """The dual whose φ has the directions ``unit`` and the lengths of the points ``at``.

    In units in which φ(q) and the longest φ(k_i) have length 1: φ(k_i) e^(−m), φ(q) e^(−‖q‖²/2) and D e^(−m−‖q‖²/2),
    with m the largest ‖k_i‖²/2. Numerator and denominator of the prediction have the same units.
    """
    length = log_lengths(at)
    most = length[..., 1:].amax(-1)  # m
    inputs = unit[..., 1:, :] * torch.exp(length[..., 1:] - most[..., None])[..., None]
    scores = (at[..., 1:, :] @ at[..., 0, :, None])[..., 0]
    logs = scores if sink is None else torch.cat([scores, sink[..., None]], -1)
    denominator = torch.exp(logs - (most + length[..., 0])[..., None]).sum(-1)
    start = values[..., ~demos, :].mT @ inputs[..., ~demos, :] / denominator[..., None, None]
    return Dual(start, inputs[..., demos, :], values[..., demos, :], unit[..., 0, :], denominator, scores[..., demos])
