"""A comparison whose numbers are planted, the same in all queries and layers of a draw.

Two tasks, three draws .01 apart, four learners .1 apart; Student's t of three draws makes every interval ± .025.
"""

import numpy as np
from planted_compare import QUERIES, likeness

from iclgd.lab import Cell
from iclgd.labs.compare.spec import CONSTANT, WHOLE
from iclgd.results import Array, array

LEVEL = {"gd 0.01": 0.1, "gd 0.1": 0.2, "lcgd 0.01": 0.3, "lcgd 0.1": 0.4}


WHOLES = (1.0, 2.0, 9.0, 9.0, 9.0)  # what a draw's margins missed are a share of: the last draw counts most


TASKS = {"sentiment": 0.0, "kinds": 0.2}


FIELDS = {
    "task": "sentiment,kinds",
    "learners": "gd,lcgd",
    "rates": "0.01,0.1",
    "seeds": 3,
    "nulls": "other-query,wrong-labels",
    "metrics": "accuracy,calibrated,contextual,SimAOU,SimAM_delta,contrast-AOU,label-share,tau,"
    "agreement,margins-missed",
}


HALF = 4.302652729911275 * 0.01 / 3**0.5


def right(share: float, **labels: str) -> Array:
    return array((np.arange(QUERIES) < round(share * QUERIES)).astype(float), "query", **labels)


def plant(cell: Cell, random: np.random.Generator) -> list[Array]:
    task, seed = TASKS[str(cell.labels["task"])], int(cell.labels["seed"])
    wobble = 0.01 * (seed - 1)

    def same(mean: float, **labels: str) -> Array:
        return likeness(mean + task + wobble, random, spread=0, **labels)

    def missed(mean: float, **labels: str) -> Array:
        return array(np.full(QUERIES, mean + task + wobble), "query", **labels)

    if "versus" in cell.labels:
        return [same(LEVEL[str(cell.labels["learner"])] / 2, metric="alpha")]
    if "learner" not in cell.labels:
        found = [right(share, metric="accuracy", learner=name) for name, share in (("zero-shot", 0.4), ("icl", 0.8))]
        found += [right(0.6, metric="contextual", learner="icl"), same(0.05, metric="label-share", learner="icl")]
        found += [right(0.3, metric="accuracy", learner="icl", null="wrong-labels")]
        whole = WHOLES[seed] if cell.labels["init"] == "trained" else 1.0
        found += [
            right(0.6, metric="agreement", learner=CONSTANT),
            missed(2.0, metric="margins-missed", learner=CONSTANT),
            missed(0.35, metric="margins-missed", learner="zero-shot"),
            array(np.full(QUERIES, whole), "query", quantity=WHOLE.format("margins-missed"), learner="icl"),
        ]
        return [*found, same(0.5, metric="SimAOU", learner="icl", floor="other precision")]
    level, first = LEVEL[str(cell.labels["learner"])], cell.labels["init"] == "trained"
    level -= 0 if first else 0.05
    found = [
        right(0.5 + level, metric="accuracy"),
        right(0.5 + level / 2, metric="calibrated"),
        right(0.7, metric="agreement"),
        missed(1 - level, metric="margins-missed"),
        same(level, metric="SimAOU"),
        same(level / 2, metric="SimAM_delta"),
        same(level / 4, metric="tau"),
        array([3, 4, 5, 10], "count", quantity="Rec2FTP"),
    ]
    if first:
        found += [
            same(level + 0.3, metric="contrast-AOU"),
            same(0.1, metric="label-share"),
            same(0.01, metric="SimAOU", null="other-query"),
            same(0.02, metric="contrast-AOU", null="other-query"),
            same(0.03, metric="SimAOU", null="wrong-labels"),
            right(0.2, metric="accuracy", null="wrong-labels"),
            missed(1.5, metric="margins-missed", null="wrong-labels"),
            same(0.6, metric="SimAOU", floor="other precision"),
            array([9.0, 8, 7, 6, 5, 4, 1 - level, 3 - level], "step", quantity="loss"),
            array([3.0 / level, 4.0 / level], "part", quantity="weight change"),
            array([0.9, np.nan, 0.8], "part", quantity="weight change, right and wrong labels"),
            array([[1.0, 10.0], [0.0, 100 * level]], "layer", "demo", quantity="gradient norm"),
        ]
    return found
