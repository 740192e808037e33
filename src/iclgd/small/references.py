"""Every learner at its best on a family, as predictors to hold a trained model against."""

from collections.abc import Callable

import torch
from torch import Tensor

from iclgd.metrics.functions import Predict
from iclgd.registry import Registry
from iclgd.small import learners, optimum
from iclgd.small.optimum import LinearLearner
from iclgd.tasks.regression import Episodes, LinearMap, Regression

Builder = Callable[[Regression, Episodes, int], dict[str, Predict]]

REFERENCES: Registry[Builder] = Registry("learner", "iclgd linear train --help")
"""Each builder takes the family, a sample to tune on, and a number of steps; it names what it returns."""


def linear(learner: LinearLearner) -> Predict:
    return lambda episodes: learners.predict(learner(episodes.x, episodes.y), episodes.query)


def _gd(task: Regression, sample: Episodes, steps: int) -> dict[str, Predict]:
    rate = optimum.first_rate(task, sample) if steps == 1 else optimum.best_gd(task, sample, steps)[0]
    return {f"gd ×{steps}": linear(lambda x, y: learners.gd(x, y, rate, steps))}


def _gdpp(task: Regression, sample: Episodes, steps: int) -> dict[str, Predict]:
    """With one (η, γ) for all steps, and each minimum with its own at every step."""

    def at(rates: Tensor, curvatures: Tensor) -> Predict:
        return linear(lambda x, y: learners.gdpp(x, y, rates.to(x.dtype), curvatures.to(x.dtype)))

    found = {f"gd++ ×{steps}": at(*optimum.best_gdpp(task, sample, steps)[:2])}
    if steps > 1:
        minima = optimum.gdpp_minima(task, sample, steps)
        found |= {f"gd++ ×{steps} untied {i}": at(*minimum[:2]) for i, minimum in enumerate(minima, 1)}
    return found


def _momentum(task: Regression, sample: Episodes, steps: int) -> dict[str, Predict]:
    guess = torch.tensor([optimum.first_rate(task, sample), 0.3], dtype=sample.x.dtype)
    p, _ = optimum.tuned(lambda p: lambda x, y: learners.momentum(x, y, p[0], p[1], steps), guess, sample, task)
    rate, inertia = p.tolist()
    return {f"momentum ×{steps}": linear(lambda x, y: learners.momentum(x, y, rate, inertia, steps))}


def _preconditioned(task: Regression, sample: Episodes, steps: int) -> dict[str, Predict]:
    """One step with the best matrix: in closed form if the family is linear, else fitted to the sample."""
    closed = isinstance(task.function, LinearMap)
    matrix = optimum.best_preconditioner(task)[0] if closed else optimum.fitted_preconditioner(sample)
    return {"preconditioned gd": linear(lambda x, y: learners.preconditioned(x, y, matrix.to(x.dtype)))}


def _ridge(task: Regression, sample: Episodes, steps: int) -> dict[str, Predict]:
    guess = torch.tensor([max(task.noise**2, 1e-2)], dtype=sample.x.dtype)
    penalty = optimum.tuned(lambda p: lambda x, y: learners.ridge(x, y, p[0]), guess, sample, task)[0].item()
    return {"ridge": linear(lambda x, y: learners.ridge(x, y, penalty))}


def _newton(task: Regression, sample: Episodes, steps: int) -> dict[str, Predict]:
    return {f"newton ×{steps}": linear(lambda x, y: learners.newton(x, y, steps))}


def _least_squares(task: Regression, sample: Episodes, steps: int) -> dict[str, Predict]:
    return {"least squares": linear(learners.least_squares)}


def _averaging(task: Regression, sample: Episodes, steps: int) -> dict[str, Predict]:
    return {"averaging": linear(learners.averaging)}


NEIGHBOURS = 3


def nearest(k: int) -> Predict:
    """The mean label of the k nearest demonstrations; constant around a query, so its sensitivity is zero."""

    def answer(episodes: Episodes) -> Tensor:
        return learners.nearest(episodes.x, episodes.y, episodes.query, k) + 0 * episodes.query.sum(-1, keepdim=True)

    return answer


def _nearest(task: Regression, sample: Episodes, steps: int) -> dict[str, Predict]:
    k = min(NEIGHBOURS, task.demos)
    return {f"{k} nearest": nearest(k)}


for _name, _builder in {
    "gd": _gd,
    "gd++": _gdpp,
    "momentum": _momentum,
    "preconditioned": _preconditioned,
    "ridge": _ridge,
    "newton": _newton,
    "least-squares": _least_squares,
    "averaging": _averaging,
    "nearest": _nearest,
}.items():
    REFERENCES.add(_name, _builder)

STEPS = {"gd": (1, 2, 3, 5, 8, 12), "gd++": (2, 3), "momentum": (2, 4), "newton": (1, 2, 3, 4, 6, 8)}
"""The numbers of steps tried for learners that have one; the others are tried once."""


def candidates(task: Regression, sample: Episodes) -> dict[str, Predict]:
    """All learners, each at the numbers of steps in ``STEPS``. Ridge without noise is least squares and is left out."""
    found: dict[str, Predict] = {}
    for name, builder in REFERENCES.items():
        if name == "ridge" and not task.noise:
            continue
        for steps in STEPS.get(name, (1,)):
            found |= builder(task, sample, steps)
    return found
