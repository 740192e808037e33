"""What likeness gives to vectors without meaning (Deutch 2023, §3): noise, and updates followed too far."""

from math import sqrt

import numpy as np
import torch

from iclgd.metrics.likeness import cosine, sim_am, sim_am_delta, sim_aou, sim_aou_norm
from iclgd.metrics.nulls import isotropic, noise_score, other_query, uniform
from iclgd.metrics.prediction import agreement, rec2ftp
from iclgd.metrics.ranking import training_token_tau

DIM, DRAWS = 4096, 200


def noise_scores(seed: int) -> dict[str, float]:
    """Both metrics of independent random updates, at √3, 1 and 1000 times the length of the zero-shot output."""
    cases = {"norm, √3": ("SimAOU_norm", sqrt(3)), "plain, √3": ("SimAOU", sqrt(3)), "norm, 1": ("SimAOU_norm", 1.0)}
    cases |= {"norm, large": ("SimAOU_norm", 1000.0)}
    return {name: float(noise_score(*case, DIM, DRAWS, seed).mean()) for name, case in cases.items()}


def _vectors(seed: int, count: int = 3, queries: int = 50, dim: int = 1024) -> list[torch.Tensor]:
    random = np.random.default_rng([seed, 42])
    return [torch.from_numpy(random.standard_normal((queries, 1, dim))) for _ in range(count)]


def pythagoras(seed: int) -> dict[str, float]:
    """‖z + r‖ / ‖z‖ for a random r of length √3 ‖z‖."""
    z, r, _ = _vectors(seed, dim=DIM)
    r = r * sqrt(3) * z.norm(dim=-1, keepdim=True) / r.norm(dim=-1, keepdim=True)
    return {"ratio": float(((z + r).norm(dim=-1) / z.norm(dim=-1)).mean())}


def size_of_updates(seed: int) -> dict[str, float]:
    """How much both metrics change when one update is made ten times as long, its direction kept."""
    z, r, s = _vectors(seed)
    change = {
        name: metric(z, z + r, z + 10 * s).mean() - metric(z, z + r, z + s).mean()
        for name, metric in (("plain", sim_aou), ("norm", sim_aou_norm))
    }
    return {name: float(value.abs()) for name, value in change.items()}


def direction_of_updates(seed: int) -> dict[str, float]:
    """SimAOU of an update with itself, with its negative, and with the half-way mixture of it and another one."""
    z, r, s = _vectors(seed)
    r, s = (v / v.norm(dim=-1, keepdim=True) for v in (r, s))
    return {
        "itself": float(sim_aou(z, z + r, z + 2 * r).mean()),
        "negative": float(sim_aou(z, z + r, z - r).mean()),
        "half": float(sim_aou(z, z + r, z + r + s).mean()),
    }


def maps_too_far(seed: int) -> dict[str, float]:
    """SimAM and SimAM_Δ when reading's own direction is followed 30 times as far, minus the same once."""
    random = np.random.default_rng([seed, 43])
    z, r = (torch.from_numpy(random.standard_normal((20, 2, 4, 30))) for _ in range(2))
    once, far = z + 0.5 * r, z + 15 * r
    return {
        "SimAM": float((sim_am(once, far) - sim_am(once, once)).mean()),
        "SimAM_Δ": float((sim_am_delta(z, once, far) - sim_am_delta(z, once, once)).abs().mean()),
    }


def vector_nulls(seed: int) -> dict[str, float]:
    """Cosines to a learner's update of what is put in its place: random directions, numbers from [0, 1), another's."""
    z, r, _ = _vectors(seed, queries=200)
    tuned = z + r
    found = {
        "random": isotropic(z, tuned, seed),
        "uniform": uniform(z, seed),
        "other query": other_query(z, tuned, seed),
    }
    scores = {name: float(cosine(null - z, tuned - z).mean()) for name, null in found.items()}
    size = float(((found["random"] - z).norm(dim=-1) / r.norm(dim=-1) - 1).abs().max())
    return scores | {"size": size}


def recall_by_chance(seed: int) -> dict[str, float]:
    """Rec2FTP minus its base rate where finetuning is blind to which queries it corrects: nothing on average.

    ``rate`` itself is the share of wrong queries that reading corrects, however high that is.
    """
    random = np.random.default_rng([seed, 44])
    count = 20_000
    answers = torch.zeros(count, dtype=torch.long)

    def scores(right: float) -> torch.Tensor:
        hit = torch.from_numpy(random.random(count) < right)
        return torch.stack([hit.double(), (~hit).double()], -1)

    zero, icl, tuned = scores(0.5), scores(0.9), scores(0.7)
    found = rec2ftp(zero, icl, tuned, answers)
    same = agreement(icl, tuned).double().mean()
    return {"over base": found.rate - found.base, "rate": found.rate, "agreement": float(same)}


def ranks_of_noise(seed: int) -> dict[str, float]:
    """Kendall's τ of attention to training tokens, read and learned: unrelated, the same, and reversed."""
    random = np.random.default_rng([seed, 45])
    read, other = (torch.from_numpy(random.standard_normal((100, 1, 30))) for _ in range(2))
    tokens = [torch.eye(30, dtype=torch.float64)[None]]  # ⟨q_train, q_test⟩ is then q_test itself

    def tau(learned: torch.Tensor) -> float:
        return float(training_token_tau(read, [range(30)], learned, tokens).mean())

    return {"noise": tau(other), "itself": tau(3 * read), "reverse": tau(-read)}
