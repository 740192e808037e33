"""The first draw of every task as the explorer shows it: answers, attention and likeness, query by query."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from iclgd.labs.compare.view import Comparison
from iclgd.looked import ATTENTION, CONTRIBUTION, OWN_ATTENTION
from iclgd.report import explorer
from iclgd.report.page import Section

LIKENESS = "SimAOU"


def explored(comparison: Comparison) -> list[Section]:
    """Nothing for cells of a time when nothing was kept to look at."""
    found = {task: facts for task in comparison.spec.task if (facts := _facts(comparison, task))}
    return [explorer.section(lambda: [_episode(comparison, *one) for one in found.items()])] if found else []


def _episode(comparison: Comparison, task: str, facts: Mapping[str, Any]) -> explorer.Episode:
    spec = comparison.spec
    trained = [choice.label for choice in spec.trained]

    def values(who: Sequence[str], **what: str) -> dict[str, np.ndarray]:
        labels = {"init": spec.init[0], "task": task, **what}
        found = {one: comparison.arrays(learner=one, **labels).get(spec.seeds[0]) for one in who}
        return {
            one: array.at(position=spec.position).values if "position" in array.axes else array.values
            for one, array in found.items()
            if array is not None
        }

    everyone = ["zero-shot", "icl", *trained]
    return explorer.Episode(
        title=spec.task_titles[task],
        texts=facts["looked"],
        labels=facts["labels"],
        scores=values(everyone, quantity="scores"),
        own=values(everyone, quantity=OWN_ATTENTION),
        attention=values(["icl"], quantity=ATTENTION).get("icl"),
        contribution=values(["icl"], quantity=CONTRIBUTION).get("icl"),
        alike=values(trained, metric=LIKENESS),
    )


def _facts(comparison: Comparison, task: str) -> Mapping[str, Any] | None:
    """Of the cell that read the first draw."""
    spec = comparison.spec
    wanted = {"init": spec.init[0], "task": task, "seed": spec.seeds[0]}
    read = (result.facts for cell, result in comparison.study.found() if dict(cell.labels) == wanted)
    return next((facts for facts in read if "looked" in facts), None)
