"""Every sentence of the page of `implicit`, on results that were made up."""

from dataclasses import replace

import numpy as np
import pytest
from planted_implicit import Plant, planted, row

from iclgd.labs.implicit import answer as module
from iclgd.labs.implicit import tables
from iclgd.labs.implicit.against import Against
from iclgd.labs.implicit.answer import answer, found, identity, static, trained
from iclgd.labs.implicit.page import page


def test_the_last_sentence_says_that_the_identity_holds_and_for_untrained_weights_too():
    assert identity(planted()) == (
        "For one query a patch is exact (largest residual of a block 1e-15 in float64, 1e-15 with random weights); "
        "for another it leaves .75 of the gap in the logits."
    )


def test_a_residual_above_rounding_is_said():
    assert identity(planted(Plant(block=1e-9))).startswith("For one query a patch is not exact (")


def test_single_precision_is_asked_for_what_it_can_give():
    said = identity(planted(Plant(block=1e-14), precisions="float32", init="trained"))
    assert said.startswith("For one query a patch is exact (largest residual of a block 1e-06 in float32)")
    said = identity(planted(Plant(block=1e-11), precisions="float32", init="trained"))
    assert "is not exact (" in said


def test_the_table_of_exact_patches_names_forms_and_arithmetics():
    table = tables.exact(planted())
    assert row(table, "trained, float64, A") == ["trained, float64, A", "1e-15", "1e-14", "4", "", ""]
    assert row(table, "random, float32, C") == ["random, float32, C", "1e-07", "1e-06", "4", "3", "4 of 4"]


def test_what_another_query_s_patch_leaves_is_a_mean_over_queries_in_the_table_and_in_the_answer():
    plant = Plant()
    plant.gap, plant.left = [4.0, 16.0], [1.0, 6.0]
    view = planted(plant)
    assert row(tables.exact(view), "trained, float64, C")[3:5] == ["10", "3.5"]
    assert identity(view).endswith("; for another it leaves .35 of the gap in the logits.")


def test_behind_a_norm_the_forms_are_those_with_d():
    class Normed(Plant):
        def _exact(self, cell):
            found = super()._exact(cell)
            return type(found)({**found.facts, "normed": True}, found.arrays)

    names = [line[0] for line in tables.exact(planted(Normed(), precisions="float64", init="trained")).texts()]
    assert names == ["trained, float64, A with D", "trained, float64, B with D", "trained, float64, D"]


def test_sizes_and_the_fall_of_differences_stand_beside_the_weights():
    table = tables.sizes(planted())
    assert row(table, "random, float32") == ["random, float32", ".130", ".000", ".600", "-1.00"]
    assert row(table, "random, float64")[-1] == ""  # asked once: of the last arithmetic


# for all queries


def test_the_first_sentence_says_what_one_patch_misses_and_that_it_is_below_its_nulls():
    said = static(planted(seeds=3))
    assert said == (
        "One patch of the weights for all queries replaces the demonstrations better than every null: fitted on 16 "
        "others, it misses .56 [.56 .56] of what reading does from query to query (0: nothing, 1: as much as without "
        "it), beside .81 [.81 .81] of the nearest, one fitted behind wrong labels."
    )


def test_a_null_that_is_as_near_is_named_and_nothing_is_said_to_be_less():
    plant = Plant()
    plant.nulls["wrong labels"] = (0.7, 0.25)
    plant.nulls["other task"] = (0.7, 0.3)
    said = static(planted(plant, seeds=3))
    assert "is not shown to replace the demonstrations better than one fitted behind another task's prompt: " in said
    assert said.endswith("it), beside .49 [.49 .49].")


def test_what_one_patch_misses_is_corrected_for_all_of_its_nulls(monkeypatch):
    families = []

    def never(family):
        families.append(len(family))
        return [replace(one, corrected=1.0) for one in family]

    monkeypatch.setattr(module, "holm", never)
    assert "is not shown to replace the demonstrations better than one fitted behind wrong" in static(planted(seeds=3))
    assert static(planted(seeds=3)).endswith(", beside .81 [.81 .81].")
    assert families == [5, 5]  # four readings of something else, and one answer for all queries


