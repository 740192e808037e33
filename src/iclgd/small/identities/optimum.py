"""The best a learner can do: printed rates, losses and risks, by closed forms and by sampling."""

import torch

from iclgd.metrics.functions import half_square
from iclgd.small import learners, optimum
from iclgd.small import paths as paths_
from iclgd.small.identities.drawn import F64, apart, problem, source, whole
from iclgd.tasks.laws import Inputs, LinearMap
from iclgd.tasks.regression import Episodes, Regression

PUBLIC = Regression(Inputs.uniform(10), LinearMap.isotropic(10), 10)  # von Oswald's: d = N = 10, x in ±½
AHN = torch.diag(torch.tensor([1, 1, 0.25, 0.0625, 1], dtype=F64))


def one_step(seed: int) -> dict[str, float]:
    """Best rate over N and its loss, d = N = 10: in closed form, and on 20 000 drawn episodes."""
    rate, risk = optimum.one_step(PUBLIC)
    drawn = PUBLIC.draw(20_000, source(seed))
    step = learners.predict(learners.gd(drawn.x, drawn.y, rate), drawn.query)
    return {"rate / N": rate / 10, "loss": risk, "sampled loss": float(half_square(step, drawn.target))}


def more_steps(seed: int) -> dict[str, float]:
    """Losses of the best two and three steps at one rate, and of two steps of GD++, by exact risks given the inputs."""
    sample = PUBLIC.draw(2_000, source(seed), dtype=F64)
    two, curved = optimum.best_gd(PUBLIC, sample, 2)[1], optimum.best_gdpp(PUBLIC, sample, 2)[2]
    return {
        "two steps": two,
        "three steps": optimum.best_gd(PUBLIC, sample, 3)[1],
        "two with curvature": curved,
        "ratio": curved / two,
    }


def off_scale(seed: int) -> dict[str, float]:
    """The best step's loss on inputs of half, one and a half and twice the size, over that at its own size."""
    rate, own = optimum.one_step(PUBLIC)
    losses = {factor: optimum.one_step_off_scale(PUBLIC, rate, factor) for factor in (0.5, 1.5, 2.0)}
    return {f"× {factor:g}": loss for factor, loss in losses.items()} | {"× 1": own}


def best_matrix(seed: int) -> dict[str, float]:
    """The best single layer's matrix: in closed form, fitted to drawn episodes, and as printed for normal inputs.

    ``not a rate`` is the largest over the smallest eigenvalue: a multiple of the identity has 1.
    """
    inputs = Inputs(AHN)
    plain = Regression(inputs, LinearMap.isotropic(5), 20)
    matrix, risk = optimum.best_preconditioner(plain)
    printed = torch.linalg.inv(1.05 * AHN + AHN.trace() / 20 * torch.eye(5, dtype=F64))
    fitted = optimum.fitted_preconditioner(plain.draw(300_000, source(seed)))
    inverse, least = optimum.best_preconditioner(Regression(inputs, LinearMap.inverse(inputs), 20))
    values = torch.linalg.eigvalsh((matrix + matrix.T) / 2)
    return {
        "printed": apart(matrix, printed),
        "fitted": float((fitted - matrix).norm() / matrix.norm()),
        "risk": 2 * risk - float(AHN.trace() - (AHN @ AHN @ printed).trace()),
        "inverse covariance": apart(inverse, 20 / 26 * torch.linalg.inv(AHN)),
        "inverse risk": 2 * least,
        "not a rate": float(values[-1] / values[0]),
    }


def noisy_rate(seed: int) -> dict[str, float]:
    """η* = N/(N + d + 1 + σ²) for normal inputs: how far the general closed form is from it (Mahankali 2023)."""
    g = source(seed)
    dx, demos, noise = whole(2, 8, g), whole(5, 30, g), float(torch.rand((), generator=g)) * 2
    rate, _ = optimum.one_step(Regression(Inputs.normal(dx), LinearMap.isotropic(dx), demos, noise))
    return {"residual": abs(rate - demos / (demos + dx + 1 + noise**2))}


