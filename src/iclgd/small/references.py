"""Every learner at its best on a family, as predictors to hold a trained model against."""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import torch
from torch import Tensor

from iclgd.metrics.functions import Predict, half_square
from iclgd.registry import versioned
from iclgd.small import fast, learners, optimum
from iclgd.small.kernels import KERNELS
from iclgd.small.known import REFERENCES
from iclgd.small.optimum import LinearLearner
from iclgd.small.recurrent import delta_weights, mesa_weights
from iclgd.tasks.regression import Episodes, Regression


def linear(learner: LinearLearner) -> Predict:
    return lambda episodes: learners.predict(learner(episodes.x, episodes.y), episodes.query)


@versioned(1)
def gd(task: Regression, sample: Episodes, steps: int) -> dict[str, Predict]:
    rate = optimum.first_rate(task, sample) if steps == 1 else optimum.best_gd(task, sample, steps)[0]
    return {f"gd ×{steps}": linear(lambda x, y: learners.gd(x, y, rate, steps))}


@versioned(1)
def gdpp(task: Regression, sample: Episodes, steps: int) -> dict[str, Predict]:
    """With one (η, γ) for all steps, and each minimum with its own at every step."""

    def at(rates: Tensor, curvatures: Tensor) -> Predict:
        return linear(lambda x, y: learners.gdpp(x, y, rates.to(x.dtype), curvatures.to(x.dtype)))

    found = {f"gd++ ×{steps}": at(*optimum.best_gdpp(task, sample, steps)[:2])}
    if steps > 1:
        minima = optimum.gdpp_minima(task, sample, steps)
        found |= {f"gd++ ×{steps} untied {i}": at(*minimum[:2]) for i, minimum in enumerate(minima, 1)}
    return found


@versioned(1)
def momentum(task: Regression, sample: Episodes, steps: int) -> dict[str, Predict]:
    guess = torch.tensor([optimum.first_rate(task, sample), 0.3], dtype=sample.x.dtype)
    p, _ = optimum.tuned(lambda p: lambda x, y: learners.momentum(x, y, p[0], p[1], steps), guess, sample, task)
    rate, inertia = p.tolist()
    return {f"momentum ×{steps}": linear(lambda x, y: learners.momentum(x, y, rate, inertia, steps))}


@versioned(1)
def preconditioned(task: Regression, sample: Episodes, steps: int) -> dict[str, Predict]:
    """As many steps as asked for, each with the best matrix of its own."""
    matrices, _ = optimum.best_preconditioners(task, sample, steps)
    learner = linear(lambda x, y: learners.preconditioned_steps(x, y, matrices.to(x.dtype)))
    return {f"preconditioned gd ×{steps}": learner}


@versioned(1)
def ridge(task: Regression, sample: Episodes, steps: int) -> dict[str, Predict]:
    guess = torch.tensor([max(task.noise**2, 1e-2)], dtype=sample.x.dtype)
    penalty = optimum.tuned(lambda p: lambda x, y: learners.ridge(x, y, p[0]), guess, sample, task)[0].item()
    return {"ridge": linear(lambda x, y: learners.ridge(x, y, penalty))}


@versioned(1)
def newton(task: Regression, sample: Episodes, steps: int) -> dict[str, Predict]:
    return {f"newton ×{steps}": linear(lambda x, y: learners.newton(x, y, steps))}


@versioned(1)
def least_squares(task: Regression, sample: Episodes, steps: int) -> dict[str, Predict]:
    return {"least squares": linear(learners.least_squares)}


@versioned(1)
def averaging(task: Regression, sample: Episodes, steps: int) -> dict[str, Predict]:
    return {"averaging": linear(learners.averaging)}


@versioned(1)
def mesa(task: Regression, sample: Episodes, steps: int) -> dict[str, Predict]:
    """The mesa layer's last answer: ridge regression, kept up one demonstration after another."""
    guess = torch.tensor([max(task.noise**2, 1e-2)], dtype=sample.x.dtype)
    penalty = optimum.tuned(lambda p: lambda x, y: mesa_weights(x, y, p[0])[-1], guess, sample, task)[0].item()
    return {"mesa": linear(lambda x, y: mesa_weights(x, y, penalty)[-1])}


@versioned(1)
def delta(task: Regression, sample: Episodes, steps: int) -> dict[str, Predict]:
    """The delta rule from 0 at its best rate, the demonstrations read in order and ``steps`` times over."""

    def learner(rate: float | Tensor) -> LinearLearner:
        return lambda x, y: delta_weights(x.repeat(1, steps, 1), y.repeat(1, steps, 1), rate)[-1]

    guess = torch.tensor([_fitting(task) / 2], dtype=sample.x.dtype)
    rate = optimum.tuned(lambda p: learner(p[0]), guess, sample, task)[0].item()
    return {f"delta rule ×{steps}": linear(learner(rate))}


@versioned(1)
def gated_delta(task: Regression, sample: Episodes, steps: int) -> dict[str, Predict]:
    """The delta rule from a decaying state at its best rate and decay."""

    def learner(rate: float | Tensor, odds: float | Tensor) -> LinearLearner:
        def learn(x: Tensor, y: Tensor) -> Tensor:
            x, y = x.repeat(1, steps, 1), y.repeat(1, steps, 1)
            rates, decays = (like * torch.ones_like(x[..., 0]) for like in (rate, odds / (1 + odds)))
            return fast.weights(x, fast.solved(x, y, rates, decays), decays)

        return learn

    guess = torch.tensor([_fitting(task) / 2, 50.0], dtype=sample.x.dtype)
    p = optimum.tuned(lambda p: learner(p[0], p[1]), guess, sample, task)[0].tolist()
    return {f"gated delta rule ×{steps}": linear(learner(*p))}


