"""How alike two changes of the same matrices are: their angle, the subspaces they act in and on, the best step."""

from collections.abc import Iterable

import torch
from jaxtyping import Float
from torch import Tensor

from iclgd.models.added import Outer

Matrix = Float[Tensor, "out in"]
Directions = tuple[Float[Tensor, "out rank"], Float[Tensor, "in rank"]]
SPARE, ROUNDS = 16, 4


def cosine(a: Matrix, b: Matrix) -> float:
    """⟨A, B⟩ / (‖A‖‖B‖); nan where one of them is zero."""
    return float((a.double() * b.double()).sum() / (a.double().norm() * b.double().norm()))


def inner(outer: Outer, b: Matrix) -> Float[Tensor, " query"]:
    """⟨left ⊗ right, B⟩ for each query, without the product."""
    return torch.einsum("qo,oi,qi->q", outer.left.double(), b.double(), outer.right.double())


def by_layer(found: Iterable[Float[Tensor, " query"]]) -> Float[Tensor, "query layer"]:
    """What each layer gave, on the host: layers may lie on several devices."""
    return torch.stack([one.cpu() for one in found], 1)


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


def overlap(a: Directions, b: Directions, rank: int) -> tuple[float, float]:
    """‖U_aᵀ U_b‖² / r of the first r singular directions, of outputs and of inputs: 1 the same space, r/dim chance."""
    found = [(x[:, :rank].T @ y[:, :rank]).square().sum() / min(rank, x.shape[1]) for x, y in zip(a, b, strict=True)]
    return float(found[0]), float(found[1])


def own_overlap(outer: Outer, b: Directions, rank: int) -> tuple[float, float]:
    """The same of each query's own patch, which has one direction of either kind: ‖U_bᵀ u‖², mean over queries."""
    found = []
    for own, space in ((outer.left, b[0]), (outer.right, b[1])):
        unit = torch.nn.functional.normalize(own.to(space), dim=-1)
        found.append(float((unit @ space[:, :rank]).square().sum(-1).mean()))
    return found[0], found[1]


def directions(a: Matrix, rank: int) -> Directions:
    """The first singular directions of outputs and inputs, as columns.

    By iterating on a random subspace a little larger than asked for (Halko 2011), which is exact where the matrix has
    no more ranks than that, and to rounding where its singular values fall; a whole decomposition takes 20 times as
    long.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        precise = a.to("cpu", torch.promote_types(a.dtype, torch.float32))
        left, _, right = torch.svd_lowrank(precise, q=min(rank + SPARE, *a.shape), niter=ROUNDS)
    return left[:, :rank], right[:, :rank]


def largest(a: Matrix) -> float:
    """‖A‖₂, from the smaller of A Aᵀ and Aᵀ A."""
    a = a.double() if a.shape[0] <= a.shape[1] else a.double().T
    return float(torch.linalg.eigvalsh(a @ a.T)[-1].clamp_min(0).sqrt())


def best_step(a: Matrix, b: Matrix) -> float:
    """The number by which B comes closest to A: ⟨A, B⟩ / ‖B‖²."""
    return float((a.double() * b.double()).sum() / b.double().square().sum())


def own_best_steps(outer: Outer, b: Matrix, less: Outer | None = None) -> Float[Tensor, " query"]:
    """The number by which B comes closest to each query's own patch, or to that less another patch of the query."""
    along = inner(outer, b) if less is None else inner(outer, b) - inner(less, b)
    return along / b.double().square().sum()
