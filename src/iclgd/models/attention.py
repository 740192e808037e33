"""Softmax attention in two ways that give the same numbers: with every score in memory, and without the prefix's.

The first can be looked into and changed. The second, `merged`, is for rows behind a prefix that each of them sees
whole: a fused kernel attends the prefix's one copy and returns, with its output o_P, the log-sum-exp ℓ_P of the scores
it did not keep. To the own tokens, of scores s and values V, the prefix is then one more key:

    softmax([s_P, s]) [V_P; V] = softmax([ℓ_P, s]) [o_P; V].
"""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

Kernel = Callable[[Tensor, Tensor, Tensor, float], tuple[Tensor, Tensor]]
Pair = tuple[Float[Tensor, "1 keyhead prefix dim"], Float[Tensor, "1 keyhead prefix dim"]]  # keys and values

# from how many tokens of a prefix on the fused kernel is used: below, it is not faster
FUSED_FROM: dict[str, float] = {"cuda": 64, "cpu": 64}


# the prefix, one copy for all rows


def folded(query: Float[Tensor, "batch head query dim"], keyheads: int) -> Float[Tensor, "keyhead rows dim"]:
    """All rows of a key head as one matrix, whichever sequence they are of."""
    return query.unflatten(1, (keyheads, -1)).permute(1, 0, 2, 3, 4).reshape(keyheads, -1, query.shape[-1])


def unfolded(rows: Tensor, batch: int, queries: int) -> Float[Tensor, "batch head query dim"]:
    """`folded` taken back; the last axis may be another one."""
    return rows.view(rows.shape[0], batch, -1, queries, rows.shape[-1]).permute(1, 0, 2, 3, 4).flatten(1, 2)


def shared_scores(
    query: Float[Tensor, "batch head query dim"], keys: Float[Tensor, "1 keyhead prefix dim"]
) -> Float[Tensor, "batch head query prefix"]:
    """q·k against one copy of the prefix: all rows of a key head become one matrix product."""
    scores = folded(query, keys.shape[1]) @ keys[0].transpose(1, 2)
    return unfolded(scores, query.shape[0], query.shape[2])


def shared_values(
    weights: Float[Tensor, "batch head query prefix"], values: Float[Tensor, "1 keyhead prefix dim"]
) -> Float[Tensor, "batch head query dim"]:
    """The weighted sum of one copy of the prefix's values: `shared_scores` with keys and queries swapped."""
    return shared_scores(weights, values.transpose(2, 3))


def summed_scores(
    query: Float[Tensor, "batch head query dim"], keys: Float[Tensor, "1 keyhead prefix dim"]
) -> Float[Tensor, "batch query prefix"]:
    """Σ_h q_h·k_h against the prefix: queries that share a key head are added before the product."""
    grouped = query.unflatten(1, (keys.shape[1], -1)).sum(2)  # batch keyhead query dim
    return grouped.transpose(1, 2).flatten(2) @ keys[0].transpose(1, 2).flatten(0, 1)


# every score in memory


