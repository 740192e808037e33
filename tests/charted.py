"""What a chart shows, by label: {(panel, name): numbers}."""

from typing import Any

import numpy as np


def charted(widget: Any, *labels: str, **only: str) -> dict[tuple[str, ...], list[float]]:
    """The numbers of every series with these labels, by the values of the others that are named."""
    data = widget.data
    values = np.array(data["values"], dtype=float).reshape(data["count"], -1)
    return {tuple(label[name] for name in labels): _rounded(values[i]) for i, label in _labels(data, only)}


def limits(widget: Any, *labels: str, **only: str) -> dict[tuple[str, ...], list[list[float]]]:
    """The same of intervals: their low and their high ends, of the series that have any."""
    data, found = widget.data, {}
    ends = [np.array(data[end], dtype=float).reshape(-1, len(data["points"]) or 1) for end in ("low", "high")]
    for i, label in _labels(data, only):
        if i in data["limited"]:
            row = data["limited"].index(i)
            found[tuple(label[name] for name in labels)] = [_rounded(end[row]) for end in ends]
    return found


def _labels(data: dict[str, Any], only: dict[str, str]) -> list[tuple[int, dict[str, str]]]:
    every = [
        (i, {name: data["names"][name][codes[i]] for name, codes in data["codes"].items()})
        for i in range(data["count"])
    ]
    return [(i, label) for i, label in every if only.items() <= label.items()]


def _rounded(row: np.ndarray) -> list[float]:
    return [round(float(value), 6) for value in row]
