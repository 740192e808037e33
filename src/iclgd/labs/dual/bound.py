"""The generalisation bound of the dual (Ren and Liu, theorem 3.2), with its constants and quantities from real heads.

For f = W φ with ‖W‖ ≤ w and ‖v‖, ‖f(k)‖ ≤ ρ, with probability 1 − δ over N demonstrations S,

    L(f) ≤ L̂(f) + 2 w ρ √(Tr K_S) / N + 6 ρ² √(log(2/δ) / 2N),        L(f) = E[−vᵀ f(k)].

The slide prints w ρ d_o √(Tr K_S) / N + √(log(1/δ) / N) inside an O (as far as it can be read). This is what its
assumptions give: the Rademacher complexity of the losses is (w/N) E‖Σ σ_i v_i φ(k_i)ᵀ‖ ≤ w ρ √(Tr K_S) / N whatever
d_o is, and the deviation is in units of the losses' range, which is 2 ρ² and not 1 (Mohri et al., theorem 3.3, with
the complexity of the sample).

Here w is the norm of the trained W itself, ρ the largest norm met, held-out tokens included, N counts tokens, which
are not independent, and L(f) is the mean over demonstrations that came later in the text and were not trained on.
Numbers are exp(k·k) and may be far outside of a double's range, so they are kept as logarithms.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from iclgd.errors import Refusal
from iclgd.labs.dual.heads import LayerHeads, layers
from iclgd.models.subject import Subject
from iclgd.prompts import Ids, Prompts

DELTA = 0.05
QUANTITIES = ("split", "trace", "weight", "radius", "bound", "gap")
LONGEST, SHORTEST, GRID = 100.0, 1e-6, 17  # log ‖φ(k)‖² of the longest key at the two ends of the search, and its steps
SECTIONS = 10  # of the grid's best cells: the split is then known to 1%


@dataclass(frozen=True)
class Bound:
    """log₁₀ of the quantities, one value a head, nan where a window hides all demonstrations."""

    tokens: Float[Tensor, "*head"]  # N itself: demonstration tokens that the head sees
    split: Float[Tensor, "*head"]  # t: keys k / t, query t q; inf where the kernel is the constant 1
    trace: Float[Tensor, "*head"]  # Tr K_S
    weight: Float[Tensor, "*head"]  # w
    radius: Float[Tensor, "*head"]  # ρ
    bound: Float[Tensor, "*head"]
    gap: Float[Tensor, "*head"]  # |L(f) − L̂(f)|


@dataclass(frozen=True)
class Setting:
    """What the bound of a layer's heads is computed from: tokens first, held-out ones behind them."""

    products: Float[Tensor, "head token everyone"]  # k_i · k_j
    values: Float[Tensor, "head everyone dv"]
    denominator: Float[Tensor, " head"]  # log D
    demos: Bool[Tensor, " token"]
    held: int

    @classmethod
    def of(
        cls, layer: LayerHeads, held_keys: Float[Tensor, "head held dim"], held_values: Float[Tensor, "head held dv"]
    ) -> "Setting":
        products = layer.keys @ torch.cat([layer.keys, held_keys], 1).mT
        scores = layer.scores if layer.sinks is None else torch.cat([layer.scores, layer.sinks[:, None]], -1)
        values = torch.cat([layer.values, held_values], 1)
        return cls(products, values, scores.logsumexp(-1), layer.demos, held_keys.shape[1])

    def bound(self, shrink: Float[Tensor, " head"]) -> Bound:
        """The bound with keys k / t and the query t q, ``shrink`` = 1/t² for each head; at 0 the kernel is 1.

        Attention is the same for every t, and the bound is not: theorem 3.2 is about one W_K among many that make the
        same head.
        """
        tokens = len(self.demos)
        products = self.products * shrink[:, None, None]
        top = products.amax((-1, -2))  # the common factor exp(top) is taken out of the kernel
        kernel = torch.exp(products - top[:, None, None])
        unit = top - self.denominator  # log exp(top) / D
        answers = kernel.mT @ self.values[:, :tokens]  # f at tokens and held-out ones, in units of exp(top) / D
        losses = -(answers * self.values).sum(-1)  # head everyone
        inside, outside = losses[:, :tokens][:, self.demos], losses[:, tokens:]
        gap = (outside.mean(-1) - inside.mean(-1)).abs().log() + unit

        fitted = (answers * self.values)[:, :tokens].sum((-1, -2)).clamp_min(0)  # ‖W‖² D² / exp(top)
        weight = fitted.log() / 2 + unit - top / 2
        judged = torch.cat([self.demos, torch.ones(self.held, dtype=torch.bool)])
        largest = (self.values[:, judged], answers[:, judged])
        sizes = [norms.norm(dim=-1).amax(-1).log() for norms in largest]
        radius = torch.maximum(sizes[0], sizes[1] + unit)
        trace = products.diagonal(dim1=-2, dim2=-1)[:, self.demos].logsumexp(-1)
        count = int(self.demos.sum())
        first = math.log(2) + weight + radius + trace / 2 - math.log(count)
        second = math.log(6) + 2 * radius + math.log(math.log(2 / DELTA) / (2 * count)) / 2
        found = (-shrink.log() / 2, trace, weight, radius, torch.logaddexp(first, second), gap)
        return Bound(torch.full_like(trace, count), *(log / math.log(10) for log in found))