def scores_of(
    query: Float[Tensor, "batch head query dim"],
    key: Float[Tensor, "batch keyhead key dim"],
    prefix: Pair | None,
    scaling: float,
) -> Float[Tensor, "batch head query all"]:
    """q·k·scaling over prefix and own tokens."""
    own = query @ repeat(key, query.shape[1] // key.shape[1]).transpose(2, 3) * scaling
    return own if prefix is None else torch.cat([shared_scores(query, prefix[0]) * scaling, own], dim=-1)


def masked(
    scores: Float[Tensor, "batch head query key"], mask: Float[Tensor, "_ _ query seen"] | None
) -> Float[Tensor, "batch head query key"]:
    """The mask added to the last keys, which it covers: those before them are seen by every row.

    In place where it covers a part and no gradient is asked for: the whole is then not written again.
    """
    if mask is None:
        return scores
    before = scores.shape[-1] - mask.shape[-1]
    if before == 0:
        return scores + mask
    if scores.requires_grad:
        return torch.cat([scores[..., :before], scores[..., before:] + mask], -1)
    scores[..., before:] += mask
    return scores


def weights_of(scores: Float[Tensor, "batch head query key"], sinks: Tensor | None, dtype: torch.dtype) -> Tensor:
    """The softmax, in float32 or better; sinks take their share of it."""
    precise = torch.promote_types(dtype, torch.float32)
    if sinks is None:
        return torch.softmax(scores, dim=-1, dtype=precise).to(dtype)
    more = sinks.reshape(1, -1, 1, 1).expand(scores.shape[0], -1, scores.shape[2], 1)
    scores = torch.cat([scores, more.to(scores.dtype)], dim=-1)
    return torch.softmax(scores, dim=-1, dtype=precise).to(dtype)[..., :-1]


def weighted(
    weights: Float[Tensor, "batch head query all"], value: Float[Tensor, "batch keyhead key dim"], prefix: Pair | None
) -> Float[Tensor, "batch head query dim"]:
    """The weighted sum of the values of prefix and own tokens."""
    own = value.shape[2]
    output = weights[..., -own:] @ repeat(value, weights.shape[1] // value.shape[1])
    return output if prefix is None else output + shared_values(weights[..., :-own], prefix[1])


def repeat(states: Float[Tensor, "batch keyhead key dim"], groups: int) -> Float[Tensor, "batch head key dim"]:
    return states if groups == 1 else states[:, :, None].expand(-1, -1, groups, -1, -1).flatten(1, 2)


# the prefix's scores never in memory


def is_fused(kind: str, dtype: torch.dtype, prefix: int) -> bool:
    """Whether a kind of device attends a prefix of that many tokens by a fused kernel; never in float64."""
    return prefix >= FUSED_FROM.get(kind, math.inf) and dtype != torch.float64


def kernel_for(query: Tensor, prefix: int) -> Kernel | None:
    """The fused kernel for these queries, where there is one and it pays."""
    kind, dim = query.device.type, query.shape[-1]
    if not is_fused(kind, query.dtype, prefix) or query.requires_grad:
        return None
    if kind == "cpu":
        return _on_cpu
    if kind == "cuda" and dim * query.element_size() % 16 == 0:
        return _on_cuda if query.dtype == torch.float32 or dim > 256 else _flash_on_cuda
    return None


def _on_cpu(query: Tensor, key: Tensor, value: Tensor, scaling: float) -> tuple[Tensor, Tensor]:
    return torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(query, key, value, scale=scaling)


def _on_cuda(query: Tensor, key: Tensor, value: Tensor, scaling: float) -> tuple[Tensor, Tensor]:
    found = torch.ops.aten._scaled_dot_product_efficient_attention(query, key, value, None, True, scale=scaling)
    return found[0], found[1][..., : query.shape[2]]  # the kernel pads its rows


def _flash_on_cuda(query: Tensor, key: Tensor, value: Tensor, scaling: float) -> tuple[Tensor, Tensor]:
    found = torch.ops.aten._scaled_dot_product_flash_attention(query, key, value, scale=scaling)
    return found[0], found[1]


def merged(
    query: Float[Tensor, "batch head query dim"],
    own: Float[Tensor, "batch head query key"],
    value: Float[Tensor, "batch keyhead key dim"],
    prefix: Pair,
    scaling: float,
    sinks: Tensor | None,
    kernel: Kernel,
) -> Float[Tensor, "batch head query dim"]:
    """Attention over a prefix that every row sees whole and over own tokens of masked scores ``own``.

    The prefix is one more key, of score ℓ_P and value o_P.
    """
    batch, heads, queries, _ = query.shape
    keys, values = prefix
    out, behind = kernel(folded(query, keys.shape[1])[None], keys, values, scaling)
    behind = unfolded(behind[0, ..., None], batch, queries)
    precise = torch.promote_types(query.dtype, torch.float32)
    weights = weights_of(torch.cat([own.to(precise), behind.to(precise)], -1), sinks, query.dtype)
    share = weights[..., :-1] @ repeat(value, heads // value.shape[1])
    return torch.addcmul(share, unfolded(out[0], batch, queries), weights[..., -1:])
