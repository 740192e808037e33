"""The learners that a trained layer is held against, each at its best on training episodes."""

import torch
from jaxtyping import Float
from torch import Tensor

from iclgd.linear import learners
from iclgd.linear.compare import Predictor
from iclgd.linear.references import linear
from iclgd.tasks.regression import Episodes

Matrix = Float[Tensor, "dx dx"]
NEIGHBOURS = 3
PENALTIES = torch.logspace(-3, 3, 25, dtype=torch.float64)


def best_rate(sample: Episodes) -> float:
    """The rate of one GD step that is least-squares optimal on drawn episodes; 0 if no step in that direction helps."""
    answer = learners.predict(learners.averaging(sample.x, sample.y), sample.query)
    return max(0.0, float((answer * sample.target).sum() / answer.square().sum()))


def best_penalty(sample: Episodes) -> float:
    """The ridge penalty of least squared error on drawn episodes, out of a grid."""
    losses = [
        float(
            learners.half_square(learners.predict(learners.ridge(sample.x, sample.y, p), sample.query), sample.target)
        )
        for p in PENALTIES.tolist()
    ]
    return float(PENALTIES[int(torch.tensor(losses).argmin())])


def rank_one(sample: Episodes, best: Matrix, rounds: int = 10) -> Matrix:
    """The least-squares optimal preconditioner of the form u vᵀ: least squares for u and v in turn, from the best A."""
    right = torch.linalg.svd(best).Vh[0]
    b = learners.averaging(sample.x, sample.y).flatten(0, 1)  # one query an episode: [episode, dx]
    query, target = sample.query.flatten(0, 1), sample.target.flatten(0, 1)
    for _ in range(rounds):
        left = torch.linalg.lstsq(b * (query @ right)[:, None], target).solution[:, 0]
        right = torch.linalg.lstsq(query * (b @ left)[:, None], target).solution[:, 0]
    return torch.outer(left, right)


def nearest(episodes: Episodes) -> Tensor:
    """The mean label of the nearest demonstrations; constant around a query, so its sensitivity is zero."""
    k = min(NEIGHBOURS, episodes.x.shape[-2])
    return learners.nearest(episodes.x, episodes.y, episodes.query, k) + 0 * episodes.query.sum(-1, keepdim=True)


def references(sample: Episodes, matrix: Matrix | None) -> dict[str, Predictor]:
    """Learners by name, those with a preconditioner only if the best one is given."""
    rate = best_rate(sample)
    penalty = best_penalty(Episodes(*(part[:2000] for part in sample)))
    found = {"gd": linear(lambda x, y: learners.gd(x, y, rate))}
    if matrix is not None:
        single = rank_one(sample, matrix)
        found["preconditioned gd"] = linear(lambda x, y: learners.preconditioned(x, y, matrix.to(x.dtype)))
        found["rank-one gd"] = linear(lambda x, y: learners.preconditioned(x, y, single.to(x.dtype)))
    return found | {
        "ridge": linear(lambda x, y: learners.ridge(x, y, penalty)),
        f"{NEIGHBOURS} nearest": nearest,
    }
