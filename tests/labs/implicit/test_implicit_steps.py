"""By how much training would have to be scaled to come closest to each kind of patch."""

from dataclasses import replace

import numpy as np
from planted_implicit import Plant, planted, row

from iclgd.labs.implicit import tables
from iclgd.labs.implicit.page import page


def test_best_steps_are_of_whole_patches_and_of_what_labels_change():
    table = tables.best_steps(planted(seeds=2))
    assert table.header[1:] == ["one matrix", "own patches", "labels, one matrix", "labels, own patches"]
    assert row(table, "gd 0.01, trained")[1:] == ["4", "3", "-.5", ".25"]
    assert "Best steps" in [section.title for section in page(planted().study).sections]


def test_a_best_step_is_the_median_over_draws_and_queries_of_however_many():
    class Other(Plant):
        def __call__(self, cell):
            found = super().__call__(cell)
            if cell.labels.get("seed") != 1:
                return found
            arrays = [
                replace(one, values=np.concatenate([9 * one.values] * 3)) if one.labels["quantity"] == "step" else one
                for one in found.arrays
            ]
            return type(found)(found.facts, arrays)

    assert row(tables.best_steps(planted(Other(), seeds=2)), "gd 0.01, trained")[1:] == ["36", "27", "-4.5", "2.2"]


def test_where_no_best_step_was_kept_there_is_no_table_of_them():
    class Older(Plant):
        def __call__(self, cell):
            found = super().__call__(cell)
            return type(found)(
                found.facts, [one for one in found.arrays if "labels" not in str(one.labels.get("patch"))]
            )

    view = planted(Older())
    assert tables.best_steps(view) is None
    assert "Best steps" not in [section.title for section in page(view.study).sections]
