"""Matrices of weights as heat maps, two in one place: the reader moves the border between them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from iclgd.report.widgets import CHARTS, WEB, Widget

HEAT = WEB / "heat.js"
DIGITS = 4
Pictures = Mapping[str, Mapping[str, np.ndarray]]  # matrix → who has it → its numbers


def wipe(make: Callable[[], Pictures], blocks: Sequence[tuple[str, int]], about: str) -> Widget:
    """``blocks``: names and sizes of the coordinates' parts, such as x and y, along both sides."""

    def data() -> dict[str, Any]:
        pictures = {name: {who: rounded(one) for who, one in sides.items()} for name, sides in make().items()}
        return {"pictures": pictures, "blocks": [list(block) for block in blocks]}

    return Widget("wipe", data, about, (*CHARTS, HEAT))


def rounded(values: np.ndarray, digits: int = DIGITS) -> list[Any]:
    """To so many digits of the largest."""
    values = np.asarray(values, dtype=float)
    most = float(np.abs(values).max(initial=0.0))
    places = digits - int(np.floor(np.log10(most))) if most > 0 else 0
    return np.round(values, max(places, 0)).tolist()
