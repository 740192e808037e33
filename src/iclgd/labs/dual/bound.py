"""The generalisation bound of the dual (Ren and Liu, theorem 3.2), with its quantities taken from real heads.

For f = W φ with ‖W‖ ≤ w and ‖v‖, ‖f(k)‖ ≤ ρ, with probability 1 − δ over N demonstrations S,

    L(f) ≤ L̂(f) + O( w ρ d_o √(Tr K_S) / N + √(log(1/δ) / N) ),        L(f) = E[−vᵀ f(k)]

(as far as the slides can be read). Here w is the norm of the trained W itself, ρ the largest norm met, held-out tokens
included, the constant that O hides is 1, N counts tokens, which are not independent, and L(f) is the mean over
demonstrations that came later in the text and were not trained on. Numbers are exp(k·k) and may be far outside of a
double's range, so they are kept as logarithms.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from iclgd.errors import Refusal
from iclgd.labs.dual.heads import Layer, layers
from iclgd.models.subject import Subject
from iclgd.prompts import Ids, Prompts

DELTA = 0.05
SPLITS = tuple(2.0**i for i in range(9))
QUANTITIES = ("trace", "weight", "radius", "bound", "gap")


@dataclass(frozen=True)
class Bound:
    """log₁₀ of the quantities, one value a head, nan where a window hides all demonstrations."""

    tokens: Float[Tensor, "*head"]  # N itself: demonstration tokens that the head sees
    trace: Float[Tensor, "*head"]  # Tr K_S
    weight: Float[Tensor, "*head"]  # w
    radius: Float[Tensor, "*head"]  # ρ
    bound: Float[Tensor, "*head"]
    gap: Float[Tensor, "*head"]  # |L(f) − L̂(f)|


def head_bound(
    layer: Layer,
    held_keys: Float[Tensor, "head held dim"],
    held_values: Float[Tensor, "head held dv"],
    split: float = 1.0,
) -> Bound:
    """The bound for each head of a layer, with keys k / split and the query times split.

    Attention is the same for every split, and the bound is not: theorem 3.2 is about one W_K among many that make
    the same head.
    """
    inside = layer.demos
    keys, held = layer.keys / split, held_keys / split
    tokens = int(inside.sum())
    nothing = layer.scores.new_full(layer.scores.shape[:1], torch.nan)
    if not tokens or not held.shape[1]:
        return Bound(torch.full_like(nothing, tokens), *[nothing] * len(QUANTITIES))
    everyone = torch.cat([keys, held], 1)
    products = keys @ everyone.mT  # head token token+held
    top = products.amax((-1, -2))  # the common factor exp(top) is taken out of the kernel
    kernel = torch.exp(products - top[:, None, None])
    scores = layer.scores if layer.sinks is None else torch.cat([layer.scores, layer.sinks[:, None]], -1)
    unit = (top - scores.logsumexp(-1)) / math.log(10)  # log₁₀ exp(top) / D
    answers = kernel.mT @ layer.values  # f at tokens and held, in units of exp(top) / D
    values = torch.cat([layer.values, held_values], 1)
    losses = -(answers * values).sum(-1)  # head token+held
    inner = torch.cat([inside, torch.zeros(held.shape[1], dtype=torch.bool)])
    outer = torch.arange(len(inner)) >= len(inside)
    gap = losses[:, outer].mean(-1) - losses[:, inner].mean(-1)

    own = kernel[..., : len(inside)]
    square = ((own @ layer.values) * layer.values).sum((-1, -2)).clamp_min(0)  # ‖W‖² D² / exp(top)
    weight = square.log10() / 2 + unit - top / (2 * math.log(10))
    radius = torch.maximum(
        values[:, inner | outer].norm(dim=-1).amax(-1).log10(),
        answers[:, inner | outer].norm(dim=-1).amax(-1).log10() + unit,
    )
    trace = keys[:, inside].square().sum(-1).logsumexp(-1) / math.log(10)
    first = weight + radius + math.log10(layer.values.shape[-1]) + trace / 2 - math.log10(tokens)
    second = math.log10(math.log(1 / DELTA) / tokens) / 2
    pair = torch.stack([first, torch.full_like(first, second)])
    bound = (pair * math.log(10)).logsumexp(0) / math.log(10)
    return Bound(torch.full_like(bound, tokens), trace, weight, radius, bound, gap.abs().log10() + unit)


def best_split(layer: Layer, held_keys: Tensor, held_values: Tensor) -> Bound:
    """Head by head, the one of `SPLITS` with the smallest bound."""
    tried = [head_bound(layer, held_keys, held_values, split) for split in SPLITS]
    which = torch.stack([one.bound for one in tried]).argmin(0, keepdim=True)

    def pick(name: str) -> Tensor:
        return torch.stack([getattr(one, name) for one in tried]).gather(0, which)[0]

    return Bound(tried[0].tokens, *map(pick, QUANTITIES))


def sweep(
    subject: Subject, prompts: Prompts, query: Ids, counts: Sequence[int], held: int
) -> dict[int, tuple[Bound, Bound]]:
    """For each number of demonstrations the bound of every head, (own split, best split), stacked layer by layer.

    The last ``held`` demonstrations of the prompts are the ones not trained on; they are read behind all the others.
    """
    if held < 1 or max(counts) + held > len(prompts.demos) or min(counts) < 1:
        raise Refusal(f"{max(counts)} demonstrations and {held} held out need as many in the prompt: raise `k`.")
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


def _stacked(bounds: Sequence[Bound]) -> Bound:
    return Bound(*(torch.stack([getattr(b, name) for b in bounds]) for name in ("tokens", *QUANTITIES)))
