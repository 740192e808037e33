"""One contrast has one verdict on a page: that of its row in the table of differences, corrected for all rows."""

from dataclasses import replace

import numpy as np
import pytest
from planted_compare import QUERIES, likeness, planted
from planted_tables import right
from planted_world import FIELDS, world

from iclgd.lab import Cell
from iclgd.labs.compare import family as module
from iclgd.labs.compare.answer import answer, found
from iclgd.labs.compare.evidence import Evidence
from iclgd.labs.compare.nearer import METRIC, nearer
from iclgd.labs.compare.spec import CONSTANT, WHOLE
from iclgd.results import array

SEVERAL = {**FIELDS, "learners": "gd,lcgd", "nulls": "other-query"}
LEARNERS = ("gd 0.001", "lcgd 0.001")


def nearly(cell: Cell, random: np.random.Generator):
    """Alone every difference has a p-value of .02; no table has fewer than three rows."""
    if "versus" in cell.labels:
        return []
    if "learner" not in cell.labels:
        return [right(1, metric="accuracy", learner=name) for name in ("zero-shot", "icl")]
    draw = int(cell.labels["seed"])
    level = 0.0 if cell.labels["init"] == "random" else 0.06 + 0.1 * draw
    missed = (np.arange(QUERIES) - 6 * draw) % QUERIES < (1, 1, 2, 3, 4)[draw]
    return [
        right(1, metric="accuracy"),
        array(1.0 - missed, "query", metric="accuracy", null="wrong-labels"),
        likeness(level, random, spread=0, metric="SimAOU"),
        likeness(0.0, random, spread=0, metric="SimAOU", null="other-query"),
        likeness(level, random, spread=0, metric="contrast-AOU"),
        likeness(0.0, random, spread=0, metric="contrast-AOU", null="other-query"),
    ]


@pytest.fixture(scope="module")
def comparison():
    return planted(nearly, **SEVERAL)


@pytest.mark.parametrize(
    "metric, other, row, claimed",
    [
        ("accuracy", {"null": "wrong-labels"}, "{}: right − wrong labels", "raining learned"),
        ("contrast-AOU", {"null": "other-query"}, "{} − another query's update", "more alike"),
        ("SimAOU", {"null": "other-query"}, "{} − another query's update", "above that of every null"),
        ("SimAOU", {"init": "random"}, "{}: trained − random", "above that of every null"),
    ],
)
def test_no_answer_claims_what_its_row_calls_undecided(comparison, metric, other, row, claimed):
    table = Evidence(comparison, "prompt").differences(["sentiment"], metric)
    for learner in LEARNERS:
        own = {"init": "trained", "learner": learner, "metric": metric}
        alone = comparison.difference(["sentiment"], "prompt", own, {**own, **other})
        assert (alone.verdict, round(alone.p, 2)) == ("above", 0.02)
        assert next(line for line in table.rows if line[0] == row.format(learner))[3] == "undecided"
    assert claimed not in answer(comparison)
    assert not any(claimed in one.verdict for one in found(comparison))


def test_an_answer_is_corrected_for_all_rows_of_the_tables_that_it_rests_on_each_of_them_once(monkeypatch):
    families = []

    def never(family):
        families.append(len(family))
        return [replace(one, corrected=1.0) for one in family]

    monkeypatch.setattr(module, "holm", never)
    comparison = planted(world(), **{**SEVERAL, "nulls": "other-query,wrong-labels"})
    said, tables = answer(comparison), Evidence(comparison, "prompt")
    assert "raining is not shown to learn the labels or their frequencies (gd, lcgd)" in said
    assert "What labels change is not shown to be alike in reading and training" in said
    assert "SimAOU of whole updates is not shown above its nearest rival" in said
    names = ("contrast-AOU", "accuracy", "SimAOU")
    assert families == [len(tables.differences(["sentiment"], name).rows) for name in names] == [3, 6, 7]


def missed(cell: Cell, random: np.random.Generator):
    """Learners miss less than one answer for all queries, and than on random weights, with p = .02; than others surely.

    So two differences of one table are hard to tell, and five of the other.
    """
    level = 0.06 + 0.1 * int(cell.labels["seed"])

    def at(value: float, **labels: str):
        return array(np.full(QUERIES, value), "query", metric=METRIC, **labels)

    if "versus" in cell.labels:
        return []
    if "learner" in cell.labels:
        trained = cell.labels["init"] == "trained"
        return [at(2 - level), at(9 - level, null="wrong-labels")] if trained else [at(2.0)]
    whole = array(np.ones(QUERIES), "query", quantity=WHOLE.format(METRIC), learner="icl")
    return [whole, at(2.0, learner=CONSTANT), at(9.0, learner="zero-shot")]


def test_of_a_single_task_who_is_nearer_is_said_as_the_table_of_differences_has_it():
    fields = {**SEVERAL, "nulls": "wrong-labels", "metrics": METRIC}
    alone, several = (Evidence(planted(missed, **fields, task=task), "prompt") for task in ("kinds", "kinds,sentiment"))
    verdicts = {row[0]: row[3] for row in alone.differences(["kinds"], METRIC).rows}
    assert verdicts[f"gd 0.001 − {CONSTANT}"] == "undecided"
    assert verdicts["gd 0.001 − trained on wrong labels"] == "below"
    surely = "doing nothing, trained on wrong labels"
    assert [row[2] for row in nearer(alone).rows] == [surely] * 2
    assert [row[2] for row in nearer(several).rows] == [surely] * 4  # of both tasks' draws, in one family


def test_an_answer_without_accuracies_says_nothing_of_learning_labels():
    assert "labels or" not in answer(planted(nearly, **SEVERAL, metrics="SimAOU,contrast-AOU"))
