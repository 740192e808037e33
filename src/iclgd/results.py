"""What a cell found: facts, and arrays whose every axis and place has a name."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

Label = str | int | float | bool


@dataclass(frozen=True, eq=False)
class Array:
    """Numbers with labels: what they are (``labels``), what their axes are, and what stands along an axis.

    ``{"metric": "SimAOU", "null": "random"}`` over ``("position", "query", "layer")``, positions prompt and label.
    An axis without coordinates is counted from 0.
    """

    labels: Mapping[str, Label]
    axes: tuple[str, ...]
    values: Any  # of numpy; of torch where they are on a device that nobody has waited for yet (see Result)
    coordinates: Mapping[str, tuple[Label, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if len(self.axes) != self.values.ndim:
            raise ValueError(f"{self.values.ndim} axes of numbers have {len(self.axes)} names: {self.axes}")
        for axis, places in self.coordinates.items():
            if len(places) != self.values.shape[self.axes.index(axis)]:
                raise ValueError(f"{len(places)} coordinates do not fit the axis {axis}")

    def at(self, **places: Label) -> "Array":
        """The part at these coordinates, the axes gone."""
        values, axes, labels = self.values, list(self.axes), dict(self.labels)
        for axis, place in places.items():
            index = self.coordinates[axis].index(place) if axis in self.coordinates else int(place)
            values = np.asarray(values.take(index, axis=axes.index(axis)))
            axes.remove(axis)
            labels[axis] = place
        rest = {axis: where for axis, where in self.coordinates.items() if axis in axes}
        return Array(labels, tuple(axes), np.asarray(values), rest)


def array(values: Any, *axes: str, coordinates: Any = None, **labels: Any) -> Array:
    """An array from a tensor, a list or a number: ``array(losses, "step", quantity="loss", learner="gd 0.001")``."""
    places = {axis: tuple(where) for axis, where in (coordinates or {}).items()}
    if not _waits(values):
        values = np.asarray(values.detach() if hasattr(values, "detach") else values)
    return Array(labels, axes, values, places)


def _waits(values: Any) -> bool:
    """Whether numbers are still on a device; they stay there until the result is whole."""
    return hasattr(values, "detach") and values.device.type != "cpu"


def _brought(arrays: Sequence[Array]) -> Sequence[Array]:
    """The arrays on the host, those of a format in one copy: each copy waits for all that the device is asked for."""
    waiting: dict[Any, list[Array]] = {}
    for one in arrays:
        if _waits(one.values):
            waiting.setdefault((one.values.dtype, one.values.device), []).append(one)
    if not waiting:
        return arrays
    import torch

    found = dict[int, np.ndarray]()
    for some in waiting.values():
        flat = torch.cat([one.values.detach().reshape(-1) for one in some]).cpu().numpy()
        parts = np.split(flat, np.cumsum([math.prod(one.values.shape) for one in some])[:-1])
        found |= {id(one): part.reshape(one.values.shape) for one, part in zip(some, parts, strict=True)}
    return [replace(one, values=found.get(id(one), one.values)) for one in arrays]


@dataclass(frozen=True, eq=False)
class Result:
    """What a cell found: plain facts, and labelled arrays."""

    facts: Mapping[str, Any]
    arrays: Sequence[Array] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "arrays", _brought(self.arrays))

    def select(self, **labels: Label | None) -> list[Array]:
        """The arrays with these labels; None stands for a label that is not there."""
        return [found for found in self.arrays if matches(found.labels, labels)]


def matches(labels: Mapping[str, Label], wanted: Mapping[str, Label | None]) -> bool:
    return all(labels.get(name) == value for name, value in wanted.items())
