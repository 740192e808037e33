"""The noise floor at every rate: from which on float32 gives a trajectory of its own, and a likeness with it.

Two directions at cosine c lie √(2(1 − c)) apart on the unit sphere, and no cosine to a third changes by more between
them. So an update that is computed again in a wider format says how far rounding may have moved a likeness to it; of a
mean over heads, layers and queries the mean of these lengths says it. What rounding does to reading comes on top.
"""

from collections.abc import Sequence
from itertools import takewhile

import numpy as np

from iclgd.choices import Choice
from iclgd.labs.compare.absent import short_of
from iclgd.labs.compare.equal import over_layers
from iclgd.labs.compare.sweeps import swept_metrics
from iclgd.labs.compare.tables import Tables
from iclgd.metrics import OWN
from iclgd.metrics.estimates import estimate
from iclgd.report.numbers import Number, Size
from iclgd.report.numbers import number as plain
from iclgd.report.page import Entry, Table

TITLE = "Noise floor by rate"
NOTE = (
    "Each likeness, and its update against itself computed again: in other batches, where only reading and answering "
    "are done again, and in a wider format, where training is too (of the first queries). 1 is the same. Rounding: how "
    "far it can have moved the likeness at most, by the wider format, of the learner and of reading together. The "
    "floor is of the first draw and says nothing of others."
)
WIDER = "other precision"
SURE = 0.01  # how well a number is to be known, where a sentence says up to which rate it is
STORED = np.finfo(np.float32).epsneg / 2  # a cosine near 1 is kept in float32, and known no better than this
FOUND = {name for name, *_ in OWN}  # cosines, all of those that have a floor; of others' metrics nobody knows that


def by_rate(tables: Tables) -> Table:
    """Every likeness of every learner with several rates, slowest first, beside its floors; none where there is one."""
    comparison, floors, learners = tables.comparison, tables.comparison.known("floor"), _several(tables)
    header = ["", "likeness", *floors, "rounding"]
    rows: list[list[Entry]] = []
    for name, metric in comparison.metrics.items() if floors and learners else ():
        own = {"init": tables.first, "metric": name}
        found = [("icl", "", *_again(tables, own, "icl", floors))] if metric.by == "layer" else []
        for choice in (choice for some in learners.values() for choice in some if found):
            labels = {**own, "learner": choice.label}
            likeness = comparison.estimate(comparison.spec.task, tables.position, **labels)
            title = f"{choice.label}{short_of(comparison, comparison.spec.task, labels)}"
            shown = Number(likeness.mean, likeness.low, likeness.high)
            found.append((title, shown, *_again(tables, own, choice.label, floors)))
        if any(entry != "" for row in found for entry in row[2:]):
            rows += [[f"─ {metric.title}", *[""] * (len(header) - 1)], *map(list, found)]
    return Table(header, rows)


def known_to(tables: Tables) -> str:
    """Up to which rate the first draw's main likenesses are known well, by learner; nothing where nobody can say."""
    said = []
    for name in (name for name in swept_metrics(tables.comparison) if name in FOUND):
        each = [one for kind, some in _several(tables).items() if (one := _up_to(tables, name, kind, some))]
        if each:
            title = tables.comparison.metrics[name].title
            said.append(f"{title} is known to within {plain(SURE, 2)} {', '.join(each)}.")
    return f"Of the first draw: {' '.join(said)}" if said else ""


def _up_to(tables: Tables, metric: str, kind: str, chosen: Sequence[Choice]) -> str:
    """`for gd up to 0.0001 and not from 0.001 on`; a rate without a floor is none at which it is known.

    Where rounding does less at a faster rate, `not at 0.001`: training may end where all trajectories do.
    """
    far = [rounding(tables, metric, choice.label) for choice in chosen]
    if not np.isfinite(far).any():
        return ""
    sure = len(list(takewhile(lambda one: one <= SURE, far)))
    if sure == len(far):
        return f"for {kind} at every rate"
    rates = [f"{float(choice['rate']):g}" for choice in chosen]
    later = any(one <= SURE for one in far[sure:])
    if not sure and not later:
        return f"for {kind} at no rate"
    where = f"at {rates[sure]}" if later else f"from {rates[sure]} on"
    return f"for {kind} {f'up to {rates[sure - 1]} and ' if sure else ''}not {where}"


def rounding(tables: Tables, metric: str, learner: str) -> float:
    """How far rounding can have moved the first draw's likeness at most; nan where there is no wider format."""
    return sum(_apart(tables, metric, name) for name in dict.fromkeys(("icl", learner)))


def _apart(tables: Tables, metric: str, learner: str) -> float:
    """The mean length between an update and itself in the wider format, both of length one."""
    labels = {"init": tables.first, "learner": learner, "metric": metric, "floor": WIDER}
    cosines = tables.comparison.values(tables.comparison.spec.task, tables.position, **labels)
    if not cosines.size:
        return float("nan")
    return estimate(over_layers(np.sqrt(2 * (np.maximum(1 - cosines, 0) + STORED)))).mean


def _again(tables: Tables, own: dict[str, str], learner: str, floors: Sequence[str]) -> list[Entry]:
    """A learner's floors and what they leave open; empty where it has none."""
    labels, tasks = {**own, "learner": learner}, tables.comparison.spec.task
    means = [tables.comparison.estimate(tasks, tables.position, **labels, floor=floor).mean for floor in floors]
    far = rounding(tables, own["metric"], learner) if own["metric"] in FOUND else float("nan")
    found = [*(Number(mean, digits=5) for mean in means), Size(far, digits=2)]
    return [one if one.value == one.value else "" for one in found]


def _several(tables: Tables) -> dict[str, list[Choice]]:
    """The learners that have several rates, each from the slowest; also those that diverged at some."""
    found = {kind: [c for c in some if c.has("rate")] for kind, some in tables.kinds().items()}
    return {kind: sorted(some, key=lambda c: float(c["rate"])) for kind, some in found.items() if len(some) > 1}
