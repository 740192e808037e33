"""The best a learner can do on a linear family: closed forms, and exact risks given the inputs.

Trained layers are held against these, not against a scan of learning rates. Risks are ½ E ‖ŷ − W x_q‖².
"""

from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import Float
from scipy.optimize import minimize
from torch import Tensor

from iclgd.errors import Refusal
from iclgd.metrics.functions import half_square
from iclgd.small import learners
from iclgd.small.learners import W, X, Y
from iclgd.tasks.laws import LinearMap, Quadratic
from iclgd.tasks.regression import Episodes, Regression

Matrix = Float[Tensor, "dx dx"]
LinearLearner = Callable[[X, Y], W]


def weights_of(task: Regression) -> LinearMap:
    if not isinstance(task.function, LinearMap):
        raise Refusal(
            f"closed forms are for linear functions, not {type(task.function).__name__}; choose a linear family."
        )
    return task.function


def noise_power(task: Regression) -> float:
    """E σ²: a third of the largest when each episode draws its own σ ~ U(0, noise)."""
    return task.noise**2 / (3 if task.noise_varies else 1)


def one_step(task: Regression) -> tuple[float, float]:
    """(η*, risk) of one GD step from 0. With Σ, Ω of the family and S = (1/N) Σ x xᵀ:

        η* = tr(Ω Σ Σ) / (E tr(Ω S Σ S) + σ² dy tr(Σ²)/N),      risk = ½ (tr Ω Σ − η* tr(Ω Σ Σ)).

    At Ω = I and Σ = m₂ I this is E tr S / E tr S², and for normal inputs N/(N + d + 1 + σ²) (Mahankali 2023).
    """
    sigma, omega = task.inputs.covariance.double(), weights_of(task).moment
    gain = (omega @ sigma @ sigma).trace()
    cost = (omega @ task.inputs.second(sigma, task.demos)).trace()
    cost = cost + noise_power(task) * weights_of(task).dy * (sigma @ sigma).trace() / task.demos
    return float(gain / cost), float((omega @ sigma).trace() - gain**2 / cost) / 2


def best_preconditioner(task: Regression) -> tuple[Matrix, float]:
    """(A*, risk) of the best single layer of linear attention, over all A, in closed form:

        A* = (E[S Ω S] + (σ² dy/N) Σ)⁻¹ Σ Ω,      risk = ½ tr((Ω − Ω Σ A*) Σ).

    Normal inputs and Ω = I give [(1 + 1/N) Σ + (tr Σ/N) I]⁻¹ (Ahn 2023, thm 1; Zhang 2023); Ω = Σ⁻¹ gives
    n/(n + d + 1) Σ⁻¹.
    """
    sigma, omega = task.inputs.covariance.double(), weights_of(task).moment
    spread = task.inputs.second(omega, task.demos) + noise_power(task) * weights_of(task).dy / task.demos * sigma
    matrix = torch.linalg.solve(spread, sigma @ omega)
    return matrix, float(((omega - omega @ sigma @ matrix) @ sigma).trace()) / 2


def fitted_preconditioner(sample: Episodes) -> Matrix:
    """The A that is least-squares optimal on drawn episodes: the prediction is linear in vec(b x_qᵀ), b = (1/N) Σ y x.

    Needs no law of inputs, so it is the reference for any family with one output.
    """
    dx = sample.x.shape[-1]
    b = learners.averaging(sample.x, sample.y).double()  # [batch, 1, dx]
    features = (b[:, :, :, None] * sample.query.double()[:, :, None, :]).flatten(0, 1).flatten(1)
    target = sample.target.double().flatten(0, 1)
    return torch.linalg.solve(features.T @ features, features.T @ target).reshape(dx, dx)


