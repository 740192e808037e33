"""The learners that a trained layer is held against, each at its best on training episodes."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from iclgd.metrics.functions import Predict, half_square
from iclgd.small import learners
from iclgd.small.languages.membership import Membership
from iclgd.small.languages.optimum import best_classifier, best_preconditioner, best_rate
from iclgd.small.references import NEIGHBOURS, linear, nearest
from iclgd.small.streams import generator
from iclgd.tasks.regression import Episodes

Matrix = Float[Tensor, "dx dx"]
SAMPLE = 2000  # episodes that the ridge penalty is tuned on
TUNING = 11  # what a generator is for: the first part of its key
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


@dataclass(frozen=True, eq=False)
class References:
    """Learners tuned on one seed's training episodes; all are odd in the labels or need none, so a random sign changes
    nothing about which rate, penalty or matrix is best."""

    rate: float
    """Of a step of plain GD."""
    matrix: Matrix | None
    """The best preconditioner; none for one-hot words, which are too wide."""
    learners: dict[str, Predict]


def references(task: Membership, seed: int, wide: bool) -> References:
    """Every learner at its best on training episodes with fixed labels; ``wide``: codes too long for a matrix."""
    rate, matrix = best_rate(task), None if wide else best_preconditioner(task)
    sample = task.draw(SAMPLE, generator(TUNING, seed), dtype=torch.float64)
    penalty, k = best_penalty(sample), min(NEIGHBOURS, task.k)
    found = {"gd": linear(lambda x, y: learners.gd(x, y, rate))}
    if matrix is not None:
        found["preconditioned gd"] = linear(lambda x, y: learners.preconditioned(x, y, matrix.to(x.dtype)))
    found |= {
        "ridge": linear(lambda x, y: learners.ridge(x, y, penalty)),
        f"{k} nearest": nearest(k),
        "no context": no_context(best_classifier(task)),
    }
    return References(rate, matrix, found)