def other_length(seed: int) -> dict[str, float]:
    """The risk at another prompt length than trained on (Zhang 2023), over the mean of 100 000 sampled errors."""
    g = source(seed)
    lam, w = torch.diag(torch.rand(4, generator=g, dtype=F64) + 0.3), torch.randn(4, generator=g, dtype=F64)
    trained, shown = 20, 40
    task = Regression(Inputs(lam), LinearMap.isotropic(4), trained)
    matrix = optimum.best_preconditioner(task)[0]
    x, query = Inputs(lam).draw(100_000, shown, g, F64), Inputs(lam).draw(100_000, 1, g, F64)
    answer = learners.predict(learners.preconditioned(x, x @ w[:, None], matrix), query)
    sampled = float((answer - query @ w[:, None]).square().mean())
    return {"ratio": sampled / optimum.zhang_risk(lam, w, trained, shown)}


def plain_baselines(seed: int) -> dict[str, float]:
    """Sampled errors of least squares and averaging over d, against 1 − k/d and (d + 1)/k (Garg 2022: d = 20)."""
    found, g = {}, source(seed)
    for demos in (5, 10, 15):
        task = Regression(Inputs.normal(20), LinearMap.isotropic(20), demos)
        drawn = task.draw(4_000, g, dtype=F64)
        exact = dict(zip(("least squares", "averaging"), optimum.garg_errors(20, demos), strict=True))
        for name, learner in (("least squares", learners.least_squares), ("averaging", learners.averaging)):
            error = (learners.predict(learner(drawn.x, drawn.y), drawn.query) - drawn.target).square().mean() / 20
            found[f"{name}, k = {demos}"] = float(error) / exact[name]
    return found


def best_ridge(seed: int) -> dict[str, float]:
    """Which penalty of σ² · (¼, ½, 1, 2, 4) has the least risk, for normal weights of variance 1 (Akyürek 2023)."""
    noise = 0.7
    task = Regression(Inputs.normal(6), LinearMap.isotropic(6), 10, noise)
    sample = task.draw(5_000, source(seed), dtype=F64)
    grid = (0.25, 0.5, 1.0, 2.0, 4.0)
    risks = [float(optimum.risk(_ridge(noise**2 * factor), sample, task)) for factor in grid]
    return {"factor": grid[risks.index(min(risks))]}


def _ridge(penalty: float) -> optimum.LinearLearner:
    return lambda x, y: learners.ridge(x, y, penalty)


def newton_residual(seed: int) -> dict[str, float]:
    """Newton's iteration leaves (1 − αλ²)^(2^k) of each eigendirection; at α = 2/λ² the largest never shrinks (Fu)."""
    p = problem(seed, dy=1)
    x = torch.randn(p.x.shape[0], 20, p.x.shape[-1], generator=p.generator, dtype=F64)
    w = p.normal(x.shape[0], 1, x.shape[-1])
    y, s, steps = x @ w.mT, x.mT @ x, 6
    values, vectors = torch.linalg.eigh(s)
    alpha = 1 / values[:, -1, None] ** 2
    left = (1 - alpha * values**2) ** (2**steps)  # of each direction
    wanted = w - (w @ vectors * left[:, None, :]) @ vectors.mT
    stuck = w - learners.newton(x, y, 20, (2 * alpha)[..., None])
    along = (stuck @ vectors[:, :, -1:]).abs() / (w @ vectors[:, :, -1:]).abs()
    return {"residual": apart(learners.newton(x, y, steps), wanted), "stays": float((along - 1).abs().max())}