def test_one_answer_for_all_queries_is_a_null_and_a_row():
    """Zero-shot leans −.5 by the query and reading +.5: who says the same of all has gone half of that way."""
    plant = Plant()
    plant.base = -0.5
    view = planted(plant, seeds=3)
    assert "not shown to replace the demonstrations better than one answer for all queries: " in static(view)
    assert static(view).endswith(", beside .25 [.25 .25].")
    for table in (tables.short, tables.curve):
        found = row(table(view), "tells no query from another")
        assert [found[1], found[3]] == [".25 [.25 .25]", ".50 [.50 .50]"]
        assert [found[4][:3], found[5][:3]] == [".50", "1.0"]  # reading calls all of them 1, too
    raw = 1 - 0.5 / 5  # e = 2 + s, e' = 2 − (−.5 s), s = ±1
    assert float(np.nanmean(view.recovery("trained", False, patch="constant"))) == pytest.approx(raw)


def test_the_one_answer_is_not_made_from_the_queries_that_are_shown():
    class Elsewhere(Plant):
        def _static(self, cell):
            found = super()._static(cell)
            moved = [
                replace(one, values=one.values + np.array([-3, 3])) if one.labels.get("asked") == "calibration" else one
                for one in found.arrays
            ]
            return type(found)(found.facts, moved)

    here, there = (float(np.nanmean(planted(one).recovery("trained", False, patch="constant")))
                   for one in (Plant(), Elsewhere()))  # fmt: skip
    assert there == pytest.approx(here * (2 + 6) / 2)  # margins are 6 farther


def test_one_draw_decides_nothing():
    assert " not shown to replace the demonstrations better than one fitted behind wrong labels: " in static(planted())
    assert " makes a change, whose cosine with it is .020" in trained(planted())
    assert "(p " not in Against(planted()).said()  # one draw has no p-value


def test_a_vector_has_no_share_once_the_shift_is_gone():
    found = row(tables.short(planted()), "vector fitted on 16")
    assert found[3] == ".00 [.00 .00]"
    assert found[2].startswith(".64 [")


def test_the_short_table_has_reading_patches_nulls_and_training():
    view = planted()
    names = [line[0].strip() for line in tables.short(view).texts()]
    assert names == [
        "zero-shot", "icl", "tells no query from another", "vector fitted on 16", "matrix fitted on 16",
        "behind wrong labels",
        "another task's prompt", "behind filler", "random, as long", "on another task's queries", "random weights",
        "gd 0.01", "wrong labels", "other demonstrations", "another task",
    ]  # fmt: skip
    brought = {"behind filler": ".02", "wrong labels": ".20", "other demonstrations": ".30", "another task": ".10"}
    assert {name: row(tables.short(view), name)[3][:3] for name in brought} == brought
    assert row(tables.short(view), "zero-shot")[4].startswith(".50 [")  # it leans to class 0
    assert row(tables.short(view), "icl")[1:] == ["", "", "", "1.00 [.76 1.00]", ""]
    assert row(tables.short(view), "gd 0.01")[1:4:2] == [".25 [.25 .25]", ".50 [.50 .50]"]
    assert row(tables.short(view), "on another task's queries")[1:4:2] == [
        ".90 [.90 .90]",
        ".05 [.05 .05]",
    ]  # .1 of twice the effect


def test_the_curve_goes_over_queries_and_ranks():
    names = [line[0] for line in tables.curve(planted()).texts()]
    assert names == [
        "vector, 1", "matrix, 1", "vector, 4", "rank 1, 4", "matrix, 4", "vector, 16", "rank 1, 16", "rank 4, 16",
        "matrix, 16", "tells no query from another",
    ]  # fmt: skip


def test_patches_go_by_depth_up_to_a_layer_and_alone():
    view = planted(seeds=2)
    assert [(line[0], line[3]) for line in tables.depth(view).texts()] == [
        ("up to layer 1", ".20 [.20 .20]"), ("up to layer 3", ".40 [.40 .40]"),
        ("layers 0 to 1 alone", ".10 [.10 .10]"), ("layers 2 to 3 alone", ".10 [.10 .10]"),
    ]  # fmt: skip
    drawing = page(view.study).drawings["depth"]
    _, centred = drawing.figure.axes
    lines = {line.get_label(): line for line in centred.lines}
    for name, values in (("all layers up to here", [0.2, 0.4]), ("a part alone", [0.1, 0.1])):
        assert lines[name].get_xdata().tolist() == [1, 3]
        assert lines[name].get_ydata() == pytest.approx(values)


