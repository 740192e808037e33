"""Arrays of `implicit` found by their labels: values that differ in every place, and values that are not there."""

from dataclasses import replace

import numpy as np
import pytest
from planted_implicit import LAYERS, QUERIES, Plant, planted, row

from iclgd.labs.implicit import tables
from iclgd.labs.implicit.against import MISSED, RECOVERED, Against
from iclgd.labs.implicit.answer import how_alike, static, trained, worst
from iclgd.labs.implicit.beside import Beside
from iclgd.labs.implicit.page import page
from iclgd.labs.implicit.view import CONSTANT, WHOLE, distance, mean
from iclgd.metrics.estimates import Estimate, estimate


class Places(Plant):
    """To what is planted, a number by layer, query, rank, side, seed and task: no two places hold the same."""

    def __call__(self, cell):
        found = super().__call__(cell)
        episode = 10 * cell.labels.get("seed", 0) + 100 * (cell.labels.get("task") == "kinds")
        return type(found)(found.facts, [self._moved(one, episode) for one in found.arrays])

    def _moved(self, one, episode):
        if one.labels["quantity"] not in ("cosine", "contrast", "overlap", "chance", "step", "length"):
            return one
        steps = np.indices(one.values.shape).transpose(*range(1, one.values.ndim + 1), 0)
        weights = [1000, 10, 1][: one.values.ndim]  # the first axis moves most
        return replace(one, values=one.values + 1e-5 * ((steps * weights).sum(-1) + episode))


VIEW = planted(Places(), seeds=2, task="sentiment,kinds")


def test_cosines_are_means_over_layers_by_task_seed_and_query():
    found = VIEW.cosines("trained", "cosine", "own", 0.01)
    assert found.shape == (2, 2, QUERIES)
    query, layers = np.arange(QUERIES), 10 * np.mean(np.arange(LAYERS))
    for task in (0, 1):
        for seed in (0, 1):
            expected = 0.0202 + 1e-5 * (1000 * query + layers + 10 * seed + 100 * task)
            np.testing.assert_allclose(found[task, seed], expected)


def test_cosines_by_layer_are_means_over_queries_and_episodes():
    found = VIEW.by_layer("trained", "cosine", "own", 0.01)
    episodes = np.mean([10 * seed + 100 * task for seed in (0, 1) for task in (0, 1)])
    expected = 0.0202 + 1e-5 * (1000 * (QUERIES - 1) / 2 + 10 * np.arange(LAYERS) + episodes)
    np.testing.assert_allclose(found, expected)
    panel = page(VIEW.study).drawings["layers"].figure.axes[0]
    (line,) = [line for line in panel.lines if line.get_label() == "gd"]
    np.testing.assert_allclose(line.get_ydata(), expected)
    assert line.get_xdata().tolist() == list(range(LAYERS))


def test_what_was_not_measured_has_no_layers():
    assert VIEW.by_layer("trained", "cosine", "own", 7.0).shape == (0,)
    assert VIEW.cosine("trained", "cosine", "own", 7.0).kind == "none"


@pytest.mark.parametrize("rank, place", [(1, 0), (4, 1)])
@pytest.mark.parametrize("side, column", [("outputs", 0), ("inputs", 1)])
def test_subspaces_are_read_at_their_rank_and_side(rank, place, side, column):
    """Chance has two axes, rank and side; the overlap a layer between them."""
    found = VIEW.overlaps("trained", 0.01, rank, side)
    layers = 10 * (LAYERS - 1) / 2
    expected = [[[0.2 + 1e-5 * (1000 * place + layers + column + 10 * s + 100 * t)] for s in (0, 1)] for t in (0, 1)]
    np.testing.assert_allclose(found, expected)
    line = row(tables.overlaps(VIEW), f"one matrix, rank {rank}, gd 0.01, trained")
    chance = 0.01 + 1e-5 * (1000 * place + 10 * column + 55)
    assert line[1 + 2 * column].startswith(f".{round(1000 * np.mean(expected)):03d} [")
    assert line[2 + 2 * column] == f".{round(1000 * chance):03d}"


# what is not there


class Without(Plant):
    """Some arrays of the second draw are lost."""

    def __init__(self, **labels):
        super().__init__()
        self.lost = labels

    def __call__(self, cell):
        found = super().__call__(cell)
        if cell.labels.get("seed") != 1:
            return found
        return type(found)(found.facts, [one for one in found.arrays if not self.lost.items() <= one.labels.items()])


