"""Numbers of a comparison, each around its own mean: what is to be said of them is known."""

import numpy as np
from planted_compare import answers, likeness

from iclgd.lab import Cell
from iclgd.report.numbers import Number
from iclgd.results import array

FIELDS = {"learners": "gd", "nulls": "other-query,wrong-labels", "seeds": 5, "init": "trained,random", "floor": False}


def world(contrast=0.3, null=0.0, right=0.9, wrong=0.3, own=0.4, untrained=0.1, wrong_update=0.1):
    """Numbers of a comparison, each around its own mean."""

    def plant(cell: Cell, random: np.random.Generator):
        if "versus" in cell.labels:
            return []
        if "learner" not in cell.labels:
            return [
                answers(0.5, random, metric="accuracy", learner="zero-shot"),
                answers(0.8, random, metric="accuracy", learner="icl"),
                answers(0.4, random, metric="accuracy", learner="icl", null="wrong-labels"),
                likeness(0.2, random, metric="label-share", learner="icl"),
            ]
        trained = cell.labels["init"] == "trained"
        return [
            answers(right, random, metric="accuracy"),
            answers(wrong, random, metric="accuracy", null="wrong-labels"),
            likeness(own if trained else untrained, random, metric="SimAOU"),
            likeness(0.0, random, metric="SimAOU", null="other-query"),
            likeness(wrong_update, random, metric="SimAOU", null="wrong-labels"),
            likeness(contrast, random, metric="contrast-AOU"),
            likeness(null, random, metric="contrast-AOU", null="other-query"),
            array([3, 4, 5, 10], "count", quantity="Rec2FTP"),
            array([3.0, 2.0, 1.0], "step", quantity="loss"),
        ]

    return plant


def cell(table, row: str, column: str) -> Number:
    place = list(table.header).index(column)
    return next(entries[place] for entries in table.rows if entries[0] == row)
