"""What a cell found: facts, and arrays whose every axis and place has a name."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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
    values: np.ndarray
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
    if hasattr(values, "detach"):
        values = values.detach().cpu().numpy()
    places = {axis: tuple(where) for axis, where in (coordinates or {}).items()}
    return Array(labels, axes, np.asarray(values), places)


@dataclass(frozen=True, eq=False)
class Result:
    """What a cell found: plain facts, and labelled arrays."""

    facts: Mapping[str, Any]
    arrays: Sequence[Array] = ()

    def select(self, **labels: Label | None) -> list[Array]:
        """The arrays with these labels; None stands for a label that is not there."""
        return [found for found in self.arrays if matches(found.labels, labels)]


def matches(labels: Mapping[str, Label], wanted: Mapping[str, Label | None]) -> bool:
    return all(labels.get(name) == value for name, value in wanted.items())