MEASURES = {
    "recovery": lambda view: view.recovery("trained", True, patch=WHOLE, fitted=16),
    "missing": lambda view: view.missing("trained", patch=WHOLE, fitted=16),
    "labels": lambda view: view.label_recovery(
        "trained", True, {"patch": WHOLE, "fitted": 16}, {"patch": WHOLE, "fitted": 16, "null": "wrong labels"}
    ),
    "right": lambda view: view.right("trained", patch=WHOLE, fitted=16),
    "agreeing": lambda view: view.agreeing("trained", patch=WHOLE, fitted=16),
    "constant": lambda view: view.agreeing("trained", patch=CONSTANT),
}
ICL, WRONG = {"patch": "icl", "asked": "held"}, {"patch": "icl, wrong labels", "asked": "held"}
OWN, OF_WRONG = {"patch": WHOLE, "asked": "held"}, {"patch": WHOLE, "null": "wrong labels"}


@pytest.mark.parametrize(
    "lost, empty",
    [
        ({"patch": "zero-shot", "asked": "held"}, {"recovery", "missing"}),
        (ICL, {"recovery", "missing", "labels", "agreeing", "constant"}),
        (WRONG, {"labels"}),
        (OWN, {"recovery", "missing", "labels", "right", "agreeing"}),
        (OF_WRONG, {"labels"}),
        ({"quantity": "answers"}, {"right"}),
        ({"patch": "icl", "asked": "calibration"}, {"constant"}),
    ],
    ids=["zero-shot", "icl", "wrong", "own", "of wrong", "answers", "calibration"],
)
def test_a_draw_of_which_an_array_is_lost_has_no_value_and_the_other_keeps_its_own(lost, empty):
    view = planted(Without(**lost), seeds=2)
    for name, measure in MEASURES.items():
        values = measure(view)
        assert np.isfinite(values[0, 0]).all(), name
        assert np.isnan(values[0, 1]).all() == (name in empty), name


def test_without_a_patch_for_all_queries_the_answer_says_nothing_of_it():
    class No(Plant):
        def _static(self, cell):
            found = super()._static(cell)
            return type(found)(found.facts, [one for one in found.arrays if one.labels.get("patch") != WHOLE])

    view = planted(No(), seeds=2)
    assert static(view) == ""
    assert page(view.study).answer.startswith("Finetuning the same matrices")


def test_without_any_null_the_answer_says_so():
    class Alone(Plant):
        def __init__(self):
            super().__init__()
            self.trained, self.contrasts = {}, {}

    view = planted(Alone(), seeds=2, init="trained")
    assert Beside(view).nulls("cosine", WHOLE) == {}
    assert trained(view).endswith("cosine with it is .020 [.020 .020], beside no null.")


def test_the_finest_arithmetic_that_was_run_is_spoken_of():
    precision, block, another = worst(planted(precisions="float64,float32"), "trained")
    assert (precision, block) == ("float64", 1e-15)
    assert another == pytest.approx(0.75)
    assert worst(planted(precisions="float32"), "trained")[0] == "float32"
    assert worst(planted(), "embeddings") is None


@pytest.mark.parametrize(
    "low, high, says",
    [
        (0.7, 0.9, "much the same change"),
        (0.69, 0.9, "a related change"),
        (0.2, 0.9, "a related change"),
        (0.1, 0.2, "a change"),
        (0.1, 0.19, "another change"),
    ],
)
def test_a_bound_that_is_just_reached_counts_as_reached(low, high, says):
    for kind in ("draws", "tasks"):
        assert how_alike(Estimate((low + high) / 2, low, high, 0.1, 3, 10, 1, kind), True) == says


class Apart(Plant):
    """Cosines of .9 and .6 in two draws, of one null .95 and .55; Student's t of two reaches beyond one."""

    def _trained(self, cell):
        self.cosine = (0.9, 0.6)[cell.labels["seed"]] / (1 + cell.labels["rate"])
        self.trained["wrong"] = (0.95, 0.55)[cell.labels["seed"]]
        return super()._trained(cell)


def test_likeness_of_a_cosine_keeps_to_its_bounds():
    view = planted(Apart(), seeds=2, init="trained")
    wide = estimate(view.cosines("trained", "cosine", WHOLE, 0.01))
    found = view.cosine("trained", "cosine", WHOLE, 0.01)
    assert wide.mean == found.mean == pytest.approx(0.75)
    assert wide.low < -1 < found.low < 0.75 < found.high < 1 < wide.high
    shown = row(tables.alike(view), "trained on wrong labels")[2]
    assert shown.startswith(".750 [-.9")
    assert f"not shown to be more than the {shown} of one null, trained on wrong labels" in trained(view)


def test_the_terminal_shows_what_the_answer_rests_on_without_being_asked_for_more():
    shown = page(planted().study)
    assert [one.title for one in shown.sections if one.brief] == [
        "In short", "The patch against training", "For one query",
    ]  # fmt: skip
    tables_of = [one.title for one in shown.sections if one.table is not None]
    assert tables_of == [one.title for one in shown.sections if one.title not in ("Fitted on more queries", "By layer")]
    assert shown.picture.data["names"]["column"][0] == "margins missed"


