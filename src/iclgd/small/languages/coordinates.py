"""Coordinates to train in: those in which the codes are white.

Codes of a neural autoencoder are long in some directions and short in others, and so is the loss of a layer on them:
curvatures differ a million times, and Adam takes them all at one rate. A layer on codes is the same function as another
layer on whitened codes (`attention.rebased`), so training goes on there and the layer is taken back. Start, model and
optimum are those of the codes; only the path between differs.
"""

from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from iclgd.small import attention
from iclgd.small.languages.membership import Membership
from iclgd.small.train import Params

SMALLEST = 1e-6
"""Directions with less than this share of the largest second moment are stretched no further."""
Basis = Float[Tensor, "dim dim"]


def whitening(task: Membership) -> Basis:
    """T with E xxᵀ = I for the x of T (x, y), over the words of a task: the symmetric root, and 1 for the label."""
    codes = task.codes.double().flatten(0, -2)  # padding rows are zero
    sizes, directions = torch.linalg.eigh(codes.mT @ codes / task.sizes.sum())
    root = directions * sizes.clamp_min(SMALLEST * sizes[-1]).rsqrt() @ directions.mT
    return torch.block_diag(root, torch.ones(1, 1, dtype=root.dtype)).float()


def in_basis(task: Membership, basis: Basis) -> Membership:
    return replace(task, codes=task.codes @ basis[:-1, :-1].mT)


def rebased(params: Params, basis: Basis) -> Params:
    """The layers that do to tokens T e what these do to e; whatever stands before the layers is left alone."""
    weights = attention.rebased(attention.Weights(params["qk"], params["pv"]), basis)
    return params | weights._asdict()
