"""Of several weights the page of `causal` speaks of the first: what others do stands in rows that name them."""

import numpy as np
import pytest
from planted_causal import LAYERS, Plant, planted

from charted import charted
from iclgd.labs.causal import charts, exchanged, tables
from iclgd.labs.causal.answer import carried, reading, taken_out
from iclgd.labs.causal.figures import SITES, draw_layers
from iclgd.labs.causal.heads import Heads
from iclgd.labs.causal.view import by_layer, mean, shares


class Weights(Plant):
    """Untrained weights carry everything elsewhere: other layers, other runs, other heads."""

    def __call__(self, cell):
        first = cell.labels["init"] == "trained"
        self.layers = (0.1, 0.1, 0.6, 0.1) if first else (0.9, 0.3, 0.2, 0.4)
        self.at = {"zero-shot": -1.0, "icl": 1.0, "gd": 0.0 if first else 0.8}
        return super().__call__(cell)


BOTH, ALONE = (planted(Weights(), seeds=3, rates="0.01,0.1", init=init) for init in ("trained,random", "trained"))


def rows(table) -> list[list[str]]:
    """Without those that name other weights, and what stands in below them."""
    return [line for line in table.texts() if not line[0].endswith(", random")]


@pytest.mark.parametrize(
    "table",
    [
        *(tables.layers, tables.training, tables.heads, tables.ablated, exchanged.table),
        *(lambda view: Heads(view).table(), lambda view: Heads(view).listed()),
    ],
)
def test_what_other_weights_do_changes_no_row_that_does_not_name_them(table):
    assert rows(table(BOTH)) == rows(table(ALONE))


def test_rows_that_name_other_weights_have_what_these_do():
    found = {line[0]: line[1:] for line in tables.layers(BOTH).texts()}
    assert found["icl into zero-shot, random"][:2] == ["0", ".90 [.90 .90]"]
    assert found["icl into zero-shot"][:2] == ["2", ".60 [.60 .60]"]
    along = {line[0]: line[1] for line in tables.training(BOTH).texts()}
    assert along["gd's layers, icl's effect, 0.1, random"].startswith(".90")  # from −1 to .8 of the way to 1
    assert along["gd's layers, icl's effect, 0.1"].startswith(".50")


def test_sentences_on_reading_and_on_heads_are_of_the_first_weights():
    for sentence in (reading, taken_out, lambda view: Heads(view).said()):
        assert sentence(BOTH) == sentence(ALONE) != ""
    assert "attention of layer 2 of 3" in reading(BOTH)


def test_training_of_other_weights_is_a_null_of_its_own_and_none_of_the_others():
    found, alone = carried(BOTH), carried(ALONE)
    for rate in (0.01, 0.1):
        np.testing.assert_allclose(found.own[rate], alone.own[rate])
        assert float(np.mean(found.nulls[rate]["random weights"])) == pytest.approx(0.9, abs=0.01)
        for title, values in alone.nulls[rate].items():
            np.testing.assert_allclose(found.nulls[rate][title], values)


def test_figure_and_chart_are_of_the_first_weights():
    lines = [
        [(line.get_label(), *line.get_ydata()) for panel in draw_layers(view).axes for line in panel.get_lines()]
        for view in (BOTH, ALONE)
    ]
    assert lines[0] == lines[1]
    (one, two) = (
        charted(charts.layers(view), "panel", "name", "rate", site=SITES["attention"]) for view in (BOTH, ALONE)
    )
    assert one == two
    assert one["icl into zero-shot", "icl", "0.1"] == [0.1, 0.1, 0.6, 0.1]


def test_draws_are_of_tasks_and_seeds():
    assert (BOTH.draws, ALONE.draws, planted(seeds=2, task="sentiment,kinds").draws) == (3, 3, 4)


def test_nothing_is_known_of_nothing():
    for found in (mean(np.full((1, 2, 3), np.nan)), shares(np.full((1, 2, 3), np.nan))):
        assert np.isnan([found.mean, found.low, found.high]).all()
        assert (found.seeds, found.queries, found.tasks, found.kind) == (0, 0, 0, "none")
    assert by_layer(np.full((1, 2, 3, LAYERS), np.nan)) == []
