"""What a chart shows, by label: {(panel, name): numbers}."""

from typing import Any

import numpy as np


def charted(widget: Any, *labels: str, **only: str) -> dict[tuple[str, ...], list[float]]:
    """The numbers of every series with these labels, by the values of the others that are named."""
    data = widget.data
    values = np.array(data["values"], dtype=float).reshape(data["count"], -1)
    found = {}
    for i, row in enumerate(values):
        label = {name: data["names"][name][codes[i]] for name, codes in data["codes"].items()}
        if all(label[name] == value for name, value in only.items()):
            found[tuple(label[name] for name in labels)] = [round(float(value), 6) for value in row]
    return found