def newton_is_gd_doubled(seed: int) -> dict[str, float]:
    """k of Newton's iterations from αI are 2^k steps of gradient descent of rate α from 0.

    ``grows`` is by how much ten times the condition number multiplies the steps of GD to an error of 10⁻⁶; ``adds``
    how many iterations of Newton's it adds, from αS, and ``adds, from I`` from αI. ``paths`` is how far GD and Newton's
    iterations are from their paths in the eigenbasis.
    """
    p = problem(seed, dy=1)
    x, y = p.x, p.y
    s, dx = x.mT @ x, x.shape[-1]
    alpha = 0.9 / torch.linalg.matrix_norm(s, 2)[:, None, None]
    m, steps = alpha * torch.eye(dx, dtype=F64), 6
    for _ in range(steps):
        m = 2 * m - m @ s @ m
    w = learners.gd(x, y, alpha * x.shape[-2], 2**steps)
    top = 1 / torch.linalg.matrix_norm(s, 2)[:, None, None]
    paths = [
        apart(paths_.along(x, y, 2.0**steps), learners.gd(x, y, top * x.shape[-2], 2**steps)),
        apart(paths_.along(x, y, 2.0**steps, 2), learners.newton(x, y, steps)),
    ]
    counts = [_steps_to(1e-6, condition) for condition in (100.0, 1000.0)]
    return {
        "residual": apart(y.mT @ x @ m, w),
        "grows": counts[1][0] / counts[0][0],
        "adds": counts[1][1] - counts[0][1],
        "adds, from I": counts[1][2] - counts[0][2],
        "paths": max(paths),
    }


def _steps_to(error: float, condition: float) -> tuple[int, int, int]:
    """Until the worst direction is below an error: GD at the best fixed rate, Newton's iteration from αS and αI."""
    x = torch.diag(torch.logspace(0, 0.5 * torch.log10(torch.tensor(condition)).item(), 6, dtype=F64))[None]
    y = x.sum(-1, keepdim=True)  # W = 1: each direction's miss is what is left of it
    small, large = 1.0, condition
    demos = x.shape[-2]

    def miss(w: torch.Tensor) -> float:
        return float((w - 1).abs().max())

    gd, w = 0, torch.zeros(1, 1, 6, dtype=F64)
    while miss(w) > error:
        w, gd = learners.gd(x, y, 2 * demos / (small + large), 1, w), gd + 1
    newton = 1
    while miss(learners.newton(x, y, newton)) > error:
        newton += 1
    from_eye, s = 0, x.mT @ x
    m = torch.eye(6, dtype=F64) / large
    while miss(y.mT @ x @ m) > error:
        m, from_eye = 2 * m - m @ s @ m, from_eye + 1
    return gd, newton, from_eye


def start_decides(seed: int) -> dict[str, float]:
    """Weights with a mean: a layer whose query slot is 0 cannot start there; with the guess in the slot it can.

    Losses of the best quadratic form in all entries of the second moment and the query (more than any number of heads)
    and of one step of GD from the mean at its best rate, on the same fresh episodes.
    """
    from iclgd.small.theorems.guesses import best_heads, best_step

    g, mean = source(seed), 3.0
    task = Regression(Inputs.normal(4), LinearMap.isotropic(4), 10)
    drawn, fresh = (_with_mean(task.draw(6_000, g, dtype=F64), mean) for _ in range(2))
    start = torch.full((1, 4), mean, dtype=F64)
    losses = {
        "heads": best_heads(drawn, fresh, None),
        "heads, guess": best_heads(drawn, fresh, start),
        "gd": best_step(drawn, fresh, start),
    }
    return losses | {"missed": losses["heads"] / losses["gd"], "guessed": losses["heads, guess"] / losses["gd"]}


def _with_mean(episodes: Episodes, mean: float) -> Episodes:
    """The same episodes with the mean added to every weight."""
    more = [mean * x.sum(-1, keepdim=True) for x in (episodes.x, episodes.query)]
    return episodes._replace(y=episodes.y + more[0], target=episodes.target + more[1])
