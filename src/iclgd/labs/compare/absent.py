"""What a comparison has not: rows whose means are over some of the draws, and why the other draws are not in them.

Training that diverged with some demonstrations leaves a selection of the others, and a mean over a selection decides
nothing: its row says of how many draws it is.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from typing import Any

from iclgd.labs.compare.view import Comparison, Labels, title_of
from iclgd.report.page import Entry, Table

NOTE = (
    "What was refused or diverged, and why. A row whose mean is over fewer draws for it says so, and decides nothing."
)
CONTRAST = "contrast"
Draw = tuple[str, str]  # task and seed
Who = tuple[str, str, str]  # the fact that tells it, initialisation, learner


def short_of(comparison: Comparison, tasks: Sequence[str], *places: Labels) -> str:
    """`, 3 of 5 draws`: in how many all of these arrays are there. Nothing where that is every draw, or none."""
    said = said_of(comparison, _counts(comparison, tasks, places))
    return f", {said}" if said else ""


def marked(comparison: Comparison, tasks: Sequence[str], names: Sequence[str], labels: Labels) -> str:
    """The same for a row of several metrics; what labels change may be lost where the rest of the row is not."""
    whole, part = (
        _most(comparison, tasks, [n for n in names if comparison.metrics[n].contrast is contrast], labels)
        for contrast in (False, True)
    )
    said, of_part = said_of(comparison, whole), said_of(comparison, part)
    if not of_part or part == whole:
        return f", {said}" if said else ""
    return f"{said and ', '}{said}, {CONTRAST} in {of_part}" if any(whole) else f", {of_part}"


def _most(comparison: Comparison, tasks: Sequence[str], names: Sequence[str], labels: Labels) -> list[int]:
    """By task, the draws that have the metric which most of them have."""
    counts = [_counts(comparison, tasks, [{**labels, "metric": name}]) for name in names]
    return [max(one) for one in zip(*counts, strict=True)]


def _counts(comparison: Comparison, tasks: Sequence[str], places: Sequence[Labels]) -> list[int]:
    """By task, in how many draws all of these arrays are there."""
    found = [[comparison.arrays(task=task, **place).keys() for place in places] for task in tasks]
    return [len(set.intersection(*map(set, one))) for one in found]


def said_of(comparison: Comparison, counts: Sequence[int]) -> str:
    """`3 of 5 draws`, of so many of each task; nothing where that is every draw, or none.

    A task that has none of its draws cannot have it; one that has some lost the others.
    """
    seeds = len(comparison.spec.seeds)
    if not any(counts) or all(count == seeds for count in counts):
        return ""
    if all(count in (0, seeds) for count in counts):
        return f"{sum(map(bool, counts))} of {len(counts)} tasks"
    return f"{sum(counts)} of {seeds * len(counts)} draws"


# reasons


def left_out(comparison: Comparison) -> Table:
    """What was refused or diverged: of which learners, in which draws, why. Learners that are alike share a row."""
    asked: dict[Who, set[Draw]] = {}
    lost: dict[tuple[str, str], dict[Who, set[Draw]]] = {}
    for who, draw, reasons in _told(comparison):
        asked.setdefault(who, set()).add(draw)
        for reason in reasons:
            lost.setdefault(reason, {}).setdefault(who, set()).add(draw)
    rows: list[list[Entry]] = []
    for (what, why), by_learner in lost.items():
        for (fact, init, draws), learners in _alike(by_learner).items():
            several = [who for who in asked if who[:2] == (fact, init)]
            of = "all" if len(several) == len(learners) > 1 else ", ".join(learners)
            weights = "" if init == comparison.spec.init[0] else f", {init} weights"
            everywhere = set[Draw]().union(*(asked[fact, init, learner] for learner in learners))
            rows.append([what, f"{of}{weights}", _where(comparison, draws, everywhere), why])
    return Table(["", "of", "draws", "why"], rows)


def _told(comparison: Comparison) -> Iterator[tuple[Who, Draw, list[tuple[str, str]]]]:
    """What every cell says of one kind of thing that may be absent: each with the reason."""
    for cell, result in comparison.study.found():
        init, learner, task, seed = (str(cell.labels.get(n, "icl")) for n in ("init", "learner", "task", "seed"))
        for fact, reasons in REASONS.items():
            if fact in result.facts:
                yield (fact, init, learner), (task, seed), reasons(result.facts[fact])


def _alike(by_learner: Mapping[Who, set[Draw]]) -> dict[tuple[str, str, frozenset[Draw]], list[str]]:
    """The learners that lost it in the same draws of the same weights."""
    found: dict[tuple[str, str, frozenset[Draw]], list[str]] = {}
    for (fact, init, learner), draws in by_learner.items():
        found.setdefault((fact, init, frozenset(draws)), []).append(learner)
    return found


def _where(comparison: Comparison, draws: Set[Draw], everywhere: Set[Draw]) -> str:
    """All draws, all of some tasks, or so many of all."""
    if draws == everywhere:
        return "all"
    tasks = {task for task, _ in draws}
    if draws == {draw for draw in everywhere if draw[0] in tasks}:
        titles = comparison.spec.task_titles.items()
        return f"of {', '.join(title for task, title in titles if task in tasks)}"
    return f"{len(draws)} of {len(everywhere)}"


def _nulls(found: Mapping[str, str]) -> list[tuple[str, str]]:
    """By a null's label, or ``label, contrast`` for what labels change in it, or ``contrast`` for the learner's own."""
    named = {name: name.partition(f", {CONTRAST}") for name in found}
    return [
        (f"{CONTRAST} of labels" if name == CONTRAST else f"{title_of(null)}{rest}", found[name])
        for name, (null, rest, _) in named.items()
    ]


REASONS: dict[str, Callable[[Any], list[tuple[str, str]]]] = {
    "diverged": lambda why: [("training", str(why))] if why else [],
    "nulls_left_out": _nulls,
    "floor": lambda why: [("noise floor in wider precision (first draw)", str(why))] if why else [],
}
