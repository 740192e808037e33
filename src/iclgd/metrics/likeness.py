"""Likeness of updates: what reading the demonstrations changed, against what training on them changed.

All of them are cosines, layer by layer and query by query, in float64. A cosine is nan where a vector is exactly zero:
it has no direction to compare. (The papers' code gives 0 there.)
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from iclgd.metrics.rows import row_wise
from iclgd.metrics.updates import Outputs, Scores

Maps = Float[Tensor, "query layer head key"]  # attention logits at one position, 0 where there is no key


def cosine(a: Float[Tensor, "*axes dim"], b: Float[Tensor, "*axes dim"]) -> Float[Tensor, "*axes"]:
    """a·b / ‖a‖‖b‖ along the last axis; nan where either is exactly zero."""
    return (unit(a) * unit(b)).sum(-1)


def unit(a: Float[Tensor, "*axes dim"]) -> Float[Tensor, "*axes dim"]:
    """a / ‖a‖ in float64; nan where a is exactly zero. Scaled first, so that tiny updates do not underflow."""
    a = a.double()
    a = a / a.abs().amax(-1, keepdim=True)  # 0 / 0 is nan, and stays it
    return a / torch.linalg.vector_norm(a, dim=-1, keepdim=True)


@row_wise
def sim_aou(zero: Outputs, icl: Outputs, tuned: Outputs) -> Scores:
    """cos(h_icl − h_zero, h_tuned − h_zero), layer by layer (Deutch 2023, §2.2)."""
    return cosine(icl.double() - zero.double(), tuned.double() - zero.double())


def sim_aou_norm(zero: Outputs, icl: Outputs, tuned: Outputs) -> Scores:
    """The same after scaling each h to length one, as Dai 2022 computed it.

    Biased upwards: independent random updates of size ρ‖h_zero‖ score (s−1)² / ((s−1)² + ρ²), s = √(1+ρ²); a quarter
    at ρ = √3 (Deutch 2023, §3.1). Kept to compare with published tables.
    """
    return sim_aou(unit(zero), unit(icl), unit(tuned))


@row_wise
def sim_am(icl: Maps, tuned: Maps) -> Scores:
    """cos(m_icl, m_tuned) of attention logits over the query's own tokens, mean over heads (Dai 2022, §4.2)."""
    return cosine(icl, tuned).nanmean(-1)


@row_wise
def sim_am_delta(zero: Maps, icl: Maps, tuned: Maps) -> Scores:
    """cos(m_icl − m_zero, m_tuned − m_zero), mean over heads (Deutch 2023, §3.2).

    With two finetuned traces in place of `icl` and `tuned` it is their α (Deutch 2023, B.1).
    """
    return cosine(icl.double() - zero.double(), tuned.double() - zero.double()).nanmean(-1)


def centred(updates: Outputs) -> Outputs:
    """Each query's update without the mean over queries: what is left when every query moves alike is nothing."""
    return updates - updates.mean(0, keepdim=True)


def centred_maps(updates: Maps, lengths: Int[Tensor, " query"]) -> Maps:
    """The same for attention logits, aligned at the last key, where the template's own words are; 0 beyond."""
    width = updates.shape[-1]
    shift = width - lengths  # to the right, query by query
    places = torch.arange(width, device=updates.device)
    index = (places[None, :] - shift[:, None]) % width  # [query, key]
    there = places[None, :] >= shift[:, None]
    aligned = updates.gather(-1, index[:, None, None, :].expand_as(updates)) * there[:, None, None, :]
    mean = aligned.sum(0) / there.sum(0).clamp_min(1)
    return (aligned - mean) * there[:, None, None, :]
