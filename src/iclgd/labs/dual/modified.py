"""Attention changed the way one would change its dual's loss: regularised, augmented, with negative samples.

A modification acts on keys and values before the scores, or on the weights after the softmax, and knows the dual
whose gradient step the modified attention is. At strength 0 each gives the unmodified numbers bit for bit.
"""

from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from iclgd.errors import Refusal
from iclgd.labs.dual.model import Dual, softmax_dual


@dataclass(frozen=True)
class Block:
    """Which keys are demonstrations, and which key is each query row's own token."""

    demos: Bool[Tensor, " key"]
    own: Int[Tensor, " query"]


class Modification:
    """A change of attention and of its dual. This one changes nothing; the others override what they modification."""

    family: ClassVar[str] = ""
    """Modifications of one family are shown side by side."""

    def states(
        self,
        keys: Float[Tensor, "*batch key dim"],
        values: Float[Tensor, "*batch key dv"],
        inputs: Float[Tensor, "*batch key din"] | None,
    ) -> tuple[Tensor, Tensor]:
        """Keys and values, changed before the scores are taken; ``inputs`` are the tokens they were made from."""
        return keys, values

    def weights(
        self, weights: Float[Tensor, "*batch query key"], scores: Float[Tensor, "*batch query key"], block: Block
    ) -> Float[Tensor, "*batch query key"]:
        """The softmax's weights, changed before the values are summed."""
        return weights

    def dual(self, dual: Dual, own: Float[Tensor, "*batch dv"]) -> Dual:
        """The dual with the modified loss; ``own`` is the value of the query's own token."""
        return dual


@dataclass(frozen=True)
class Regularised(Modification):
    """L + α/(2η) ‖W‖²: the step gives (1 − α) W₀ + ΔW, so only the query's own tokens are scaled, by 1 − α.

    This is what the loss on the slide implies. What the slide prints is `RegularisedSlide`.
    """

    family = "regularised"
    alpha: float = 0.5

    def weights(self, weights: Tensor, scores: Tensor, block: Block) -> Tensor:
        return weights * (1 - self.alpha * (~block.demos).to(weights))

    def dual(self, dual: Dual, own: Tensor) -> Dual:
        return replace(dual, ridge=self.alpha)


@dataclass(frozen=True)
class RegularisedSlide(Modification):
    """V (A − αI) as printed: the query's own value is subtracted α times, whatever attention gives it.

    It is the step of another loss, L + (α/η) vᵀ W φ(q) / φ(q)·φ(q) with v the query's own value: a linear term that
    pushes f(q) away from v, not a penalty on W.
    """

    family = "regularised"
    alpha: float = 0.5

    def weights(self, weights: Tensor, scores: Tensor, block: Block) -> Tensor:
        keys = torch.arange(weights.shape[-1], device=weights.device)
        return weights - self.alpha * (keys == block.own.to(weights.device)[:, None]).to(weights)

    def dual(self, dual: Dual, own: Tensor) -> Dual:
        size = dual.denominator / dual.test.square().sum(-1)  # D / φ(q)·φ(q)
        return replace(
            dual,
            inputs=torch.cat([dual.inputs, dual.test[..., None, :]], -2),
            labels=torch.cat([dual.labels, -self.alpha * (size[..., None] * own)[..., None, :]], -2),
        )


@dataclass(frozen=True)
class Adapter:
    """x ↦ W₂ relu(W₁ x): what a parallel adapter adds."""

    w1: Float[Tensor, "hidden din"]
    w2: Float[Tensor, "out hidden"]

    def __call__(self, x: Float[Tensor, "*batch din"]) -> Float[Tensor, "*batch out"]:
        return (x @ self.w1.to(x).mT).relu() @ self.w2.to(x).mT

    @classmethod
    def random(cls, width: int, out: int, hidden: int, generator: torch.Generator) -> "Adapter":
        w1 = torch.randn(hidden, width, generator=generator) / width**0.5
        return cls(w1, torch.randn(out, hidden, generator=generator) / hidden**0.5)


