"""How far training went, from planted losses and weight changes: intervals over draws, and draws that diverged."""

from dataclasses import replace

import numpy as np
import pytest
from planted_compare import planted
from planted_tables import FIELDS, plant

from iclgd.lab import Cell
from iclgd.labs.compare.evidence import Evidence
from iclgd.labs.compare.far import ALIKE, last, size_of
from iclgd.labs.compare.view import Comparison
from iclgd.results import Array


def texts(table, row: str) -> list[str]:
    return next(line[1:] for line in table.texts() if line[0] == row)


def uneven(cell: Cell, random: np.random.Generator) -> list[Array]:
    """What training wrote grows by a tenth from draw to draw, cosines fall by a tenth."""
    draw = int(cell.labels["seed"])
    factor = {"loss": 1 + draw / 10, "weight change": 1 + draw / 10, ALIKE: 1 - draw / 10}
    return [
        replace(one, values=one.values * factor.get(str(one.labels.get("quantity")), 1)) for one in plant(cell, random)
    ]


def test_training_is_shown_by_its_last_losses_its_length_and_what_wrong_labels_change():
    """The last quarter of eight losses is 1 − level and 3 − level; the length of (3, 4) / level is 5 / level.

    Student's t of three draws that are a tenth apart: 4.30 · .1 / √3 = .248 of the first.
    """
    table = Evidence(planted(uneven, **FIELDS), "prompt").training(["sentiment"])
    assert [line[:3] for line in table.texts()] == [
        ["gd 0.01", "2.09 [1.62 2.56]", "55 [42.6 67.4]"],
        ["gd 0.1", "1.98 [1.53 2.43]", "27.5 [21.3 33.7]"],
        ["lcgd 0.01", "1.87 [1.45 2.29]", "18.3 [14.2 22.5]"],
        ["lcgd 0.1", "1.76 [1.36 2.16]", "13.8 [10.6 16.9]"],
    ]
    cosine = table.rows[0][4]
    assert cosine.value == pytest.approx(0.85 * 0.9)
    assert 0.4 < cosine.low < 0.6 < 0.85 < cosine.high < 1


def test_nothing_is_known_of_who_was_not_there():
    assert np.isnan(size_of(planted(plant, **FIELDS), "nobody", "loss"))


def test_the_last_losses_are_a_quarter_of_all_and_one_at_least():
    assert [last(np.array(losses)) for losses in ([7.0], [7.0, 5.0], [9.0] * 7 + [3.0], [9.0] * 6 + [2.0, 4.0])] == [
        *(7, 5),
        *(6, 3),
    ]


def test_a_size_has_no_interval_below_nothing_and_tasks_are_what_it_is_over():
    """Two tasks, one three times as far as the other: t of one degree of freedom is 12.7."""

    def further(cell: Cell, random: np.random.Generator) -> list[Array]:
        factor = 3 if cell.labels["task"] == "kinds" else 1
        return [
            replace(one, values=one.values * factor) if one.labels.get("quantity") == "weight change" else one
            for one in plant(cell, random)
        ]

    (row, *_) = Evidence(planted(further, **FIELDS), "prompt").training(["sentiment", "kinds"]).rows
    assert row[2].value == pytest.approx(100)
    assert (row[2].low, row[2].high) == (0, pytest.approx(100 + 12.7062 * 50))


def test_draws_that_diverged_are_no_part_of_how_far_training_went_and_are_counted():
    """The draw that diverged went a thousand times as far; of another there was no training on wrong labels."""

    def lost(cell: Cell, random: np.random.Generator) -> list[Array]:
        one_lost = cell.labels.get("learner") == "gd 0.1" and cell.labels["task"] == "kinds"
        found = uneven(cell, random)
        if one_lost and cell.labels["seed"] == 1:
            return [one for one in found if one.labels.get("quantity") != ALIKE]
        gone = one_lost and cell.labels["seed"] == 2
        return [replace(one, values=one.values * 1000) for one in found] if gone else found

    comparison = planted(lost, **FIELDS)
    for cell, result in comparison.study.found():
        if (cell.labels.get("learner"), cell.labels["task"], cell.labels["seed"]) == ("gd 0.1", "kinds", 2):
            result.facts["diverged"] = "the loss is not a finite number" if "versus" not in cell.labels else None
        if cell.labels.get("learner") == "gd 0.1":
            result.facts["moved"] = {0: 0.1, 1: 0.2, 2: 0.9}[cell.labels["seed"]]
    tables = Evidence(Comparison(comparison.study), "prompt")
    row = "gd 0.1, 1 of 3 draws diverged"
    assert [line[0] for line in tables.training(["kinds"]).texts()] == ["gd 0.01", row, "lcgd 0.01", "lcgd 0.1"]
    loss, size, moved, alike = texts(tables.training(["kinds"]), row)
    assert (loss.split()[0], size.split()[0], moved) == ("1.89", "26.2", ".150")
    assert alike == ".850 1 of 2 draws"
    both = tables.training(["sentiment", "kinds"])
    assert texts(both, "gd 0.1, 1 of 6 draws diverged")[1].startswith("26.9 [")
    assert size_of(tables.comparison, "gd 0.1", "weight change") == pytest.approx((27.5 + 26.25) / 2)
