"""Copies to a device that nobody waits for."""

from typing import Any

import torch
from torch import Tensor


def sent(values: Any, device: torch.device) -> Tensor:
    """Whole numbers of the host on a device.

    To a GPU they go through pinned memory and take their place behind the work that it was given; a plain copy would
    keep the host from giving it more until all of that is done.
    """
    made = torch.as_tensor(values, dtype=torch.long)
    return made.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else made.to(device)