def test_what_labels_change_is_right_minus_wrong_in_both():
    """Reading: 2 by the query, no shift; the patch .25 − .1 of 1, training .5 − .2."""
    table = tables.labels_made(planted())
    assert row(table, "matrix fitted on 16")[2] == ".07 [.07 .07]"
    assert row(table, "gd 0.01")[2].startswith(".15 [")


# the page


def test_the_answer_says_when_its_intervals_are_over_the_queries_of_one_draw():
    two_tasks = {"task": ("sentiment", "continents"), "seeds": 1}
    assert "One draw" not in answer(planted(seeds=2)) + answer(planted(**two_tasks))
    assert answer(planted(seeds=1)).endswith(" One draw: intervals are over queries alone.")


def test_the_page_says_what_was_run_what_was_found_and_what_the_identity_does_not_say():
    view = planted()
    shown = page(view.study)
    assert shown.subtitle == "smollm2-135m · sentiment · k = 8 · 1 seed × 12 held-out queries · float32"
    said = f"{static(view)} {trained(view)} {Against(view).said()} {identity(view)}"
    assert shown.answer == answer(view) == f"{said} One draw: intervals are over queries alone."
    texts = {section.title: section.text for section in shown.sections}
    assert texts["For one query"].endswith(
        'A path of random matrices is "gradient descent" on trace losses to 2e-16: so is any.'
    )
    assert texts["Patches beside the weights"].endswith("In one layer of random softmax attention it is -.98.")
    assert texts["In short"].endswith("1 seed: no interval over draws.")
    assert (
        "over draws of demonstrations" in {s.title: s.text for s in page(planted(seeds=2).study).sections}["In short"]
    )


def test_figures_draw_what_the_tables_say():
    drawings = page(planted(seeds=2).study).drawings
    assert set(drawings) == {"curve", "depth", "layers"}
    raw, centred = drawings["curve"].figure.axes
    lines = {line.get_label(): line for line in centred.lines}
    assert lines["matrix"].get_ydata() == pytest.approx([0.25] * 3)
    assert {line.get_label() for line in raw.lines} >= {"vector", "rank 1", "rank 4", "matrix"}
    own, whole = drawings["layers"].figure.axes
    assert {line.get_label(): line.get_ydata()[0] for line in whole.lines if not line.get_label().startswith("_")} == {
        "gd": pytest.approx(0.0202),
        "gd, random weights": pytest.approx(-0.01),
        "gd, wrong labels": pytest.approx(0.01),
        "gd, other demonstrations": pytest.approx(0.012),
        "gd, another task": pytest.approx(0.005),
        "reading filler": pytest.approx(0.003),
        "labels' part": pytest.approx(0.03),
    }
    assert len(own.lines) == len(whole.lines)


def test_a_page_without_exact_cells_or_controls_is_still_a_page():
    view = planted(init="trained")
    assert page(view.study).text(full=True)
    assert "random weights" not in page(view.study).answer


def test_task_by_task_the_matrix_is_held_against_one_answer_for_all_queries():
    """On kinds reading says the same of every query, so that one answer is reading and forgetting brings all of it."""

    class Unlike(Plant):
        def _static(self, cell):
            self.base = -1.0 if cell.labels["task"] == "kinds" else 0.0
            return super()._static(cell)

    table = tables.by_task(planted(Unlike(), task=("sentiment", "kinds"), seeds=2))
    assert row(table, "sentiment, missed")[1:4] == [".56 [.56 .56]", "1.00 [1.00 1.00]", "-.44 [-.44 -.44]"]
    assert row(table, "kinds, missed")[1:4] == [".56 [.56 .56]", ".00 [.00 .00]", ".56 [.56 .56]"]
    assert row(table, "sentiment, recovered")[1:4] == [".25 [.25 .25]", ".00 [.00 .00]", ".25 [.25 .25]"]
    assert row(table, "kinds, recovered")[1:4] == [".25 [.25 .25]", "1.00 [1.00 1.00]", "-.75 [-.75 -.75]"]
    assert [line[5] for line in table.texts()] == ["below", "above", "above", "below"]
    assert {line[5] for line in tables.by_task(planted(Unlike(), task=("sentiment", "kinds"))).texts()} == {"undecided"}


def test_what_a_grid_counts_is_no_stronger_than_the_first_sentence():
    (below,), (undecided,) = found(planted(seeds=3)), found(planted())
    assert below.verdict == "one patch for all queries misses less than every null"
    assert str(below.number) == ".56 [.56 .56]"
    assert undecided.verdict == "one patch for all queries is not shown to miss less than every null"
