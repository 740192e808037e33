"""Context as a patch of the weights behind attention (Dherin 2025), in untrained blocks: algebra, not learning."""

from itertools import pairwise

import torch
from torch import Tensor

from iclgd.small.identities.drawn import F64, apart, source, whole
from iclgd.small.theorems.implicit import Block, patch, path_as_descent


def _block(seed: int, tokens: int) -> tuple[Block, Tensor, torch.Generator]:
    """An untrained block and tokens, the query last."""
    g = source(seed)
    dim, hidden = whole(4, 9, g), whole(6, 14, g)
    shapes = ((dim, dim), (dim, dim), (dim, dim), (hidden, dim), (hidden,), (dim, hidden), (dim,))
    weights = [torch.randn(*s, generator=g, dtype=F64) / s[-1] ** 0.5 for s in shapes]
    return Block(*weights), torch.randn(tokens, dim, generator=g, dtype=F64), g


def rank_one_patch(seed: int) -> dict[str, float]:
    """Deleting a context and patching W₁ leaves the output; with a skip the last bias has to take part.

    ``rank`` is the second singular value of the patch over the first; ``unpatched`` what deleting alone changes.
    """
    block, tokens, _ = _block(seed, 12)
    few = tokens[8:]
    a, part = block.attention(tokens), block.attention(few)
    change = patch(block.w1, a, part)
    skipped = Block(**{**vars(block), "skip": True})
    values = torch.linalg.svdvals(change)
    return {
        "residual": apart(block(few, change), block(tokens)),
        "skip": apart(skipped(few, change, a - part), skipped(tokens)),
        "skip, weights only": apart(skipped(few, change), skipped(tokens)),
        "rank": float(values[1] / values[0]),
        "unpatched": apart(block(few), block(tokens)),
    }


def any_path_is_descent(seed: int) -> dict[str, float]:
    """A random path of matrices obeys the same recursion, W ← W − h ∇ tr(Δ_iᵀ W), as the one that reading makes."""
    g = source(seed)
    path = torch.randn(10, 5, 4, generator=g, dtype=F64).cumsum(0)
    return {"residual": apart(path_as_descent(path, 0.3), path)}


def patches_converge(seed: int) -> dict[str, float]:
    """How the patches' differences shrink as tokens are read one by one, in an untrained block: the log-log slope.

    ``one by one`` is how far the product of the tokens' own patches is from the patch of all at once, relative to it,
    and ``same output`` how far apart the two make the output.
    """
    block, tokens, _ = _block(seed, 400)
    query = tokens[-1:]
    states = [block.attention(torch.cat([tokens[:n], query])) for n in range(len(tokens))]
    changes = torch.stack([patch(block.w1, state, states[0]) for state in states])
    gaps = (changes[1:] - changes[:-1]).flatten(1).norm(dim=1)
    counts = torch.arange(1, len(states), dtype=F64)
    early, late = slice(9, 30), slice(200, 399)
    slope = (gaps[late].log().mean() - gaps[early].log().mean()) / (
        counts[late].log().mean() - counts[early].log().mean()
    )
    w = block.w1
    for now, then in reversed(list(pairwise(states[:31]))):  # the last token is deleted first
        w = w + patch(w, then, now)
    at_once = block.w1 + patch(block.w1, states[30], states[0])
    return {
        "slope": float(slope),
        "one by one": float((w - at_once).norm() / (at_once - block.w1).norm()),
        "same output": apart(w @ states[0], at_once @ states[0]),
    }
