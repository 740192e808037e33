"""Whose answers are nearer to reading's than those of something that knows less, task by task.

A mean over three tasks decides next to nothing; draws of one task may. A learner is held against doing nothing, against
one answer for all queries, and against itself trained on something else. P-values are corrected for those of all tasks
together: task by task, a table of six would say "surely" of something false in a quarter of studies.
"""

from itertools import product

from iclgd.labs.compare.absent import short_of
from iclgd.labs.compare.evidence import Evidence
from iclgd.labs.compare.family import Pair, Place, apart
from iclgd.labs.compare.spec import CONSTANT
from iclgd.labs.compare.view import number
from iclgd.metrics.differences import Difference, holm
from iclgd.report.page import Entry, Table

METRIC = "margins-missed"  # 0 is reading, 1 doing nothing
NOTHING = "doing nothing"


def nearer(tables: Evidence) -> Table:
    """What every learner misses of reading's effect on the margins, and what that is surely less or more than."""
    rows: list[list[Entry]] = []
    titles = tables.comparison.spec.task_titles
    for (task, learner), verdicts in _verdicts(tables).items():
        place = {"init": tables.first, "learner": learner, "metric": METRIC}
        missed = tables.comparison.estimate([task], None, **place)
        said = [", ".join(name for name, way in verdicts.items() if way == one) for one in ("below", "above")]
        rows.append([f"{titles[task]}: {learner}", number(missed, 2), *said])
    return Table(["", "margins missed", "surely less than", "surely more than"], rows)


def _verdicts(tables: Evidence) -> dict[tuple[str, str], dict[str, str]]:
    """By task and learner, and by what it is compared with: above, below or undecided.

    Of a single task the table of differences has most of these pairs, too: they have its verdicts.
    """
    pairs: dict[tuple[str, str, str], Pair] = {}
    found: list[Difference] = []
    tasks = tables.comparison.spec.task
    for task, choice in product(tasks, tables.learners):
        own = {"init": tables.first, "learner": choice.label, "metric": METRIC}
        for name, place in _others(tables, own).items():
            if (one := tables.comparison.difference([task], None, own, place)) is not None:
                pairs[task, choice.label, name] = own, place
                found.append(one)
    verdicts: dict[tuple[str, str], dict[str, str]] = {}
    for ((task, learner, name), pair), one in zip(pairs.items(), holm(found), strict=True):
        row = apart(tables.comparison, *pair) if len(tasks) == 1 else None
        part = short_of(tables.comparison, [task], *pair)  # what is left may be a selection
        verdicts.setdefault((task, learner), {})[name] = "undecided" if part else (row or one).verdict
    return verdicts


def _others(tables: Evidence, own: Place) -> dict[str, Place]:
    found = {NOTHING: {**own, "learner": "zero-shot"}, CONSTANT: {**own, "learner": CONSTANT}}
    return found | {title: {**own, "null": null} for null, title in tables.nulls.items()}
