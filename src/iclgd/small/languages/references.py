"""The learners that a trained layer is held against, each at its best on training episodes."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from scipy.optimize import minimize
from torch import Tensor

from iclgd.metrics.functions import Predict, half_square
from iclgd.small import learners
from iclgd.small.languages.membership import Membership
from iclgd.small.languages.optimum import best_classifier, best_preconditioner, best_rate
from iclgd.small.references import NEIGHBOURS, linear, nearest
from iclgd.small.streams import generator
from iclgd.tasks.regression import Episodes

Matrix = Float[Tensor, "dx dx"]
SAMPLE, QUERIES = 2000, 32  # episodes that learners are tuned on, and queries of those that steps are tuned on
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


def hits(classifier: Float[Tensor, " dx"], episodes: Episodes) -> Float[Tensor, "*batch 1 1"]:
    """The share of demonstrations whose label has the classifier's sign, less the share whose label has not."""
    guesses = (episodes.x @ classifier.to(episodes.x.dtype))[..., None].sign()
    return (guesses * episodes.y).mean(-2, keepdim=True)


def hits_scale(classifier: Float[Tensor, " dx"], sample: Episodes) -> float:
    """The factor of least squared error for `stored_times_hits`."""
    raw = hits(classifier, sample) * no_context(classifier)(sample)
    power = float(raw.square().sum())
    return float((raw * sample.target).sum()) / power if power else 0.0


def stored_times_hits(classifier: Float[Tensor, " dx"], scale: float) -> Predict:
    """A control without any gradient step: a stored w·x_q, times how many labels agree with w less how many do not.

    It reads labels through that count alone, by signs, so no demonstration's position moves the answer's direction;
    where one language is asked about with a random sign, likeness to it is the base rate for likeness to GD.
    """
    plain = no_context(classifier)
    return lambda episodes: scale * (hits(classifier, episodes) * plain(episodes))


@dataclass(frozen=True, eq=False)
class References:
    """Learners tuned on one seed's training episodes; all are odd in the labels or need none, so a random sign changes
    nothing about which rate, penalty or matrix is best."""

    rate: float
    """Of one step of plain GD."""
    matrix: Matrix | None
    """The best preconditioner of one step; none for one-hot words, which are too wide."""
    learners: dict[str, Predict]
    kept: Mapping[str, Tensor | float]
    """The numbers that the other learners were tuned to: ``penalty`` of ridge regression, ``neighbours``, the stored
    ``classifier``, and the ``scale`` of its hits."""


def references(task: Membership, seed: int, wide: bool, steps: int = 1) -> References:
    """Every learner at its best on training episodes with fixed labels; ``wide``: codes too long for a matrix.

    Gradient descent takes ``steps`` steps, one for every layer that it is held against.
    """
    rate, matrix = best_rate(task), None if wide else best_preconditioner(task)
    sample = task.draw(SAMPLE, generator(TUNING, seed), dtype=torch.float64)
    penalty, k, stored = best_penalty(sample), min(NEIGHBOURS, task.k), best_classifier(task)
    scale = hits_scale(stored, sample)
    times = "" if steps == 1 else f" ×{steps}"
    found = {f"gd{times}": descent(tuned(task, seed, torch.tensor(rate, dtype=torch.float64), steps))}
    if matrix is not None:
        found[f"preconditioned gd{times}"] = descent(tuned(task, seed, matrix, steps))
    found |= {
        "ridge": linear(lambda x, y: learners.ridge(x, y, penalty)),
        f"{k} nearest": nearest(k),
        "no context": no_context(stored),
        "stored × hits": stored_times_hits(stored, scale),
    }
    kept: dict[str, Tensor | float] = {"penalty": penalty, "neighbours": float(k), "classifier": stored, "scale": scale}
    return References(rate, matrix, found, kept)


def descent(steps: Tensor) -> Predict:
    """Steps of GD from 0, each with a rate [step] or a matrix [step, dx, dx] of its own."""

    def learner(x: Tensor, y: Tensor) -> Tensor:
        w = learners.origin(x, y, None)
        for step in steps.to(x.dtype):
            one = learners.preconditioned if step.ndim else learners.gd
            w = one(x, y, step, start=w)
        return w

    return linear(learner)


def tuned(task: Membership, seed: int, first: Tensor, steps: int) -> Tensor:
    """The rates or matrices of ``steps`` steps of least squared error on drawn episodes.

    One step is known exactly. More are found by quasi-Newton from that step alone, so they are never worse there.
    """
    start = torch.cat([first[None], torch.zeros(steps - 1, *first.shape, dtype=first.dtype)])
    if steps == 1:
        return start
    sample = task.draw(SAMPLE // 4, generator(TUNING, seed, steps), queries=QUERIES, dtype=torch.float64)

    def objective(flat: np.ndarray) -> tuple[float, np.ndarray]:
        p = torch.tensor(flat, dtype=torch.float64).reshape(start.shape).requires_grad_()
        value = half_square(descent(p)(sample), sample.target)
        (slope,) = torch.autograd.grad(value, p)
        return float(value.detach()), slope.flatten().numpy()

    best = minimize(objective, start.flatten().numpy(), jac=True, method="L-BFGS-B")
    return torch.tensor(best.x).reshape(start.shape)
