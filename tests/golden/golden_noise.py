"""Scores of random updates, which the first claims are about."""

from torch import Tensor

from iclgd.metrics.nulls import noise_score


def noise() -> dict[str, Tensor]:
    return {m: noise_score(m, 3**0.5, dim=64, draws=20, seed=1) for m in ("SimAOU", "SimAOU_norm")}
