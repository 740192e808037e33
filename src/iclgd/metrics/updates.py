"""Updates: what reading or training on the demonstrations changed, against the zero-shot trace."""

import torch
from jaxtyping import Float
from torch import Tensor

Outputs = Float[Tensor, "query layer dim"]  # attention output at one position
Scores = Float[Tensor, "query layer"]


def update_size(zero: Outputs, changed: Outputs) -> Scores:
    """‖h − h_zero‖ / ‖h_zero‖, layer by layer; nan where h_zero is exactly zero."""
    before = torch.linalg.vector_norm(zero.double(), dim=-1)
    size = torch.linalg.vector_norm(changed.double() - zero.double(), dim=-1) / before
    return torch.where(before > 0, size, torch.nan)
