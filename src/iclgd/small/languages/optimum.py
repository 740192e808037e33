"""The best rate and the best preconditioner of membership episodes, exactly.

Words are drawn from finite pools, so the moments that one step of GD is judged by need no sampling. With y = ±1, N
demonstrations of which half are members, and for each language the demonstrations' class means μ₊ and μ₋ and mean class
covariance C, and the queries' second moment Q and class means ν₊ and ν₋:

    b = (1/N) Σ y x,    m = E b = (μ₊ − μ₋)/2,    B = E b bᵀ = m mᵀ + C/N,    c = E y_q x_q = (ν₊ − ν₋)/2.

Demonstrations and queries are drawn apart, so the normal equations of E (bᵀ A x_q − y_q)² are E[B A Q] = E[m cᵀ] over
languages; the sign of the labels cancels. One language gives A = B⁻¹ m cᵀ Q⁻¹, of rank one.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from iclgd.small.languages.membership import Membership

SMALLEST = 1e-12
"""Directions with less than this share of the largest moment are not used: pools may span fewer than the code has."""


class Moments(NamedTuple):
    """By language, in float64."""

    m: Float[Tensor, "language dx"]
    b: Float[Tensor, "language dx dx"]
    c: Float[Tensor, "language dx"]
    q: Float[Tensor, "language dx dx"]


def moments(task: Membership) -> Moments:
    codes, sizes = task.codes.double(), task.sizes.double()  # padding rows are zero
    mean = codes.sum(3) / sizes[..., None]  # [language, role, label, dx]
    second = codes.mT @ codes / sizes[..., None, None]
    spread = (second - mean[..., :, None] * mean[..., None, :])[:, 0].mean(1)
    m, c = ((mean[:, role, 1] - mean[:, role, 0]) / 2 for role in (0, 1))
    return Moments(m, m[:, :, None] * m[:, None, :] + spread / task.k, c, second[:, 1].mean(1))


def best_rate(task: Membership) -> float:
    """The least-squares optimal rate of one GD step, E m·c / E tr(B Q); 0 if no step in that direction helps."""
    m, b, c, q = moments(task)
    return max(0.0, float((m * c).sum() / (b * q).sum()))


def best_classifier(task: Membership) -> Float[Tensor, " dx"]:
    """The least-squares optimal w in w·x_q, which looks at no demonstration: (E Q)⁻¹ E c, for labels of a fixed sign.

    Of one language it is the direction of A*ᵀ b whatever b is: the sensitivity of the best preconditioned step.
    """
    _, _, c, q = moments(task)
    return torch.linalg.pinv(q.mean(0), rtol=SMALLEST, hermitian=True) @ c.mean(0)


def best_preconditioner(task: Membership) -> Float[Tensor, "dx dx"]:
    """The least-squares optimal A in bᵀ A x_q."""
    m, b, c, q = moments(task)
    dx = m.shape[1]
    normal = torch.einsum("lij,lkn->ikjn", b, q).reshape(dx * dx, dx * dx)
    inverse = torch.linalg.pinv(normal, rtol=SMALLEST, hermitian=True)
    return (inverse @ torch.einsum("li,lk->ik", m, c).flatten()).reshape(dx, dx)
