"""Attention modified the way one would modify its dual's loss: regularised, augmented, with negative samples.

A modification acts on keys and values before the scores, or on the weights after the softmax, and knows the dual
whose gradient step the modified attention is. At strength 0 each gives the unmodified numbers bit for bit.
"""

from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from iclgd.errors import Refusal
from iclgd.labs.dual.model import Dual, softmax_dual


@dataclass(frozen=True)
class Block:
    """Which demonstration each key belongs to (−1: the query's own tokens), and which key is each query row's own."""

    owner: Int[Tensor, " key"]
    own: Int[Tensor, " query"]

    @property
    def demos(self) -> Bool[Tensor, " key"]:
        return self.owner >= 0


class Modification:
    """A change of attention and of its dual. This one changes nothing; the others override what they change."""

    version: ClassVar[int] = 1  # rises when the same options would give other numbers
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

    def dual(self, dual: Dual, owner: Int[Tensor, " pair"], own: Float[Tensor, "*batch dv"]) -> Dual:
        """The dual with the modified loss; ``owner`` says which demonstration each of its pairs belongs to.

        ``own`` is the value of the query's own token.
        """
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

    def dual(self, dual: Dual, owner: Tensor, own: Tensor) -> Dual:
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

    def dual(self, dual: Dual, owner: Tensor, own: Tensor) -> Dual:
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
    """Each demonstration's value loses β times the mean value of its negatives: v_i − (β/|N(i)|) Σ_{j∈N(i)} v_j.

    N(i) are the k other demonstrations with the lowest scores for this query, fewer where a mask leaves fewer. In a
    prompt a demonstration has several tokens: its score and its value are the means over those that are seen, and all
    its tokens have the same negatives. The loss that gives this has the term v_jᵀ W φ(k_i), the negative's label on
    the demonstration's input; the slide prints φ(k_j), and after its formula a −αI that belongs to the regularised
    model. How the slide chooses N(i) it does not say.
    """

    k: int = 3
    beta: float = 0.5

    def __post_init__(self) -> None:
        if self.k < 1:
            raise Refusal(f"negative samples need k of at least 1, not {self.k}.")

    def order(self, scores: Float[Tensor, "*batch demo"]) -> Float[Tensor, "*batch demo"]:
        """Demonstrations with lower numbers are taken first."""
        return scores

    def sets(
        self, scores: Float[Tensor, "*batch demo"], seen: Bool[Tensor, "*batch demo"]
    ) -> Float[Tensor, "*batch demo demo"]:
        """Row i has 1/|N(i)| for each j in N(i), and 0 for the others, i among them."""
        rank = self.order(scores).masked_fill(~seen, torch.inf).argsort(-1).argsort(-1)
        last = self.k + (rank < self.k).long()  # who is among the first k takes one more in its own place
        chosen = (rank[..., None, :] < last[..., :, None]) & seen[..., None, :]
        chosen = chosen & ~torch.eye(rank.shape[-1], dtype=torch.bool, device=rank.device)
        return chosen.to(scores) / chosen.sum(-1, keepdim=True).clamp_min(1)

    def weights(self, weights: Tensor, scores: Tensor, block: Block) -> Tensor:
        work = torch.promote_types(weights.dtype, torch.float32)
        member = membership(block.owner).to(weights.device, work)  # key demo
        seen = ((scores > torch.finfo(scores.dtype).min / 2) & block.demos.to(scores.device)).to(work)
        tokens = seen @ member  # *batch query demo
        means = (torch.where(seen > 0, scores, 0).to(work) @ member) / tokens.clamp_min(1)
        taken = ((weights.to(work) @ member)[..., None, :] @ self.sets(means, tokens > 0))[..., 0, :]
        less = (taken / tokens.clamp_min(1)) @ member.mT * seen
        return weights - (self.beta * less).to(weights)

    def dual(self, dual: Dual, owner: Tensor, own: Tensor) -> Dual:
        member = membership(owner).to(dual.labels)  # pair demo
        tokens = member.sum(0)
        means = member.mT @ dual.labels / tokens.clamp_min(1)[:, None]  # *batch demo dv
        sets = self.sets((dual.scores @ member) / tokens.clamp_min(1), (tokens > 0).expand(*means.shape[:-1]))
        return replace(dual, labels=dual.labels - self.beta * (member @ (sets @ means)))


@dataclass(frozen=True)
class Arbitrary(Negative):
    """A control for negative: k demonstrations that have nothing to do with scores, drawn once by the seed."""

    family = "negative"
    seed: int = 0

    def order(self, scores: Tensor) -> Tensor:
        drawn = np.random.default_rng(self.seed).permutation(scores.shape[-1])  # torch's generator is shut inside vmap
        return torch.tensor(drawn).to(scores).expand_as(scores)


@dataclass(frozen=True)
class Centred(Modification):
    """A control for negative: v_i − β v̄, with v̄ the mean value of all demonstrations' tokens that are seen."""

    family = "negative"
    beta: float = 1.0

    def weights(self, weights: Tensor, scores: Tensor, block: Block) -> Tensor:
        demos = block.demos.to(weights.device)
        seen = ((scores > torch.finfo(scores.dtype).min / 2) & demos).to(weights)
        part = seen / seen.sum(-1, keepdim=True).clamp_min(1)
        return weights - self.beta * (weights * demos).sum(-1, keepdim=True) * part

    def dual(self, dual: Dual, owner: Tensor, own: Tensor) -> Dual:
        return replace(dual, labels=dual.labels - self.beta * dual.labels.mean(-2, keepdim=True))


def membership(owner: Int[Tensor, " key"]) -> Float[Tensor, "key demo"]:
    """1 where a key is a demonstration's; a key of the query's own (−1) has a row of zeros."""
    return (owner[:, None] == torch.arange(max(int(owner.max()) + 1, 1), device=owner.device)).float()


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
    plain = softmax_dual(scores, keys, values, block.demos)
    return modification.dual(plain, block.owner[block.demos], values[..., int(block.own), :])
