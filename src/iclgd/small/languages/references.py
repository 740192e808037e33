"""The learners that a trained layer is held against, each at its best on training episodes."""

import torch
from jaxtyping import Float
from torch import Tensor

from iclgd.metrics.functions import Predict, half_square
from iclgd.small import learners
from iclgd.small.references import NEIGHBOURS, linear, nearest
from iclgd.tasks.regression import Episodes

Matrix = Float[Tensor, "dx dx"]
PENALTIES = torch.logspace(-3, 3, 25, dtype=torch.float64)


def best_penalty(sample: Episodes) -> float:
    """The ridge penalty of least squared error on drawn episodes, out of a grid."""
    losses = [
        float(half_square(learners.predict(learners.ridge(sample.x, sample.y, p), sample.query), sample.target))
        for p in PENALTIES.tolist()
    ]
    return float(PENALTIES[int(torch.tensor(losses).argmin())])


def no_context(classifier: Float[Tensor, " dx"]) -> Predict:
    """w·x_q: what can be answered without looking at a demonstration."""
    return lambda episodes: (episodes.query @ classifier.to(episodes.query.dtype))[..., None]


def references(sample: Episodes, rate: float, matrix: Matrix | None) -> dict[str, Predict]:
    """Learners by name: ridge tuned on the sample, preconditioned GD only if its matrix is given."""
    penalty, k = best_penalty(sample), min(NEIGHBOURS, sample.x.shape[-2])
    found = {"gd": linear(lambda x, y: learners.gd(x, y, rate))}
    if matrix is not None:
        found["preconditioned gd"] = linear(lambda x, y: learners.preconditioned(x, y, matrix.to(x.dtype)))
    return found | {
        "ridge": linear(lambda x, y: learners.ridge(x, y, penalty)),
        f"{k} nearest": nearest(k),
    }
