"""What is left to do: how long it takes, how much memory and disk, from cells like these that were kept before.

Cells are alike that are of one lab, model and task; among them those count whose specs agree in most other fields.
Before there are any, the arithmetic of a cell says roughly how long it takes, where its lab can tell it.
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from iclgd.engine.engines import visible_gpus
from iclgd.errors import Refusal
from iclgd.lab import LABS
from iclgd.report.pace import Guess as Foretold
from iclgd.spec import canonical
from iclgd.store.cells import Store

if TYPE_CHECKING:
    from iclgd.engine.work import Job
    from iclgd.store.index import Kept
    from iclgd.tools import Tools

    Guess = Callable[[Job], float | None]

EFFICIENCY = 0.4  # of a matrix product's speed is what cells reach
SAME = ("model", "model.name", "task")  # fields that cells have to share to be alike


@dataclass(frozen=True)
class Cost:
    """Of cells that are left: seconds one after another, bytes on disk and in memory.

    Of some the seconds are ``guessed`` from their arithmetic, of some nothing is known.
    """

    seconds: float = 0.0
    disk: float = 0.0
    memory: float = 0.0
    unknown: int = 0
    guessed: int = 0

    def __add__(self, other: "Cost") -> "Cost":
        most = max(self.memory, other.memory)
        seconds, disk = self.seconds + other.seconds, self.disk + other.disk
        return Cost(seconds, disk, most, self.unknown + other.unknown, self.guessed + other.guessed)


def costs(jobs: "Iterable[Job]", kept: "Iterable[Kept]", guess: "Guess" = lambda _job: None) -> Cost:
    """Of cells that are to be run, all together."""
    return sum((cost for _, cost in priced(jobs, kept, guess)), Cost())


def foretold(jobs: "Sequence[Job]", store: Store, tools: "Tools", alone: bool) -> dict[str, Foretold]:
    """Seconds of every cell that is to be run, for the progress; those of a lab are compared with each other.

    The arithmetic is timed on a GPU only where cells are run ``alone`` in this process: others need its memory.
    """
    arithmetic = by_arithmetic(tools)

    def guess(job: "Job") -> float | None:
        counted = LABS[job.cell.lab].flops is not None  # else torch, which asks for GPUs, may not be needed here
        return arithmetic(job) if counted and (alone or not visible_gpus()) else None

    found = priced(jobs, measured(store)[0], guess)
    known = {job.key: Foretold(job.cell.lab, None if cost.unknown else cost.seconds) for job, cost in found}
    tools.forget()
    return known


def measured(store: Store) -> "tuple[list[Kept], str]":
    """The cells that the store has, and why nothing is known of them where that is so."""
    from iclgd.store.index import opened

    if not store.folder.is_dir():
        return [], ""
    try:
        with opened(store) as index:
            return list(index.cells().values()), ""
    except Refusal as refusal:
        return [], f" ({refusal})"


def priced(
    jobs: "Iterable[Job]", kept: "Iterable[Kept]", guess: "Guess" = lambda _job: None
) -> "Iterator[tuple[Job, Cost]]":
    """Each cell that is to be run, from what the store has; ``guess`` gives seconds of a cell that is like none."""
    shapes: dict[tuple[str, str], tuple[dict[str, Any], list[Kept]]] = {}
    for cell in kept:
        if not cell.damage and math.isfinite(cell.seconds):
            flat = _flat(cell.spec)
            shapes.setdefault((cell.lab, canonical(flat)), (flat, []))[1].append(cell)
    known: dict[tuple[str, str], Cost] = {}
    for job in jobs:
        flat = _flat(job.cell.spec.model_dump(mode="json"))
        shape = (job.cell.lab, canonical(flat))
        if shape not in known:
            cost = _cost(_nearest(job.cell.lab, flat, shapes))
            if cost.unknown and (seconds := guess(job)) is not None:
                cost = Cost(seconds, guessed=1)
            known[shape] = cost
        yield job, known[shape]


def by_arithmetic(tools: "Tools") -> "Guess":
    """Seconds of a cell from its lab's count of operations and how fast this machine multiplies matrices."""

    def guess(job: "Job") -> float | None:
        count = LABS[job.cell.lab].flops
        flops = None if count is None else count(job.cell, tools)
        return None if flops is None else flops / (EFFICIENCY * speed())

    return guess


def pace() -> str:
    """`40% of the 0.17 TFLOP/s of this processor just now`; of this machine's GPU where it has one."""
    import torch

    whose = torch.cuda.get_device_name() if torch.cuda.is_available() else "this processor"
    return f"{EFFICIENCY:.0%} of the {speed() / 1e12:.2g} TFLOP/s of {whose} just now"


@cache
def speed() -> float:
    """Operations a second of a float32 matrix product here: the best of a few."""
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    a = torch.ones(2048 if device == "cuda" else 1024, 2048, device=device)
    taken = []
    for _ in range(4):
        began = time.perf_counter()
        (a @ a.T).sum().item()  # waits for it
        taken.append(time.perf_counter() - began)
    return 2 * a.shape[0] ** 2 * a.shape[1] / min(taken)


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