def risk(learner: LinearLearner, sample: Episodes, task: Regression) -> Tensor:
    """The risk of a learner: exact over weights, noise and query given the sample's inputs if the family is linear.

    For a learner linear in the labels, running it on labels x (the identity as W) and on unit noise gives its whole
    action, Ŵ = W L(x) + σ ε Z. For other families it is the mean over the sample.
    """
    x = sample.x
    if not isinstance(task.function, LinearMap):
        return half_square(learners.predict(learner(x, sample.y), sample.query), sample.target)
    sigma, omega = task.inputs.covariance.to(x.dtype), task.function.moment.to(x.dtype)
    miss = torch.eye(x.shape[-1], dtype=x.dtype) - learner(x, x)
    value = ((miss.mT @ omega @ miss) * sigma).sum((-2, -1)).mean() / 2
    if task.noise:
        unit = torch.eye(x.shape[-2], dtype=x.dtype).expand(*x.shape[:-2], -1, -1)
        spread = learner(x, unit)  # [*batch, demo, dx]
        power = ((spread @ sigma) * spread).sum((-2, -1)).mean() / 2
        value = value + noise_power(task) * task.function.dy * power
    return value


def tuned(
    family: Callable[[Tensor], LinearLearner], guess: Float[Tensor, " parameter"], sample: Episodes, task: Regression
) -> tuple[Float[Tensor, " parameter"], float]:
    """(parameters, risk) of the best learner of a family with positive parameters."""
    return least(lambda p: risk(family(p), sample, task), guess)


def least(
    loss: Callable[[Tensor], Tensor], guess: Float[Tensor, " parameter"]
) -> tuple[Float[Tensor, " parameter"], float]:
    """(parameters, loss) at the least loss over positive parameters: quasi-Newton on their logarithms."""

    def objective(log_p: np.ndarray) -> tuple[float, np.ndarray]:
        p = torch.tensor(log_p, dtype=guess.dtype, requires_grad=True)
        value = loss(p.exp())
        (slope,) = torch.autograd.grad(value, p)
        return float(value.detach()), slope.double().numpy()

    found = minimize(objective, guess.log().double().numpy(), jac=True, method="BFGS")
    return torch.tensor(found.x, dtype=guess.dtype).exp(), float(found.fun)


def best_preconditioners(task: Regression, sample: Episodes, steps: int) -> tuple[Float[Tensor, "step dx dx"], float]:
    """(matrices, risk) of the best ``steps`` preconditioned steps, each with a matrix of its own.

    One step is in closed form if the family is linear, else fitted to the sample; more are searched from its matrix, by
    quasi-Newton with limited memory, so the best is a local one.
    """
    closed = isinstance(task.function, LinearMap)
    one = best_preconditioner(task)[0] if closed else fitted_preconditioner(sample)
    if steps == 1:
        return one[None], float(risk(lambda x, y: learners.preconditioned(x, y, one.to(x.dtype)), sample, task))

    def objective(flat: np.ndarray) -> tuple[float, np.ndarray]:
        p = torch.tensor(flat, dtype=sample.x.dtype).requires_grad_()
        value = risk(lambda x, y: learners.preconditioned_steps(x, y, p.reshape(steps, *one.shape)), sample, task)
        (slope,) = torch.autograd.grad(value, p)
        return float(value.detach()), slope.double().numpy()

    start = one.double().expand(steps, *one.shape).reshape(-1).numpy()
    found = minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": 300})
    return torch.tensor(found.x, dtype=sample.x.dtype).reshape(steps, *one.shape), float(found.fun)


def first_rate(task: Regression, sample: Episodes) -> float:
    """The best rate of one step: in closed form if the family is linear, else by least squares on the sample."""
    if isinstance(task.function, LinearMap):
        return one_step(task)[0]
    if not has_linear_part(task):
        raise Refusal("the best gradient step has rate 0 here: the labels have no linear part; choose another.")
    answer = learners.predict(learners.averaging(sample.x, sample.y), sample.query)
    rate = float((answer * sample.target).sum() / answer.square().sum())
    if rate <= 0:
        raise Refusal(f"the linear part of these labels is lost in the noise of {len(answer)} episodes; draw more.")
    return rate


def has_linear_part(task: Regression) -> bool:
    """Whether E[y x] is other than 0 given the function: a quadratic of a law that is symmetric about 0 has none.

    E[y_q ŷ_q] of a gradient step is η ‖E[y x]‖² on average, so without one the best rate is 0.
    """
    return not isinstance(task.function, Quadratic) or task.inputs.law == "exponential"


def best_gd(task: Regression, sample: Episodes, steps: int) -> tuple[float, float]:
    """(η, risk) of the best ``steps`` steps at one rate."""
    guess = torch.tensor([first_rate(task, sample)], dtype=sample.x.dtype)
    p, value = tuned(lambda p: lambda x, y: learners.gd(x, y, p[0], steps), guess, sample, task)
    return float(p[0]), value