def test_the_last_loss_is_the_mean_of_the_last_three_steps_and_over_draws():
    class Longer(Plant):
        def _trained(self, cell):
            found = super()._trained(cell)
            steps = np.array([50.0, 40.0, 3.0, 2.0, 1.0]) + cell.labels["seed"]
            arrays = [replace(one, values=steps) if one.labels["quantity"] == "loss" else one for one in found.arrays]
            return type(found)(found.facts, arrays)

    assert row(tables.steps(planted(Longer(), seeds=2)), "gd 0.01, trained")[4] == "2.5"


def test_every_row_has_as_many_entries_as_the_header():
    for section in page(planted(seeds=2, rates=(0.01, 0.5)).study).sections:
        if section.table is not None:
            assert {len(row) for row in section.table.rows} == {len(section.table.header)}, section.title


def test_what_is_missed_has_no_interval_below_nothing_and_what_is_recovered_may_have():
    values = np.array([[[0.1], [0.9], [0.2]]])
    assert mean(values).low < 0
    assert distance(values).low == 0
    assert distance(values).high == mean(values).high
    assert distance(values + 5).low == mean(values + 5).low > 0
    assert np.isnan(distance(values[:, :1]).low)


class Uneven(Plant):
    """Reading does 1, 2 and 3 times as much in three draws, and the matrix brings back another part of it in each."""

    def __call__(self, cell):
        size = 1 + cell.labels.get("seed", 0)
        self.by_query = 0.3 * size
        found = super().__call__(cell)
        grown = [replace(one, values=size * one.values) for one in found.arrays if one.labels["quantity"] == "scores"]
        return type(found)(found.facts, grown + [one for one in found.arrays if one.labels["quantity"] != "scores"])


def test_draws_count_by_what_reading_does_in_them():
    view = planted(Uneven(), seeds=3)
    sizes, parts = np.array([1, 4, 9]), np.array([0.3, 0.6, 0.9])
    whole = {"patch": WHOLE, "fitted": view.most}
    assert mean(view.missing("trained", **whole)).mean == pytest.approx((sizes * (1 - parts) ** 2).sum() / 14)
    assert mean(view.recovery("trained", True, **whole)).mean == pytest.approx((sizes * parts).sum() / 14)
    found = view.label_recovery("trained", True, whole, {"patch": "zero-shot"})
    assert mean(found).mean == pytest.approx((sizes * parts / 2).sum() / 14)


class Shifted(Plant):
    """In the second draw reading shifts all queries by ten more, and what it does by the query is what it was."""

    def __call__(self, cell):
        second = cell.labels.get("seed") == 1
        self.by_query = 0.8 if second else 0.2
        found = super().__call__(cell)
        far = np.array([-5.0, 5.0])

        def moved(one):
            return second and one.labels["quantity"] == "scores" and one.labels["patch"] in ("icl", "matrix")

        arrays = [replace(one, values=one.values + far) if moved(one) else one for one in found.arrays]
        return type(found)(found.facts, [one for one in arrays if one.labels["quantity"] in ("scores", "answers")])


def test_without_the_shift_a_draw_counts_by_what_reading_does_query_by_query():
    view, whole = planted(Shifted(), seeds=2, init="trained"), {"patch": WHOLE, "fitted": 16}
    assert mean(view.missing("trained", **whole)).mean == pytest.approx((0.8**2 + 0.2**2) / 2)
    assert mean(view.recovery("trained", True, **whole)).mean == pytest.approx(0.5)
    assert mean(view.recovery("trained", False, **whole)).mean > 0.9


def test_what_is_missed_with_the_shift_has_it():
    """Reading shifts by 2 and does 1 by the query; .8 and .25 of that are there."""
    found = mean(planted(seeds=2).missing("trained", centred=False, patch=WHOLE, fitted=16))
    assert found.mean == pytest.approx((0.4**2 + 0.75**2) / (4 + 1))


def test_draws_are_of_tasks_and_seeds():
    assert (VIEW.draws, planted(seeds=3).draws) == (4, 3)


def test_a_draw_in_which_training_was_lost_counts_for_the_patch_beside_it_neither():
    """Of the first two draws the patch brings back .3 and .6, training .5; in the third training diverged."""

    class Lost(Uneven):
        def _trained(self, cell):
            self.diverged = cell.labels["seed"] == 2
            return super()._trained(cell)

    found = Against(planted(Lost(), seeds=3, init="trained"))
    patch, training = (np.nanmean(one) for one in found.pairs[MISSED])
    assert (patch, training) == pytest.approx(((0.7**2 + 4 * 0.4**2) / 5, 0.5**2))
    patch, training = (np.nanmean(one) for one in found.pairs[RECOVERED])
    assert (patch, training) == pytest.approx(((0.3 + 4 * 0.6) / 5, 0.5))
    assert found.differences[MISSED].estimate.mean == pytest.approx((0.7**2 + 4 * 0.4**2) / 5 - 0.5**2)
    assert found.differences[MISSED].estimate.seeds == 2
