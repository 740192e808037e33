"""Of several weights the page of `implicit` speaks of the first: what others do stands in rows that name them."""

import numpy as np
import pytest
from planted_implicit import Plant, planted, row

from charted import charted
from iclgd.labs.implicit import charts, figures, tables
from iclgd.labs.implicit.against import Against
from iclgd.labs.implicit.answer import static, worst
from iclgd.labs.implicit.beside import Beside
from iclgd.labs.implicit.view import WHOLE, mean, shares

RATES = (0.01, 0.5)


class Weights(Plant):
    """Untrained weights have other numbers everywhere: what patches and training bring back, sizes, residuals."""

    def __call__(self, cell):
        first = cell.labels["init"] == "trained"
        self.shift, self.by_query, self.block = (0.8, 0.25, 1e-15) if first else (0.3, 0.9, 1e-5)
        self.base = 0.0 if first else -0.5
        self.gd = dict.fromkeys(RATES, ((0.4, 0.5), (0.4, 0.5)) if first else ((0.9, 0.1), (0.1, 0.9)))
        self.left = [3.0, 3.0] if first else [0.5, 0.5]
        self.untrained = 0.2
        return super().__call__(cell)


BOTH, ALONE = (planted(Weights(), seeds=2, rates=RATES, init=init) for init in ("trained,random", "trained"))


def rows(table) -> list[list[str]]:
    """Without those that name other weights."""
    return [line for line in table.texts() if "random weights" not in line[0] and not line[0].startswith("random, ")]


@pytest.mark.parametrize(
    "table",
    [
        *(tables.exact, tables.sizes, tables.short, tables.curve, tables.by_task, tables.depth, tables.labels_made),
        lambda view: Against(view).table(),
    ],
)
def test_what_other_weights_do_changes_no_row_that_does_not_name_them(table):
    assert rows(table(BOTH)) == rows(table(ALONE)) != []


def test_rows_that_name_other_weights_have_what_these_do():
    assert row(tables.short(BOTH), "random weights")[3] == ".90 [.90 .90]"
    assert row(tables.short(BOTH), "matrix fitted on 16")[3] == ".25 [.25 .25]"
    assert row(tables.alike(BOTH), "gd 0.5, random")[2].startswith(".200 [")
    assert row(tables.exact(BOTH), "random, float64, C")[1] == "1e-05"
    assert row(tables.steps(BOTH), "gd 0.01, random")[1:4] == [".3", ".05", "4"]


@pytest.mark.parametrize("table", [tables.alike, tables.overlaps, tables.steps])
def test_of_training_the_first_weights_come_first_and_are_what_they_are_alone(table):
    alone = table(ALONE).texts()
    assert table(BOTH).texts()[: len(alone)] == alone != []


def test_sentences_on_the_patch_are_of_the_first_weights():
    assert static(BOTH) == static(ALONE) != ""
    assert Against(BOTH).said() == Against(ALONE).said() != ""
    assert worst(BOTH, "trained") == worst(ALONE, "trained")
    assert worst(BOTH, "random")[1:] == (1e-5, 0.5 / 4)


def test_other_weights_are_a_null_of_likeness_and_change_none_of_the_others():
    found, alone = Beside(BOTH), Beside(ALONE)
    assert found.rate == alone.rate == 0.5
    for quantity, patch in (("cosine", WHOLE), ("cosine", "own"), ("contrast", WHOLE)):
        nulls = found.nulls(quantity, patch)
        assert float(nulls.pop("random weights").mean()) == pytest.approx(0.2 if quantity == "cosine" else 0.03)
        assert list(nulls) == list(alone.nulls(quantity, patch))


def test_figures_and_charts_are_of_the_first_weights_where_they_name_no_other():
    for draw in (figures.draw_curve, figures.draw_depth, figures.draw_layers):
        one, two = (
            [(line.get_label(), *line.get_ydata()) for axes in draw(view).axes for line in axes.lines]
            for view in (BOTH, ALONE)
        )
        named = [line for line in one if "random weights" not in line[0] and line[0][0] != "_"]
        assert named == [line for line in two if line[0][0] != "_"] != []
    for chart in (charts.curve, charts.depth, charts.layers):
        one, two = (charted(chart(view), "panel", "name") for view in (BOTH, ALONE))
        assert str({name: line for name, line in one.items() if "random weights" not in name[1]}) == str(two) != "{}"


def test_nothing_is_known_of_nothing():
    for found in (mean(np.full((1, 2, 3), np.nan)), shares(np.full((1, 2, 3), np.nan))):
        assert np.isnan([found.mean, found.low, found.high]).all()
        assert (found.seeds, found.queries, found.tasks, found.kind) == (0, 0, 0, "none")
