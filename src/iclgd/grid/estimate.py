"""What is left to do: how long it takes, how much memory and disk, from cells like these that were kept before.

Cells are alike that are of one lab, model and task; among them those count whose specs agree in most other fields.
Before there are any, nothing is known, and nothing is guessed.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from iclgd.spec import canonical

if TYPE_CHECKING:
    from iclgd.engine.work import Job
    from iclgd.store.index import Kept

SAME = ("model", "model.name", "task")  # fields that cells have to share to be alike


@dataclass(frozen=True)
class Cost:
    """Of cells that are left: seconds one after another, bytes on disk and in memory; how many nothing is known of."""

    seconds: float = 0.0
    disk: float = 0.0
    memory: float = 0.0
    unknown: int = 0

    def __add__(self, other: "Cost") -> "Cost":
        most = max(self.memory, other.memory)
        return Cost(self.seconds + other.seconds, self.disk + other.disk, most, self.unknown + other.unknown)


def costs(jobs: "Iterable[Job]", kept: "Iterable[Kept]") -> Cost:
    """Of cells that are to be run, from what the store has."""
    shapes: dict[tuple[str, str], tuple[dict[str, Any], list[Kept]]] = {}
    for cell in kept:
        if not cell.damage and math.isfinite(cell.seconds):
            flat = _flat(cell.spec)
            shapes.setdefault((cell.lab, canonical(flat)), (flat, []))[1].append(cell)
    known: dict[tuple[str, str], Cost] = {}
    total = Cost()
    for job in jobs:
        flat = _flat(job.cell.spec.model_dump(mode="json"))
        shape = (job.cell.lab, canonical(flat))
        if shape not in known:
            known[shape] = _cost(_nearest(job.cell.lab, flat, shapes))
        total += known[shape]
    return total


def _nearest(
    lab: str, flat: Mapping[str, Any], shapes: "Mapping[tuple[str, str], tuple[dict[str, Any], list[Kept]]]"
) -> "list[Kept]":
    """The kept cells that agree with a spec in most fields, all of what is the same among them."""
    alike = [
        (sum(other.get(name) == value for name, value in flat.items()), cells)
        for (of, _), (other, cells) in shapes.items()
        if of == lab and all(flat.get(name) == other.get(name) for name in SAME)
    ]
    best = max((score for score, _ in alike), default=0)
    return [cell for score, cells in alike if score == best for cell in cells]


def _cost(cells: "Sequence[Kept]") -> Cost:
    if not cells:
        return Cost(unknown=1)
    mean = 1 / len(cells)
    memory = max((cell.memory for cell in cells if math.isfinite(cell.memory)), default=0.0)
    return Cost(sum(c.seconds for c in cells) * mean, sum(c.bytes for c in cells) * mean, memory)


def _flat(spec: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """The fields of a spec and of specs inside it by their path, without seeds: draws cost alike."""
    found: dict[str, Any] = {}
    for name, value in spec.items():
        if isinstance(value, dict):
            found |= _flat(value, f"{above}{name}.")
        elif not name.endswith("seed"):
            found[f"{above}{name}"] = value
    return found


def size(number: float) -> str:
    """`800 B`, `3.4 MB`, `1.2 TB`."""
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:.3g} {unit}"
        number /= 1000
    return f"{number:.3g} TB"
