"""What training added to the weights, by parameter and by layer."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from iclgd.models.layout import Slot

Change = list[tuple[int, Tensor]]  # layer, and what training added to a parameter of it (flat, float32)


def changes(slots: Sequence[Slot]) -> Change:
    """What training added to each trained parameter, where the parameter is."""
    found = []
    for slot in slots:
        assert slot.before is not None
        difference = slot.restrict(slot.parameter.detach().float() - slot.before.float())
        found.append((slot.layer, difference.flatten()))
    return found


def change_norms(change: Change, layers: int) -> Float[Tensor, " layer"]:
    """‖ΔW‖ layer by layer."""
    squares = torch.zeros(layers, dtype=torch.float64)
    for layer, added in change:
        if layer >= 0:
            squares[layer] += added.double().square().sum().cpu()
    return squares.sqrt()


def change_cosines(a: Change, b: Change, layers: int) -> Float[Tensor, " layer"]:
    """cos(ΔW_a, ΔW_b) layer by layer; nan where one did not move."""
    products = torch.zeros(layers, dtype=torch.float64)
    for (layer, one), (_, two) in zip(a, b, strict=True):
        if layer >= 0:
            products[layer] += (one.double() @ two.double()).cpu()
    return products / (change_norms(a, layers) * change_norms(b, layers))
