"""How near two results of one cell are: number by number, with room for what rounding alone changes.

An update is a small difference of large numbers. Where it is as small as their rounding errors, its direction is
noise, and so is every likeness with it: no two machines agree there, and a single element says nothing. So numbers are
compared as they are printed, as means over the places without names (queries, layers), and elements are counted.

The room that a number has is a share of its array's largest (`TOLERANCE`), and where cells hold floors, what they
measured. A floor is a likeness of an update with itself, computed over again: a cosine s, which is 1 where nothing
changes. Turning a vector by the angle of s moves its cosine with any other by at most √(2(1 − s)).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Literal

import numpy as np

from iclgd.results import Array, Label, Result
from iclgd.spec import canonical

TOLERANCE = 1e-3  # of an array's largest number
FEW = 0.05  # of an array's elements may be further off than that, if the numbers that are printed are not
FLOOR, OVER = "floor", "query"  # the label of a floor; the axis over which it is averaged, as draws ask other queries
Verdict = Literal["equal to the bit", "within tolerance", "different"]
VERDICTS: tuple[Verdict, ...] = ("equal to the bit", "within tolerance", "different")


@dataclass(frozen=True)
class Change:
    """How two results of one cell differ.

    ``largest`` is the difference of two printed numbers, as a share of their array's largest: of those, in ``where``,
    that are furthest beyond their room. ``beyond`` is the share of all elements that are off by more than theirs.
    ``more`` counts arrays that only the second has, as from a later version that measures more.
    """

    verdict: Verdict
    largest: float = 0.0
    where: str = ""
    beyond: float = 0.0
    more: int = 0


@dataclass(frozen=True)
class Floor:
    """How well an update repeats itself at each place, and whose it is: labels of its cell and of its array."""

    cell: Mapping[str, Label]
    labels: Mapping[str, Label]
    found: Array

    def room(self, one: Array) -> np.ndarray | None:
        """By how much a cosine with this update may be off at each place of an array, if it has these places."""
        here = [axis for axis in self.found.axes if axis != OVER]
        sizes = dict(zip(one.axes, one.values.shape, strict=True))
        if any(sizes.get(axis) != self.found.values.shape[self.found.axes.index(axis)] for axis in here):
            return None
        values = np.nan_to_num(self.found.values.astype(float), nan=0.0)
        if OVER in self.found.axes:
            values = values.mean(self.found.axes.index(OVER))
        turned = np.sqrt(2 * (1 - np.clip(values, -1, 1)))
        shape = [sizes[axis] if axis in here else 1 for axis in one.axes]
        return turned.transpose([here.index(axis) for axis in one.axes if axis in here]).reshape(shape)


class Floors:
    """The floors of cells of one lab and model, asked for the room that the arrays of a cell have.

    A floor counts for a cell if it agrees with it in every label in which cells that have floors differ: one that was
    measured on the first draw holds for every draw.
    """

    def __init__(self, cells: Iterable[tuple[Mapping[str, Label], Result]] = ()):
        self._all = [
            Floor(labels, {n: v for n, v in one.labels.items() if n not in (FLOOR, "metric")}, one)
            for labels, result in cells
            for one in result.arrays
            if FLOOR in one.labels
        ]
        names = {name for floor in self._all for name in floor.cell}
        self._varied = {name for name in names if len({floor.cell.get(name) for floor in self._all}) > 1}

    def room(self, cell: Mapping[str, Label], one: Array) -> np.ndarray:
        """What rounding may change at each place: both updates are off, on both machines.

        A metric without a floor of its own is made of the same updates: it has the room of the worst that there is.
        """
        none = np.zeros([1] * one.values.ndim)
        if "metric" not in one.labels:
            return none
        metrics: dict[Label, dict[str, np.ndarray]] = {}
        for floor in self._all:
            turned = floor.room(one) if self._holds(floor, cell) else None
            if turned is not None:
                sides = metrics.setdefault(floor.found.labels["metric"], {})
                side = canonical([dict(floor.cell), dict(floor.labels)])
                sides[side] = np.maximum(sides.get(side, 0.0), turned)  # of several ways to compute it again the worst
        rooms = {metric: 2 * sum(sides.values(), none) for metric, sides in metrics.items()}
        own = rooms.get(one.labels["metric"])
        return own if own is not None else reduce(np.maximum, rooms.values(), none)

    def _holds(self, floor: Floor, cell: Mapping[str, Label]) -> bool:
        return all(cell.get(name) == value for name, value in floor.cell.items() if name in self._varied)


def change(
    one: Result,
    other: Result,
    tolerance: float = TOLERANCE,
    floors: Floors | None = None,
    cell: Mapping[str, Label] | None = None,
) -> Change:
    """Of two results of the same question; an array that the second has no more makes them different."""
    first, second = ({canonical(dict(a.labels)): a for a in result.arrays} for result in (one, other))
    more = len(second.keys() - first.keys())
    if lost := [name for name in first if name not in second]:
        return Change("different", float("inf"), f"only the first has {lost[0]}", 1.0, more)
    if all(_same_bits(first[name], second[name]) for name in first):
        return Change("equal to the bit", more=more)
    rooms = {name: (floors or Floors()).room(cell or {}, first[name]) for name in first}
    found = {name: _compared(first[name], second[name], tolerance, rooms[name]) for name in first}
    where = max(found, key=lambda name: found[name].severity)
    worst, elements = found[where], sum(one.elements for one in found.values())
    beyond = sum(one.beyond for one in found.values()) / max(1, elements)
    return Change("within tolerance" if worst.severity <= 1 else "different", worst.largest, where, beyond, more)


def _same_bits(one: Array, other: Array) -> bool:
    a, b = one.values, other.values
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    return bool(np.array_equal(a, b, equal_nan=a.dtype.kind == "f"))


@dataclass(frozen=True)
class _Compared:
    """Two arrays: how far the worst number is beyond its room (1: just within), and how many elements are."""

    severity: float
    largest: float
    beyond: int
    elements: int


def _compared(one: Array, other: Array, tolerance: float, room: np.ndarray) -> _Compared:
    if one.values.shape != other.values.shape:
        return _Compared(float("inf"), float("inf"), one.values.size, one.values.size)
    a, b = one.values.astype(float), other.values.astype(float)
    both, either = np.isfinite(a) & np.isfinite(b), np.isfinite(a) | np.isfinite(b)
    if not either.any():
        return _Compared(0.0, 0.0, 0, 0)
    scale = float(np.abs(np.where(np.isfinite(a), a, 0)).max())
    room = np.broadcast_to(room, a.shape)
    # a number on one side only: no room but that of noise, where its size may be any
    off = np.where(both, np.abs(np.where(both, a - b, 0)), np.where(either, np.inf, 0))
    allowed = np.where(both, tolerance * scale + room, np.where(room >= 1, np.inf, 0))
    beyond = int((off > allowed).sum())
    unnamed = tuple(i for i, axis in enumerate(one.axes) if axis not in one.coordinates)
    means, rooms = _mean(np.where(both, a - b, 0), both, unnamed), _mean(room, both, unnamed)
    apart, may = float(np.abs(means).max()), tolerance * scale + rooms
    ratios = np.divide(np.abs(means), may, out=np.where(means == 0, 0.0, np.inf), where=may > 0)
    severity = max(float(ratios.max()), beyond / (FEW * int(either.sum())))
    share = apart / scale if scale > 0 else float("inf") if apart > 0 else 0.0
    return _Compared(severity, share, beyond, int(either.sum()))


def _mean(values: np.ndarray, known: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """Over the places that both have, nothing where there is none."""
    count = known.sum(axes)
    return np.asarray(np.where(known, values, 0).sum(axes) / np.maximum(1, count))
