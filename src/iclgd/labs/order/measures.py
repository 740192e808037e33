"""How much a learner varies over orders."""

from jaxtyping import Float, Int
from torch import Tensor


def spread(updates: Float[Tensor, "order *rest dim"]) -> Float[Tensor, "*rest"]:
    """√(Σ ‖u − ū‖² / Σ ‖u‖²) over orders: 0 where all orders make one update, near 1 where they share nothing.

    nan where no order changes anything.
    """
    wide = updates.double()
    away = (wide - wide.mean(0)).square().sum((0, -1))
    return (away / wide.square().sum((0, -1))).sqrt()


def overlap(a: Int[Tensor, "*#rest top"], b: Int[Tensor, "*#rest top"]) -> Float[Tensor, "*rest"]:
    """|A ∩ B| / K of the K likeliest tokens (Shen 2023)."""
    return (a[..., :, None] == b[..., None, :]).any(-1).double().mean(-1)
