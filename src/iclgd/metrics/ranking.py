"""Whether the same training tokens matter: Kendall's τ of attention to them, read against trained on."""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

AT_ONCE, MANY = {"cpu": 2**17}, 2**22  # numbers ranked at once: what fits a cache, what fills a device


def training_token_tau(
    context: Float[Tensor, "query layer context"],
    spans: Sequence[range],
    tested: Float[Tensor, "query layer qdim"],
    trained: Sequence[Float[Tensor, "layer _ qdim"]],
) -> Float[Tensor, "query layer"]:
    """Kendall's τ between ICL's attention to each demonstration token and finetuning's (Dai 2022, §4.2).

    For ICL: attention logits to the demonstrations' own tokens (``spans`` of the context), summed over heads. For
    finetuning: ⟨q_train, q_test⟩, the dual form's attention, q_train taken as each demonstration was learned and
    q_test after training. Their code puts both through a softmax first, which changes no rank. Where a model rotates
    queries by position, q is taken before the rotation (theirs has none). nan below two tokens: they have no order.
    """
    if sum(map(len, spans)) < 2:
        return torch.full(context.shape[:2], torch.nan, dtype=torch.float64, device=context.device)
    columns = torch.tensor([index for span in spans for index in span], device=context.device)
    read = context[:, :, columns].double()
    learned = torch.cat(list(trained), 1).double()  # layer token qdim
    weights = torch.einsum("ltd,qld->qlt", learned, tested.double())
    return kendall(read.flatten(0, 1), weights.flatten(0, 1)).unflatten(0, context.shape[:2])


def kendall(a: Float[Tensor, "row n"], b: Float[Tensor, "row n"]) -> Float[Tensor, " row"]:
    """τ_b = (C − D) / √((P − T_a)(P − T_b)) row by row, for many rows at once (Kendall 1945).

    P pairs, C of them concordant, D discordant, T tied; nan where a row is constant or has a nan. D is the number of
    inversions that are left of a once b is in order (Knight 1966).
    """
    rows = max(1, AT_ONCE.get(a.device.type, MANY) // a.shape[-1])
    return torch.cat([_kendall(*part) for part in zip(a.split(rows), b.split(rows), strict=True)])


def _kendall(a: Float[Tensor, "row n"], b: Float[Tensor, "row n"]) -> Float[Tensor, " row"]:
    order = argsort(a)
    in_a, b = a.gather(-1, order), b.gather(-1, order)
    places = argsort(b)
    in_b = b.gather(-1, places)
    tau = 1 - inversions(places).double() * (4 / (a.shape[-1] * (a.shape[-1] - 1)))
    odd = ((in_a[:, 1:] > in_a[:, :-1]) & (in_b[:, 1:] > in_b[:, :-1])).logical_not_().any(-1).nonzero()[:, 0]
    if len(odd):  # ties, or a nan
        tau[odd] = _kendall_with_ties(in_a[odd], b[odd])
    return tau


def _kendall_with_ties(a: Float[Tensor, "row n"], b: Float[Tensor, "row n"]) -> Float[Tensor, " row"]:
    """The same for rows with ties; ``a`` is in order."""
    in_b, places = b.sort(dim=-1, stable=True)  # equal b stay in the order of a: they make no inversion
    new_a, new_b = (values[:, 1:] != values[:, :-1] for values in (a, in_b))
    along = torch.nn.functional.pad(new_a.cumsum(-1), (1, 0)).gather(-1, places)  # ranks of a, b in order
    tied_a, tied_b, both = _tied(new_a), _tied(new_b), _tied(new_b | (along[:, 1:] != along[:, :-1]))
    # equal a are told apart by their place, so that they make no inversion either
    discordant = inversions(along.sort(dim=-1, stable=True).indices)
    pairs = a.shape[-1] * (a.shape[-1] - 1) // 2
    concordant = pairs - tied_a - tied_b + both - discordant
    scale = (pairs - tied_a).double().sqrt() * (pairs - tied_b).double().sqrt()  # 0 where a row is constant
    tau = (concordant - discordant).double() / scale
    return torch.where(a.isnan().any(-1) | b.isnan().any(-1), torch.nan, tau)


def argsort(values: Float[Tensor, "row n"]) -> Int[Tensor, "row n"]:
    """Places in ascending order, ties in any; numpy's is three times as fast as torch's on a CPU."""
    if values.device.type == "cpu":
        return torch.from_numpy(np.argsort(values.numpy(), axis=-1))
    return values.argsort(-1)


def _tied(new: Bool[Tensor, "row step"]) -> Int[Tensor, " row"]:
    """Pairs within the runs of a row, ``new`` saying at which steps one begins: an entry's place in its run, summed."""
    place = torch.arange(1, new.shape[-1] + 1, device=new.device)
    return (place - (place * new).cummax(-1).values).sum(-1)


def inversions(order: Int[Tensor, "row n"]) -> Int[Tensor, " row"]:
    """How many pairs of each permutation of 0 … n − 1 are out of order.

    Places and numbers are cut into blocks of about √n. Pairs in one block of numbers, and pairs in one block of places
    but not of numbers, are compared one by one. All others are counted by blocks: with C[g, h] the entries in block g
    of places and h of numbers, Σ C[g, h] C[g′, h′] over g < g′ and h > h′.
    """
    rows, n = order.shape
    size = 1 << (n.bit_length() // 2)
    blocks = -(-n // size)
    rest = torch.arange(n, blocks * size, device=order.device).expand(rows, -1)  # in order behind all others
    order = torch.cat([order, rest], -1)
    small = torch.int16 if blocks * size < 2**15 else torch.int32
    numbers, at = order // size, torch.arange(blocks * size, device=order.device)
    places = torch.empty_like(order, dtype=small).scatter_(-1, order, at.to(small).expand(rows, -1))
    near = sum(_inverted(part.view(rows, blocks, size)) for part in (numbers.to(small), places))
    table = torch.zeros(rows, blocks * blocks, device=order.device)
    table.scatter_add_(-1, at // size * blocks + numbers, torch.ones_like(order, dtype=table.dtype))
    counts = table.view(rows, blocks, blocks)
    smaller = counts @ torch.ones(blocks, blocks, device=order.device).triu(1)  # numbers in blocks before h, at g
    earlier = counts.cumsum(1) - counts  # places in blocks before g, at h
    return near + (earlier * smaller).sum((1, 2), dtype=torch.float64).long()


def _inverted(parts: Int[Tensor, "row block size"]) -> Int[Tensor, " row"]:
    """Pairs out of order within blocks: whole numbers, so a positive difference is one of at least 1."""
    along = parts.permute(2, 0, 1).contiguous()  # size row block
    found = torch.zeros_like(along[0])
    for place in range(len(along) - 1):
        found += (along[place] - along[place + 1 :]).clamp_(0, 1).sum(0, dtype=found.dtype)
    return found.sum(-1)