@versioned(1)
def longhorn(task: Regression, sample: Episodes, steps: int) -> dict[str, Predict]:
    """The proximal step of every demonstration, at the best weight of its loss."""

    def learner(weight: float | Tensor) -> LinearLearner:
        def learn(x: Tensor, y: Tensor) -> Tensor:
            x, y = x.repeat(1, steps, 1), y.repeat(1, steps, 1)
            rates = fast.proximal_rate(x, weight * torch.ones_like(x[..., 0]))
            return fast.weights(x, fast.solved(x, y, rates))

        return learn

    guess = torch.tensor([_fitting(task)], dtype=sample.x.dtype)
    p = optimum.tuned(lambda p: learner(p[0]), guess, sample, task)[0].item()
    return {f"longhorn ×{steps}": linear(learner(p))}


@versioned(1)
def ttt(task: Regression, sample: Episodes, steps: int) -> dict[str, Predict]:
    """Gradient steps on mini-batches of demonstrations from 0, at the best rate."""

    def learner(rate: float | Tensor) -> LinearLearner:
        def learn(x: Tensor, y: Tensor) -> Tensor:
            x, y = x.repeat(1, steps, 1), y.repeat(1, steps, 1)
            rates = rate * torch.ones_like(x[..., 0])
            return fast.weights(x, fast.solved(x, y, rates, minibatch=fast.MINIBATCH))

        return learn

    guess = torch.tensor([_fitting(task) / fast.MINIBATCH], dtype=sample.x.dtype)
    p = optimum.tuned(lambda p: learner(p[0]), guess, sample, task)[0].item()
    return {f"ttt ×{steps}": linear(learner(p))}


def _fitting(task: Regression) -> float:
    """1/E ‖x‖²: at this rate a demonstration is about fitted by its own step."""
    return 1 / float(task.inputs.covariance.trace())


@dataclass(frozen=True)
class FunctionalDescent:
    """Functional gradient descent in a kernel's space at its best rate (Cheng 2024)."""

    version: ClassVar[int] = 1
    kernel: str = "rbf"

    def __post_init__(self) -> None:
        KERNELS[self.kernel]  # refuses an unknown name

    def __call__(self, task: Regression, sample: Episodes, steps: int) -> dict[str, Predict]:
        def at(rate: float | Tensor, episodes: Episodes) -> Tensor:
            kernel = KERNELS[self.kernel]
            return learners.functional_gd(episodes.x, episodes.y, episodes.query, kernel, rate, steps)

        first = learners.functional_gd(sample.x, sample.y, sample.query, KERNELS[self.kernel], 1.0, 1)
        fitted = float((first * sample.target).sum() / first.square().sum())  # the best rate of one step
        guess = torch.tensor([abs(fitted)], dtype=sample.x.dtype)
        p, _ = optimum.least(lambda p: half_square(at(p[0], sample), sample.target), guess)
        return {f"kernel {self.kernel} ×{steps}": partial(at, p.item())}


@versioned(1)
def zero(task: Regression, sample: Episodes, steps: int) -> dict[str, Predict]:
    """0, whatever was shown."""
    return {"zero": lambda episodes: 0 * episodes.query[..., :1].expand(*episodes.query.shape[:-1], task.function.dy)}


NEIGHBOURS = 3


def nearest(k: int) -> Predict:
    """The mean label of the k nearest demonstrations; constant around a query, so its sensitivity is zero."""

    def answer(episodes: Episodes) -> Tensor:
        return learners.nearest(episodes.x, episodes.y, episodes.query, k) + 0 * episodes.query.sum(-1, keepdim=True)

    return answer


@versioned(1)
def neighbours(task: Regression, sample: Episodes, steps: int) -> dict[str, Predict]:
    k = min(NEIGHBOURS, task.demos)
    return {f"{k} nearest": nearest(k)}


ONLINE = ("gated-delta", "longhorn", "ttt")
"""Rules of layers that learn as they read: tried where the model is such a layer."""

SIZED = {"gd", "gd++", "momentum", "preconditioned", "ridge", "mesa", "delta", *ONLINE}
"""Linear learners whose size is tuned: the best size is 0 where the labels have no linear part."""

STEPS = {"gd": (1, 2, 3, 5, 8, 12), "gd++": (2, 3), "momentum": (2, 4), "newton": (1, 2, 3, 4, 6, 8)}
"""The numbers of steps tried for learners that have one; the others are tried once."""


def candidates(task: Regression, sample: Episodes) -> dict[str, Predict]:
    """All learners, each at the numbers of steps in ``STEPS``.

    Left out: mesa, which is ridge; ridge without noise, which is least squares; what has no linear part to learn;
    and ``ONLINE``.
    """
    idle = (
        {"mesa", *ONLINE} | (set() if task.noise else {"ridge"}) | (set() if optimum.has_linear_part(task) else SIZED)
    )
    found: dict[str, Predict] = {}
    for name, builder in REFERENCES.items():
        if name in idle:
            continue
        build = builder() if isinstance(builder, type) else builder
        for steps in STEPS.get(name, (1,)):
            found |= build(task, sample, steps)
    return found
