"""Nulls: what a likeness gives when there is nothing to find."""

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from iclgd.metrics.likeness import Maps, sim_aou, sim_aou_norm
from iclgd.metrics.rows import row_wise
from iclgd.noise import normal
from iclgd.noise import uniform as uniform_numbers


def isotropic(zero: Tensor, tuned: Tensor, seed: int) -> Tensor:
    """A trace whose updates have the sizes of the tuned ones (along the last axis) and random directions."""
    return _directed(zero, tuned, normal(tuned.shape, seed, tuned.device))


def isotropic_maps(zero: Maps, tuned: Maps, keys: Bool[Tensor, "query key"], seed: int, first: int = 0) -> Maps:
    """The same for attention logits: no noise where there is no key. These queries come after ``first`` others."""
    before = first * tuned[0].numel() if len(tuned) else 0
    return _directed(zero, tuned, normal(tuned.shape, seed, tuned.device, first=before).mul_(keys[:, None, None, :]))


def _directed(zero: Tensor, tuned: Tensor, random: Tensor) -> Tensor:
    """``random`` made as long as the update, and a trace of it, in its own place."""
    length = torch.linalg.vector_norm(random, dim=-1, keepdim=True)
    return random.mul_(_length(zero, tuned)).div_(length).add_(zero)


@row_wise
def _length(zero: Tensor, tuned: Tensor) -> Tensor:
    return torch.linalg.vector_norm(tuned.double() - zero.double(), dim=-1, keepdim=True)


def uniform(zero: Tensor, seed: int) -> Tensor:
    """What the papers' code took for a random update: numbers from [0, 1), the zero-shot output not subtracted.

    All of them are positive, so it measures only the mean component of the other update. Returned as a trace, so that
    its update is exactly that.
    """
    return zero.double() + uniform_numbers(zero.shape, seed, zero.device)


def partners(count: int, seed: int) -> np.ndarray:
    """For each query another one: a random cycle through all of them."""
    order = np.random.RandomState(seed).permutation(count)
    partner = np.empty(count, dtype=int)
    partner[order] = np.roll(order, 1)
    return partner


def other_query(zero: Tensor, tuned: Tensor, seed: int) -> Tensor:
    """A trace in which each query has the update of another one; nan where there is only one query."""
    if len(tuned) < 2:
        return torch.full_like(zero, torch.nan, dtype=torch.float64)
    partner = torch.from_numpy(partners(len(tuned), seed)).to(tuned.device)
    return row_wise(lambda own, other: own.double() + (tuned[other].double() - zero[other].double()))(zero, partner)


def other_query_maps(zero: Maps, tuned: Maps, keys: Bool[Tensor, "query key"], seed: int) -> Maps:
    """The same for attention logits: aligned at the last token, where the template's own words are; 0 beyond."""
    if len(tuned) < 2:
        return torch.full_like(zero, torch.nan, dtype=torch.float64)
    partner = torch.from_numpy(partners(len(tuned), seed)).to(tuned.device)
    lengths = keys.sum(-1)
    there = torch.arange(keys.shape[-1], device=keys.device) + (lengths[partner] - lengths)[:, None]  # query key

    @row_wise
    def moved(own: Maps, other: Tensor, there: Tensor, keys: Tensor) -> Maps:
        update = tuned[other].double() - zero[other].double()
        update = update.gather(-1, there.clamp(0, keys.shape[-1] - 1)[:, None, None, :].expand_as(update))
        return own.double() + update * ((there >= 0) & keys)[:, None, None, :]

    return moved(zero, partner, there, keys)


def noise_score(metric: str, ratio: float, dim: int, draws: int, seed: int) -> Float[Tensor, " draw"]:
    """SimAOU or SimAOU_norm of two independent random updates of norm ratio·‖z‖ (Deutch 2023, §3.1)."""
    random = np.random.RandomState(seed)
    zero, icl, tuned = (torch.from_numpy(random.standard_normal((draws, 1, dim))) for _ in range(3))
    icl, tuned = (
        ratio
        * torch.linalg.vector_norm(zero, dim=-1, keepdim=True)
        * r
        / torch.linalg.vector_norm(r, dim=-1, keepdim=True)
        for r in (icl, tuned)
    )
    return {"SimAOU": sim_aou, "SimAOU_norm": sim_aou_norm}[metric](zero, zero + icl, zero + tuned)[:, 0]
