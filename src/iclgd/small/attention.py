"""The self-attention layer of the lab, in two exact forms: over tokens, and over their second moment.

Tokens are e_j = (x_j, y_j) for demonstrations and (x_q, −W₀ x_q) for queries. Keys and values are the demonstrations,
every token is updated, and there is no normalisation layer:

    e_j ← e_j + Σ_h (P V)_h · (1/N) Σ_i e_i k(e_i, e_j),        k = e_iᵀ (Kᵀ Q)_h e_j for linear attention.

The demonstrations' slots come to hold residuals, the query's slot minus the prediction (von Oswald 2023, prop. 1).
Departures: the 1/N stands in the layer, as in Ahn 2023 and Zhang 2023, where von Oswald has it in P; and W_Kᵀ W_Q and
P W_V are one matrix each, because nothing else of the four enters the output.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from iclgd.errors import Refusal
from iclgd.small.kernels import KERNELS

Tokens = Float[Tensor, "*batch token dim"]


class Weights(NamedTuple):
    """A stack of layers. Fewer layers than the depth they are run at are used again from the first: shared weights."""

    qk: Float[Tensor, "layer head dim dim"]
    """W_Kᵀ W_Q: the score of demonstration i for token j is e_iᵀ qk e_j."""
    pv: Float[Tensor, "layer head dim dim"]
    """P W_V: what a demonstration adds."""


def rebased(weights: Weights, basis: Float[Tensor, "dim dim"]) -> Weights:
    """The layers that do to tokens T e what these do to e: qk ← T⁻ᵀ qk T⁻¹, pv ← T pv T⁻¹."""
    back = torch.linalg.inv(basis.double())
    qk, pv = (part.double() for part in weights)
    return Weights((back.mT @ qk @ back).to(weights.qk), (basis.double() @ pv @ back).to(weights.pv))


def tokens(
    x: Float[Tensor, "*batch demo dx"],
    y: Float[Tensor, "*batch demo dy"],
    query: Float[Tensor, "*batch query dx"],
    start: Float[Tensor, "*#batch dy dx"] | None = None,
) -> Float[Tensor, "*batch token dim"]:
    """Demonstrations, then queries whose label slot holds −W₀ x_q."""
    return torch.cat([shown(x, y), asked(query, y.shape[-1], start)], -2)


def shown(x: Float[Tensor, "*batch demo dx"], y: Float[Tensor, "*batch demo dy"]) -> Float[Tensor, "*batch demo dim"]:
    """The demonstrations' tokens."""
    if x.shape[-2] == 0:
        raise Refusal("attention needs at least one demonstration to attend to; give some.")
    return torch.cat([x, y], -1)


def asked(
    query: Float[Tensor, "*batch query dx"], dy: int, start: Float[Tensor, "*#batch dy dx"] | None = None
) -> Float[Tensor, "*batch query dim"]:
    """The queries' tokens."""
    slot = query.new_zeros(*query.shape[:-1], dy) if start is None else -query @ start.mT
    return torch.cat([query, slot], -1)


def attend(
    state: Tokens,
    demos: int,
    qk: Float[Tensor, "head dim dim"],
    pv: Float[Tensor, "head dim dim"],
    kind: str = "linear",
    causal: bool = False,
) -> Tokens:
    """One layer. ``kind`` is ``softmax`` or a kernel's name; ``causal`` lets token j see demonstrations i ≤ j only."""
    keys, queries = state[..., None, :demos, :], state[..., None, :, :]  # [*batch, 1, demo or token, dim]
    projected = keys @ qk  # [*batch, head, demo, dim]
    scores = queries @ projected.mT  # [*batch, head, token, demo]
    hidden = None
    if causal:
        hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
    if kind == "softmax":
        weights = (scores if hidden is None else scores.masked_fill(hidden, -torch.inf)).softmax(-1)
    else:
        key_norm = (projected * keys).sum(-1)[..., None, :]
        query_norm = ((queries @ qk) * queries).sum(-1)[..., :, None]
        weights = KERNELS[kind](scores, key_norm, query_norm) / demos
        weights = weights if hidden is None else weights.masked_fill(hidden, 0)
    return state + (weights @ keys @ pv.mT).sum(-3)


def states(
    state: Tokens, demos: int, weights: Weights, depth: int, kind: str = "linear", causal: bool = False
) -> list[Tokens]:
    """The tokens before the first layer and after each one."""
    every = [state]
    for layer in range(depth):
        used = layer % weights.qk.shape[0]
        every.append(attend(every[-1], demos, weights.qk[used], weights.pv[used], kind, causal))
    return every


def answer(state: Tokens, demos: int, dy: int) -> Float[Tensor, "*batch query dy"]:
    """Minus the label slot of the queries."""
    return -state[..., demos:, -dy:]


def moment(context: Float[Tensor, "*batch demo dim"]) -> Float[Tensor, "*batch dim dim"]:
    """C = (1/N) Σ e_i e_iᵀ: all that linear attention ever sees of the demonstrations."""
    return context.mT @ context / context.shape[-2]


def read_once(
    context: Float[Tensor, "*batch demo dim"], query: Float[Tensor, "*batch query dim"], weights: Weights, dy: int
) -> Float[Tensor, "*batch query dy"]:
    """The queries' label slots after one layer of linear attention.

    The demonstrations' values are projected onto these coordinates first, Σ_i (e_iᵀ qk e_q) (pv e_i): no product of
    the demonstrations with all their own coordinates, as their moment or a reading of them whole would be.
    """
    qk, pv = (part[0] for part in weights)
    asks = (query @ qk.flatten(0, 1).mT).unflatten(-1, qk.shape[:2]).flatten(-3, -2)  # [*batch, query head, dim]
    scores = asks @ context.mT / context.shape[-2]
    scores = scores.unflatten(-2, (query.shape[-2], qk.shape[0])).flatten(-2)  # [*batch, query, head demo]
    values = context @ pv[:, -dy:].flatten(0, 1).mT  # [*batch, demo, head dy]
    values = values.unflatten(-1, (qk.shape[0], dy)).transpose(-3, -2).flatten(-3, -2)  # [*batch, head demo, dy]
    return query[..., -dy:] + scores @ values


def query_states(
    c: Float[Tensor, "*batch dim dim"], query: Float[Tensor, "*batch query dim"], weights: Weights, depth: int
) -> list[Float[Tensor, "*batch query dim"]]:
    """Linear attention from C alone: every token moves by the same matrix, e ← (I + M)ᵀ e, M = Σ_h qkᵀ C pvᵀ.

    So C ← (I + M)ᵀ C (I + M), and the tokens of the demonstrations are not needed: the cost does not depend on N.
    The last layer moves the queries only.
    """
    every = [query]
    for layer in range(depth):
        qk, pv = (part[layer % part.shape[0]] for part in weights)
        if layer == depth - 1:
            reads = torch.einsum("...qe,hde->...hqd", every[-1], qk) @ c[..., None, :, :]
            return [*every, every[-1] + torch.einsum("...hqd,hed->...qe", reads, pv)]
        reads = torch.einsum("...de,hdf->...hfe", c, qk)  # qkᵀ C, [*batch, head, dim, dim]
        m = torch.einsum("...hfd,hed->...fe", reads, pv)  # [*batch, dim, dim]
        every.append(every[-1] + every[-1] @ m)
        half = c + c @ m
        c = half + m.mT @ half
    return every
