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
    return _by_layer([(layer, added.double().square().sum()) for layer, added in change], layers).sqrt()


def change_cosines(a: Change, b: Change, layers: int) -> Float[Tensor, " layer"]:
    """cos(ΔW_a, ΔW_b) layer by layer; nan where one did not move."""
    both = [(layer, one.double() @ two.double()) for (layer, one), (_, two) in zip(a, b, strict=True)]
    return _by_layer(both, layers) / (change_norms(a, layers) * change_norms(b, layers))


def _by_layer(parts: Sequence[tuple[int, Tensor]], layers: int) -> Float[Tensor, " layer"]:
    """Sums of numbers by layer, those outside the blocks left out; one copy to the host for all of them."""
    sums = torch.zeros(layers, dtype=torch.float64)
    if parts:
        found = torch.stack([part.to(parts[0][1].device) for _, part in parts]).cpu()
        for (layer, _), part in zip(parts, found, strict=True):
            if layer >= 0:
                sums[layer] += part
    return sums