def head_bound(layer: LayerHeads, held_keys: Tensor, held_values: Tensor, split: float = 1.0) -> Bound:
    """The bound for each head of a layer, with keys k / split and the query times split."""
    if not layer.demos.any() or not held_keys.shape[1]:
        return _nothing(layer)
    return Setting.of(layer, held_keys, held_values).bound(torch.full_like(layer.output[:, 0], split**-2))


def best_split(layer: LayerHeads, held_keys: Tensor, held_values: Tensor) -> Bound:
    """Head by head, the split with the smallest bound.

    A grid over log 1/t², relative to the longest key of each head, and golden section around its best point; then the
    limit t → ∞, in which the kernel is 1 and f a constant, where that is lower still. At the other end of the grid
    Tr K_S is e^`LONGEST` and more: no minimum lies there.
    """
    if not layer.demos.any() or not held_keys.shape[1]:
        return _nothing(layer)
    setting = Setting.of(layer, held_keys, held_values)
    length = setting.products.diagonal(dim1=-2, dim2=-1)[:, layer.demos].amax(-1)  # ‖k‖² of the longest
    cells = torch.linspace(math.log(SHORTEST), math.log(LONGEST), GRID, dtype=length.dtype)
    at = cells[:, None] - length.log()  # grid head
    bounds = torch.stack([setting.bound(row.exp()).bound for row in at])
    which = bounds.argmin(0)
    low, high = (at.gather(0, (which + d).clamp(0, GRID - 1)[None])[0] for d in (-1, 1))
    middle = golden(lambda log: setting.bound(log.exp()).bound, low, high)
    return _lower(setting.bound(middle.exp()), setting.bound(torch.zeros_like(middle)))


def golden(
    function: Callable[[Tensor], Tensor], low: Float[Tensor, " one"], high: Float[Tensor, " one"]
) -> Float[Tensor, " one"]:
    """Where a function is smallest between ``low`` and ``high``, elementwise, by golden section."""
    ratio = (5**0.5 - 1) / 2
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    at_left, at_right = function(left), function(right)
    for _ in range(SECTIONS):
        less = at_left <= at_right
        low, high = torch.where(less, low, left), torch.where(less, right, high)
        new = torch.where(less, high - ratio * (high - low), low + ratio * (high - low))
        value = function(new)
        left, right = torch.where(less, new, right), torch.where(less, left, new)
        at_left, at_right = torch.where(less, value, at_right), torch.where(less, at_left, value)
    return torch.where(at_left <= at_right, left, right)


def sweep(
    subject: Subject, prompts: Prompts, query: Ids, counts: Sequence[int], held: int
) -> dict[int, tuple[Bound, Bound]]:
    """For each number of demonstrations the bound of every head, (own split, best split), stacked layer by layer.

    The last ``held`` demonstrations of the prompts are the ones not trained on; they are read behind all the others.
    """
    if held < 1 or max(counts) + held > len(prompts.demos) or min(counts) < 1:
        raise Refusal(f"{max(counts)} demonstrations and {held} held out need as many in the prompt, which has fewer.")
    fresh = []
    for layer in layers(subject, prompts, query):
        out = layer.owner >= len(prompts.demos) - held
        fresh.append((layer.keys[:, out], layer.values[:, out]))
    found = {}
    for count in counts:
        seen = layers(subject, replace(prompts, demos=prompts.demos[:count]), query)
        pairs = [(head_bound(a, *b), best_split(a, *b)) for a, b in zip(seen, fresh, strict=True)]
        found[count] = (_stacked([own for own, _ in pairs]), _stacked([best for _, best in pairs]))
    return found


def _nothing(layer: LayerHeads) -> Bound:
    empty = torch.full_like(layer.output[:, 0], torch.nan)
    return Bound(torch.full_like(empty, float(layer.demos.sum())), *[empty] * len(QUANTITIES))


def _lower(one: Bound, other: Bound) -> Bound:
    """Head by head, the one with the smaller bound."""
    less = one.bound <= other.bound
    names = ("tokens", *QUANTITIES)
    return Bound(*(torch.where(less, getattr(one, name), getattr(other, name)) for name in names))


def _stacked(bounds: Sequence[Bound]) -> Bound:
    return Bound(*(torch.stack([getattr(b, name) for b in bounds]) for name in ("tokens", *QUANTITIES)))
