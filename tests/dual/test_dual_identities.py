"""Rows 14–23 of the checklist: identities in float64 on sizes that hypothesis draws."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from iclgd.dual.chain import Layer, run, run_by_duals
from iclgd.dual.features import directions, gram_root, log_random_features, points, random_scores, random_variance
from iclgd.dual.model import Dual, Relu, behind_relu, linear_dual, softmax_dual

TIGHT = 1e-11
sizes = st.integers(1, 9)
seeds = st.integers(0, 2**20)
scales = st.sampled_from([0.0, 0.3, 1.0, 10.0, 100.0, 300.0])
rates = st.floats(1e-3, 10.0)


def normal(generator: torch.Generator, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def relative(a: torch.Tensor, b: torch.Tensor) -> float:
    return float((a - b).abs().max() / b.abs().max().clamp_min(1e-300))


def head(seed: int, demos: int, own: int, dim: int, dv: int, scale: float) -> tuple[torch.Tensor, ...]:
    """Keys, values, query and which tokens are demonstrations; the largest score is ±``scale``."""
    g = torch.Generator().manual_seed(seed)
    keys, values, query = normal(g, demos + own, dim), normal(g, demos + own, dv), normal(g, dim)
    keys = keys * scale / (keys @ query).abs().max()
    return keys, values, query, torch.arange(demos + own) < demos


@given(seeds, sizes, sizes, sizes, sizes, scales, rates)
def test_softmax_attention_is_one_gradient_step(
    seed: int, demos: int, own: int, dim: int, dv: int, scale: float, rate: float
) -> None:
    keys, values, query, which = head(seed, demos, own, dim, dv, scale)
    scores = keys @ query
    dual = softmax_dual(scores, keys, values, which)
    weights = scores.softmax(-1)
    assert relative(dual.predict(dual.step(rate)), weights @ values) <= TIGHT * 10 ** (scale > 1)
    assert torch.isfinite(dual.step(rate)).all()
    zero = weights[~which] @ values[~which]
    assert (dual.zero_shot - zero).abs().max() <= TIGHT * values.abs().max()