def best_gdpp(task: Regression, sample: Episodes, steps: int) -> tuple[Tensor, Tensor, float]:
    """(rates, curvatures, risk) of the best ``steps`` steps of GD++ with one (η, γ) for all, as von Oswald tunes it."""
    guess = torch.tensor([1.5, 0.3], dtype=sample.x.dtype) * first_rate(task, sample)

    def family(p: Tensor) -> LinearLearner:
        return lambda x, y: learners.gdpp(x, y, p[0].expand(steps), p[1].expand(steps))

    p, value = tuned(family, guess, sample, task)
    return p[0].expand(steps), p[1].expand(steps), value


def gdpp_minima(task: Regression, sample: Episodes, steps: int) -> list[tuple[Tensor, Tensor, float]]:
    """Every minimum found of GD++ with its own (η, γ) at each step, best first.

    There is more than one from two steps on: γ may shrink the large directions or turn them round (γλ > 1). The last γ
    moves inputs that nobody reads again and is 0.
    """
    rate, dtype = first_rate(task, sample), sample.x.dtype
    found: list[tuple[Tensor, Tensor, float]] = []

    def parts(p: Tensor) -> tuple[Tensor, Tensor]:
        return p[:steps], torch.cat([p[steps:], p.new_zeros(1)])

    for first, growth, curvature in ((1.0, 1.0, 0.15), (0.5, 3.0, 0.35), (1.0, 3.0, 0.15)):
        rates = first * rate * growth ** torch.arange(steps, dtype=dtype)
        guess = torch.cat([rates, torch.full((steps - 1,), curvature * rate, dtype=dtype)])
        p, value = tuned(lambda p: lambda x, y: learners.gdpp(x, y, *parts(p)), guess, sample, task)
        if np.isfinite(value) and all(abs(value - other) > 1e-4 * other for *_, other in found):
            found.append((*parts(p), value))
    return sorted(found, key=lambda minimum: minimum[2])


def one_step_off_scale(task: Regression, rate: float, factor: float) -> float:
    """Risk of a GD step tuned elsewhere, at inputs ``factor`` times as large: quadratic in η factor²."""
    moved = Regression(task.inputs.scaled(factor), task.function, task.demos, task.noise, task.noise_varies)
    best, lowest = one_step(moved)
    sigma, omega = moved.inputs.covariance.double(), weights_of(task).moment
    curvature = float((omega @ sigma @ sigma).trace()) / best  # ½ of it times (η − η*)² is what a wrong rate adds
    return lowest + curvature * (rate - best) ** 2 / 2


def zhang_risk(covariance: Matrix, w: Float[Tensor, " dx"], trained_demos: int, demos: int) -> float:
    """E (ŷ − ⟨w, x_q⟩)² of the layer trained at N demonstrations and shown M, normal inputs (Zhang 2023, thm 4.2).

    (1/M) tr[Cov(x y) Γ⁻² Λ] + N⁻² (‖w‖² in Γ⁻²Λ³ + 2 tr Λ ‖w‖² in Γ⁻²Λ² + (tr Λ)² ‖w‖² in Γ⁻²Λ). No factor ½.
    """
    lam, n = covariance.double(), trained_demos
    eye = torch.eye(lam.shape[0], dtype=lam.dtype)
    gamma = torch.linalg.inv((1 + 1 / n) * lam + lam.trace() / n * eye)
    outer = lam @ torch.outer(w, w) @ lam
    covariance_xy = (w @ lam @ w) * lam + outer  # E[xy xyᵀ] − E[xy] E[xy]ᵀ, fourth moment of a normal
    spread = gamma @ gamma @ lam
    bias = sum(c * (w @ spread @ p @ w) for c, p in ((1, lam @ lam), (2 * lam.trace(), lam), (lam.trace() ** 2, eye)))
    return float((covariance_xy @ spread).trace() / demos + bias / n**2)


def garg_errors(dx: int, demos: int) -> tuple[float, float]:
    """E (ŷ − y)² / dx of least squares, max(0, 1 − k/d), and of averaging, (d + 1)/k; standard normal x and w."""
    return max(0.0, 1 - demos / dx), (dx + 1) / demos