@dataclass(frozen=True)
class Augmented(Modification):
    """Labels g₁(W_V x) and inputs φ(g₂(W_K x)), g(W x) = W x + c W₂ relu(W₁ x) (the slide's parallel adapter).

    Without ``inputs`` x (inside a pretrained head only keys and values are at hand) the adapter reads values and keys
    as they stand there, keys with their positions applied.
    """

    c: float = 1.0
    adapters: Literal["g1", "g2", "both"] = "both"  # which of them there are: of values (g₁), of keys (g₂)
    value: Adapter | None = field(default=None, repr=False)  # in g₁
    key: Adapter | None = field(default=None, repr=False)  # in g₂

    def states(self, keys: Tensor, values: Tensor, inputs: Tensor | None) -> tuple[Tensor, Tensor]:
        if self.key is not None:
            keys = keys + self.c * self.key(keys if inputs is None else inputs)
        if self.value is not None:
            values = values + self.c * self.value(values if inputs is None else inputs)
        return keys, values


@dataclass(frozen=True)
class Negative(Modification):
    """Each demonstration's value loses β times the mean value of k negatives: v_i − (β/k) Σ_{j∈N} v_j.

    N are the k demonstrations with the lowest scores for this query, the same for every i, where the slide has a set
    N(i) for each: a demonstration may be its own negative. A mask that leaves fewer than k gives their mean. The loss
    that gives this has the term v_jᵀ W φ(k_i), the negative's label on the demonstration's input; the slide prints
    φ(k_j), and after its formula a −αI that belongs to the regularised model.
    """

    k: int = 3
    beta: float = 0.5

    def __post_init__(self) -> None:
        if self.k < 1:
            raise Refusal(f"negative samples need k of at least 1, not {self.k}.")

    def chosen(self, scores: Tensor, demos: Tensor) -> tuple[Tensor, Tensor]:
        """Indices of the negatives, and 1/k for each (0 where a mask leaves fewer than k)."""
        hidden = scores <= torch.finfo(scores.dtype).min / 2
        left = scores.masked_fill(hidden | ~demos.to(scores.device), torch.inf)
        lowest, index = left.topk(min(self.k, scores.shape[-1]), largest=False, dim=-1)
        there = lowest.isfinite().to(scores.dtype)
        return index, there / there.sum(-1, keepdim=True).clamp_min(1)

    def weights(self, weights: Tensor, scores: Tensor, block: Block) -> Tensor:
        index, part = self.chosen(scores, block.demos)
        mass = (weights * block.demos.to(weights)).sum(-1, keepdim=True)
        return weights.scatter_add(-1, index, (-self.beta * mass * part).to(weights))

    def dual(self, dual: Dual, own: Tensor) -> Dual:
        everyone = torch.ones(dual.scores.shape[-1], dtype=torch.bool)
        index, part = self.chosen(dual.scores, everyone)
        negatives = dual.labels.gather(-2, index[..., None].expand(*index.shape, dual.labels.shape[-1]))
        mean = (negatives * part[..., None]).sum(-2, keepdim=True)
        return replace(dual, labels=dual.labels - self.beta * mean)


def attend(
    queries: Float[Tensor, "*batch query dim"],
    keys: Float[Tensor, "*batch key dim"],
    values: Float[Tensor, "*batch key dv"],
    block: Block,
    modification: Modification,
    inputs: Float[Tensor, "*batch key din"] | None = None,
) -> Float[Tensor, "*batch query dv"]:
    """Softmax attention with a modification."""
    keys, values = modification.states(keys, values, inputs)
    scores = queries @ keys.mT / keys.shape[-1] ** 0.5
    return modification.weights(scores.softmax(-1), scores, block) @ values


def dual_of(
    query: Float[Tensor, "*batch dim"],
    keys: Float[Tensor, "*batch key dim"],
    values: Float[Tensor, "*batch key dv"],
    block: Block,
    modification: Modification,
    inputs: Float[Tensor, "*batch key din"] | None = None,
) -> Dual:
    """The dual of one row of `attend`."""
    keys, values = modification.states(keys, values, inputs)
    scores = (keys @ query[..., None])[..., 0] / keys.shape[-1] ** 0.5
    return modification.dual(softmax_dual(scores, keys, values, block.demos), values[..., int(block.own), :])
