"""How alike two changes of the same matrices are: their angle, the subspaces they act in and on, the best step."""

import torch
from jaxtyping import Float
from torch import Tensor

from iclgd.models.added import Outer

Matrix = Float[Tensor, "out in"]


def cosine(a: Matrix, b: Matrix) -> float:
    """⟨A, B⟩ / (‖A‖‖B‖); nan where one of them is zero."""
    return float((a.double() * b.double()).sum() / (a.double().norm() * b.double().norm()))


def inner(outer: Outer, b: Matrix) -> Float[Tensor, " query"]:
    """⟨left ⊗ right, B⟩ for each query, without the product."""
    return torch.einsum("qo,oi,qi->q", outer.left.double(), b.double(), outer.right.double())


def own_cosines(outer: Outer, b: Matrix) -> Float[Tensor, " query"]:
    """The cosine of each query's own patch with one matrix."""
    return inner(outer, b) / (outer.norms.double() * b.double().norm())


def own_contrasts(right: Outer, wrong: Outer, b: Matrix) -> Float[Tensor, " query"]:
    """The cosine of what labels change in each query's patch (right − wrong labels) with one matrix."""
    return (inner(right, b) - inner(wrong, b)) / (apart(right, wrong) * b.double().norm())


def apart(one: Outer, two: Outer) -> Float[Tensor, " query"]:
    """‖one − two‖ for each query, in the Frobenius norm."""
    both = (one.left.double() * two.left.double()).sum(-1) * (one.right.double() * two.right.double()).sum(-1)
    square = one.norms.double().square() + two.norms.double().square() - 2 * both
    return square.clamp_min(0).sqrt()


def between(outer: Outer) -> float:
    """The mean cosine of two different queries' patches."""
    left, right = (torch.nn.functional.normalize(x.double(), dim=-1) for x in (outer.left, outer.right))
    gram = (left @ left.T) * (right @ right.T)
    count = len(gram)
    return float((gram.sum() - gram.diagonal().sum()) / (count * (count - 1)))


def overlap(a: Matrix, b: Matrix, rank: int) -> tuple[float, float]:
    """‖U_aᵀ U_b‖² / r of the first r singular directions, of outputs and of inputs: 1 the same space, r/dim chance."""
    (left_a, right_a), (left_b, right_b) = directions(a, rank), directions(b, rank)
    return tuple(float((x.T @ y).square().sum() / x.shape[1]) for x, y in ((left_a, left_b), (right_a, right_b)))  # type: ignore[return-value]


def directions(a: Matrix, rank: int) -> tuple[Tensor, Tensor]:
    """The first singular directions of outputs and inputs, as columns; by the smaller of A Aᵀ and Aᵀ A."""
    a = a.double()
    if a.shape[0] > a.shape[1]:
        right, left = directions(a.T, rank)
        return left, right
    left = torch.linalg.eigh(a @ a.T).eigenvectors[:, -min(rank, a.shape[0]) :].flip(-1)
    right, _ = torch.linalg.qr(a.T @ left)
    return left, right


def best_step(a: Matrix, b: Matrix) -> float:
    """The number by which B comes closest to A: ⟨A, B⟩ / ‖B‖²."""
    return float((a.double() * b.double()).sum() / b.double().square().sum())
