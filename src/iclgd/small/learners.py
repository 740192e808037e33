"""Learners: demonstrations in, predictor out. All are batched and differentiable.

A learner that predicts linearly returns its weights W [dy, dx]; ``predict`` applies them. GD++ is one of them: its
prediction is linear in the query although it also moves the inputs.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from iclgd.errors import Refusal
from iclgd.small.kernels import Kernel, gram

X = Float[Tensor, "*batch demo dx"]
Y = Float[Tensor, "*batch demo dy"]
W = Float[Tensor, "*batch dy dx"]
Start = Float[Tensor, "*#batch dy dx"]
Rate = float | Tensor


def predict(w: W, query: Float[Tensor, "*batch query dx"]) -> Float[Tensor, "*batch query dy"]:
    return query @ w.mT


def descent(w: W, x: X, y: Y) -> W:
    """−∇L at W for L(W) = 1/(2N) Σ ‖W x_i − y_i‖²."""
    return (y - x @ w.mT).mT @ x / x.shape[-2]


def origin(x: X, y: Y, start: Start | None) -> W:
    shape = (*x.shape[:-2], y.shape[-1], x.shape[-1])
    return x.new_zeros(shape) if start is None else start.expand(shape)


def gd(x: X, y: Y, rate: Rate, steps: int = 1, start: Start | None = None) -> W:
    """W ← W − η ∇L(W), from W₀ = ``start`` or 0 (von Oswald 2023, eq. 2)."""
    w = origin(x, y, start)
    for _ in range(steps):
        w = w + rate * descent(w, x, y)
    return w


def momentum(x: X, y: Y, rate: Rate, inertia: Rate, steps: int, start: Start | None = None) -> W:
    """Heavy ball: V ← βV − η ∇L(W), W ← W + V."""
    w = origin(x, y, start)
    velocity = torch.zeros_like(w)
    for _ in range(steps):
        velocity = inertia * velocity + rate * descent(w, x, y)
        w = w + velocity
    return w


def preconditioned(x: X, y: Y, matrix: Float[Tensor, "*#batch dx dx"], steps: int = 1, start: Start | None = None) -> W:
    """W ← W − ∇L(W) A (Ahn 2023, §3: what the best single layer does)."""
    w = origin(x, y, start)
    for _ in range(steps):
        w = w + descent(w, x, y) @ matrix
    return w


def preconditioned_steps(x: X, y: Y, matrices: Float[Tensor, "step dx dx"]) -> W:
    """The same from 0, with a matrix of its own at each step."""
    w = origin(x, y, None)
    for matrix in matrices:
        w = w + descent(w, x, y) @ matrix
    return w


def gdpp(x: X, y: Y, rates: Float[Tensor, " step"], curvatures: Float[Tensor, " step"]) -> W:
    """GD++ (von Oswald 2023, appendix): each step is a GD step and x ← (I − γ S) x with S = (1/N) Σ x_i x_iᵀ.

    Both use the old x. The query moves with the inputs, so after the map M the step adds η (1/N) Σ r_i x_iᵀ M.
    """
    map_ = torch.eye(x.shape[-1], dtype=x.dtype).expand(*x.shape[:-2], -1, -1)
    w, moved, residual = origin(x, y, None), x, y
    for rate, curvature in zip(rates.unbind(), curvatures.unbind(), strict=True):
        step = rate * residual.mT @ moved / x.shape[-2]
        shrink = curvature * moved.mT @ moved / x.shape[-2]
        w = w + step @ map_
        residual = residual - moved @ step.mT
        moved, map_ = moved - moved @ shrink, map_ - shrink @ map_
    return w


def ridge(x: X, y: Y, penalty: Rate) -> W:
    """argmin Σ ‖W x_i − y_i‖² + λ ‖W‖²; the posterior mean at λ = σ²/τ² (Akyürek 2023)."""
    eye = torch.eye(x.shape[-1], dtype=x.dtype)
    return torch.linalg.solve(x.mT @ x + penalty * eye, x.mT @ y).mT


def least_squares(x: X, y: Y) -> W:
    """The least-squares weights of least norm."""
    return (torch.linalg.pinv(x) @ y).mT


def averaging(x: X, y: Y) -> W:
    """(1/N) Σ y_i x_iᵀ: gradient descent's first step at rate 1 (Garg 2022)."""
    return y.mT @ x / x.shape[-2]


def newton(x: X, y: Y, steps: int, scale: Rate | None = None) -> W:
    """Newton's iteration for the inverse, M₀ = αS, M ← 2M − M S M, W = Yᵀ X M (Fu 2024), S = Xᵀ X.

    In the eigenbasis the residual is (1 − α λ²)^(2^steps). α = 1/‖S‖₂² by default; Fu's text allows 2/‖S Sᵀ‖₂, at
    which the residual of the largest eigenvalue stays at one.
    """
    s = x.mT @ x
    alpha = 1 / torch.linalg.matrix_norm(s, 2)[..., None, None] ** 2 if scale is None else scale
    m = alpha * s
    for _ in range(steps):
        m = 2 * m - m @ s @ m
    return y.mT @ x @ m


def nearest(
    x: X, y: Y, query: Float[Tensor, "*batch query dx"], neighbours: int = 3
) -> Float[Tensor, "*batch query dy"]:
    """The mean label of the k nearest demonstrations (Garg 2022: k = 3)."""
    if neighbours > x.shape[-2]:
        raise Refusal(f"{neighbours} neighbours need as many demonstrations, there are {x.shape[-2]}; ask for fewer.")
    index = torch.cdist(query, x).topk(neighbours, largest=False).indices  # [*batch, query, k]
    picked = torch.nn.functional.one_hot(index, x.shape[-2]).sum(-2).to(y.dtype)
    return picked @ y / neighbours


def functional_gd(
    x: X, y: Y, query: Float[Tensor, "*batch query dx"], kernel: Kernel, rate: Rate, steps: int
) -> Float[Tensor, "*batch query dy"]:
    """f ← f + (r/N) Σ (y_i − f(x_i)) k(·, x_i) from f = 0 (Cheng 2024, eq. 3.2, there without the mean)."""
    residual, answer = y, torch.zeros_like(query[..., :1] * y[..., :1, :])
    inside, outside = gram(kernel, x, x), gram(kernel, query, x)
    for _ in range(steps):
        step = rate * residual / x.shape[-2]
        residual, answer = residual - inside @ step, answer + outside @ step
    return answer


def four_scalars(
    x: X, y: Y, query: Float[Tensor, "*batch query dx"], scalars: Float[Tensor, "step 4"]
) -> Float[Tensor, "*batch query dy"]:
    """Vladymyrov 2024: x ← x + w_xx S x + w_xy y α, y ← y + w_yx αᵀx + w_yy λ y for every token, query included.

    S = (1/N) Σ x xᵀ, α = (1/N) Σ y x, λ = (1/N) Σ y², one output. GD++ is w_xy = w_yy = 0.
    """
    answer = torch.zeros_like(query[..., :1])
    for xx, xy, yx, yy in scalars:
        s, alpha, lam = (a.mT @ b / x.shape[-2] for a, b in ((x, x), (x, y), (y, y)))
        x, y, query, answer = (
            x + xx * x @ s + xy * y @ alpha.mT,
            y + yx * x @ alpha + yy * y @ lam,
            query + xx * query @ s + xy * answer @ alpha.mT,
            answer + yx * query @ alpha + yy * answer @ lam,
        )
    return -answer
