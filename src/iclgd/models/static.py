"""One change of weights for all queries: how much of a prompt's effect does not depend on what is asked.

A query's own patch is exact and of no use to any other. Here each block gets one change, fitted to what it lacks at
the last tokens of K calibration queries: of the last map's output it wants the change d_k where the input is g_k. The
stack is fitted from the first block to the last in one pass, each block for what the changed ones before it give
(Mazzawi 2025's thought vectors and matrices do it by least squares; here with a ridge, and of any rank).
"""

from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from iclgd.models.added import Added
from iclgd.models.patches import Reading, Wanted, rewrite
from iclgd.models.subject import Subject
from iclgd.prompts import Ids

RIDGE = 0.1


@dataclass(frozen=True)
class Static:
    """How one change is fitted: a vector (the mean of what is lacking), or a matrix of a given rank or any.

    ``ridge`` is a share of the mean ‖g_k‖²: the fit is d ≈ ΔW g with that much weight on ‖ΔW‖².
    """

    kind: Literal["vector", "matrix"] = "matrix"
    rank: Annotated[int, Field(ge=1)] | None = None
    ridge: Annotated[float, Field(ge=0)] = RIDGE

    @property
    def label(self) -> str:
        return "vector" if self.kind == "vector" else "matrix" if self.rank is None else f"rank {self.rank}"

    def __call__(self, wanted: Wanted) -> Added:
        gain = None if wanted.gain is None else wanted.gain.mean(0)
        if self.kind == "vector":
            return Added(bias=wanted.change.mean(0), gain=gain)
        return Added(last=fitted(wanted.g, wanted.change, self.ridge, self.rank), gain=gain)


def fitted(
    g: Float[Tensor, "query in"], change: Float[Tensor, "query out"], ridge: float, rank: int | None = None
) -> Float[Tensor, "out in"]:
    """argmin Σ‖change_k − ΔW g_k‖² + λ‖ΔW‖², λ = ridge · mean ‖g_k‖²; of the rank asked for by what it gives on g.

    With more inputs than queries: ΔW = Dᵀ (G Gᵀ + λ)⁻¹ G. Reduced rank: ΔW behind a projection on the first
    directions of its own fit D̂ = G ΔWᵀ (reduced-rank regression).
    """
    precise = torch.promote_types(g.dtype, torch.float32)
    inputs, outputs = g.to(precise), change.to(precise)
    gram = inputs @ inputs.T
    level = ridge * gram.diagonal().mean() * torch.eye(len(gram), dtype=precise, device=g.device)
    weights = torch.linalg.lstsq(gram + level, outputs, driver="gelsd" if g.device.type == "cpu" else None).solution
    found = weights.T @ inputs
    if rank is not None and rank < min(len(gram), outputs.shape[1]):
        directions = torch.linalg.svd(gram @ weights, full_matrices=False).Vh[:rank]
        found = directions.T @ (directions @ found)
    return found.to(g.dtype)


def fit(
    subject: Subject, queries: Sequence[Ids], target: Reading, static: Static, layers: Container[int] | None = None
) -> list[Added]:
    """The change of every block (or of some), fitted on queries read from their first token on."""
    found = rewrite(subject, queries, target, static, layers=layers)
    return found  # type: ignore[return-value]  # a static patch is an addition
