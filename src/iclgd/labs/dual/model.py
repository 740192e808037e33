"""The dual of an attention head: f(x) = W φ(x), its start, its loss, one gradient step, and the prediction.

Theorem 3.1 of Ren and Liu: with X = [X_D, X_T] (demonstrations, the query's own tokens) the output for the query,
h = Σ_i A_i v_i, is f(q) after one step of gradient descent on

    L(W) = −1/(ηD) Σ_{i∈D} v_iᵀ W φ(k_i)       from       W₀ = (1/D) Σ_{i∈T} v_i φ(k_i)ᵀ,

where D is the softmax's denominator. The slides call D a constant; it depends on the query, and so do W₀ and L.
"""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from iclgd.labs.dual.features import gram_root, points


@dataclass(frozen=True)
class Dual:
    """f(x) = W φ(x) for one query, with what it is trained on. Leading axes are independent models."""

    start: Float[Tensor, "*batch dv feature"]  # W₀
    inputs: Float[Tensor, "*batch pair feature"]  # φ(k_i)
    labels: Float[Tensor, "*batch pair dv"]  # v_i
    test: Float[Tensor, "*batch feature"]  # φ(q)
    denominator: Float[Tensor, "*batch"]  # D
    scores: Float[Tensor, "*batch demo"]  # k_i · q, the demonstrations
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
    return kernel_dual(points(scores, keys), values, demos, None if sink is None else sink - scores.amax(-1))


def kernel_dual(
    at: Float[Tensor, "*batch point coordinate"],
    values: Float[Tensor, "*batch token dv"],
    demos: Bool[Tensor, " token"],
    sink: Float[Tensor, "*batch"] | None = None,
) -> Dual:
    """Softmax attention of the first point to the others, with φ(x)·φ(y) = exp(x·y) between all of them."""
    features = gram_root(at)
    test, inputs = features[..., 0, :], features[..., 1:, :]
    scores = (at[..., 1:, :] @ at[..., 0, :, None])[..., 0]
    denominator = torch.exp(scores).sum(-1)
    if sink is not None:
        denominator = denominator + torch.exp(sink)
    start = values[..., ~demos, :].mT @ inputs[..., ~demos, :] / denominator[..., None, None]
    return Dual(start, inputs[..., demos, :], values[..., demos, :], test, denominator, scores[..., demos])


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
