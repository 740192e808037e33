"""Every sentence of the page of `implicit`, on results that were made up."""

from dataclasses import replace

import numpy as np
import pytest
from planted_implicit import Plant, planted

from iclgd.labs.implicit import tables
from iclgd.labs.implicit.against import Against
from iclgd.labs.implicit.answer import answer, how_alike, identity, static, trained
from iclgd.labs.implicit.beside import NULLS, Beside
from iclgd.labs.implicit.page import page
from iclgd.metrics.estimates import estimate
from iclgd.metrics.margins import effect, missed, recovered


def row(table, first: str) -> list[str]:
    (found,) = [line for line in table.texts() if line[0].strip() == first]
    return found


# what is measured


def test_recovery_is_one_for_the_effect_itself_and_scales_with_it():
    random = np.random.default_rng(0)
    wanted = random.standard_normal((9, 3))
    for part in (1.0, 0.3, -2.0):
        assert recovered(part * wanted, wanted, centred=False).mean() == pytest.approx(part)
        assert recovered(part * wanted + 5, wanted, centred=True).mean() == pytest.approx(part)


def test_a_shift_that_all_queries_share_counts_raw_and_not_after_centring():
    random = np.random.default_rng(0)
    wanted = 3 + random.standard_normal((40, 1)) * [1, -1]
    shift = np.broadcast_to(wanted.mean(0), wanted.shape)
    assert recovered(shift, wanted, centred=False).mean() > 0.8
    assert recovered(shift, wanted, centred=True).mean() == pytest.approx(0)


def test_one_answer_for_all_queries_recovers_what_the_base_says_of_them_and_is_not_told_by_recovery():
    """(Var z − Cov(z, one)) / Var(one − z), over queries, of margins of two labels; a distance tells it apart."""
    random = np.random.default_rng(2)
    z = random.standard_normal(50)
    one = 0.3 * z + 0.5 * random.standard_normal(50)
    base, icl, alike = (np.stack([-x / 2, x / 2], -1) for x in (z, one, np.full(50, 0.7)))
    found = effect(alike, base), effect(icl, base)
    expected = (np.var(z) - np.cov(z, one, ddof=0)[0, 1]) / np.var(one - z)
    assert expected > 0.5
    assert recovered(*found, centred=True).mean() == pytest.approx(expected)
    assert missed(*found, centred=True).mean() == pytest.approx(np.var(one) / np.var(one - z))


def test_the_values_of_queries_spread_as_the_ratio_does():
    """Their standard error is that of the ratio over fresh queries, which one value each of part and whole is not."""
    random = np.random.default_rng(1)

    def draw() -> np.ndarray:
        wanted = random.standard_normal((60, 1)) * (1 + random.random((60, 1))) * [1, -1]
        return recovered(0.5 * wanted + 0.4 * random.standard_normal((60, 2)), wanted, centred=False)

    found = [draw() for _ in range(400)]
    spread = np.std([one.mean() for one in found])
    said = np.mean([one.std(ddof=1) / np.sqrt(60) for one in found])
    assert said == pytest.approx(spread, rel=0.15)


def test_an_effect_of_nothing_has_no_share():
    assert np.isnan(recovered(np.ones((4, 2)), np.zeros((4, 2)), centred=False)).all()


def test_margins_do_not_know_what_all_labels_have_in_common():
    base = np.array([[0.0, 1.0]])
    assert effect(base + 7, base).tolist() == [[0.0, 0.0]]
    assert effect(base + np.array([1.0, 3.0]), base).tolist() == [[-1.0, 1.0]]


# for one query


def test_the_last_sentence_says_that_the_identity_holds_and_for_untrained_weights_too():
    assert identity(planted()) == (
        "For one query a patch is exact (largest residual of a block 1e-15 in float64, 1e-15 with random weights); "
        "another query's patch leaves .75 of the gap in the logits."
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
    assert identity(view).endswith("another query's patch leaves .35 of the gap in the logits.")


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
        "One patch for all queries, fitted on 16 others, misses .56 [.56 .56] of what reading does to the label "
        "margins beyond a shift that queries share (0 is reading, 1 is doing nothing), less than every null. It "
        "recovers .25 [.25 .25], where one answer for all queries recovers .00 [.00 .00]."
    )


def test_a_null_that_is_as_near_is_named_and_nothing_is_said_to_be_less():
    plant = Plant()
    plant.nulls["wrong labels"] = (0.7, 0.25)
    plant.nulls["other task"] = (0.7, 0.3)
    said = static(planted(plant, seeds=3))
    assert ", not shown to be less than the .49 [.49 .49] of one fitted behind another task's prompt. " in said


def test_one_answer_for_all_queries_is_a_null_and_a_row():
    """Zero-shot leans −.5 by the query and reading +.5: who says the same of all has gone half of that way."""
    plant = Plant()
    plant.base = -0.5
    view = planted(plant, seeds=3)
    assert "not shown to be less than the .25 [.25 .25] of one answer for all queries. It recovers .25" in static(view)
    assert static(view).endswith("where one answer for all queries recovers .50 [.50 .50].")
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
    assert ", not shown to be less than the .81 [.81 .81] of one fitted behind wrong labels. " in static(planted())
    assert " makes a change: cosine .020" in trained(planted())


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


# training


def test_the_second_sentence_compares_the_two_changes_with_the_highest_null():
    assert trained(planted(seeds=2)) == (
        "Finetuning the same matrices at 0.01 makes another change: cosine .020 [.020 .020], more than every null (the "
        "highest, trained on other demonstrations: .012 [.012 .012]); it misses .25 [.25 .25]."
    )


@pytest.mark.parametrize("null", ["wrong", "shuffled", "other demos", "other task", "reading filler", "noise"])
def test_a_null_that_is_as_alike_is_named_whichever_it_is(null):
    plant = Plant(cosine=0.8)
    plant.trained[null] = 0.9
    said = trained(planted(plant, seeds=2))
    assert f"not shown to be more than the .900 [.900 .900] of one null, {NULLS[null]};" in said
    assert " makes a change: cosine .808" in said
    assert " makes much the same change: cosine .808" in trained(planted(Plant(cosine=0.8), seeds=2))


def test_weights_that_were_not_trained_are_a_null_like_any_other():
    plant = Plant()
    plant.untrained = 0.03
    said = trained(planted(plant, seeds=2))
    assert "not shown to be more than the .030 [.030 .030] of one null, random weights;" in said


def test_of_several_rates_the_most_alike_is_taken_and_that_is_said():
    said = trained(planted(rates=(0.01, 0.5, 0.1)))
    assert said.startswith("Finetuning the same matrices at 0.5 (of 3 rates the most alike) makes a change")


class Diverges(Plant):
    """Training at some rates, in some draws."""

    def __init__(self, *where: tuple[float, int]):
        super().__init__()
        self.where = where

    def _trained(self, cell):
        self.diverged = (cell.labels["rate"], cell.labels["seed"]) in self.where
        return super()._trained(cell)


def test_a_rate_at_which_a_draw_diverged_is_not_chosen_where_there_is_another():
    """Cosines grow with the rate: .5 would be the most alike."""
    view = planted(Diverges((0.5, 1)), rates=(0.01, 0.5, 0.1), seeds=3)
    assert view.most_alike("trained") == Beside(view).rate == 0.1
    said = trained(view)
    assert said.startswith(
        "Finetuning the same matrices at 0.1 (of 3 rates the most alike where no draw diverged) makes"
    )
    assert page(view.study).drawings["layers"].figure.axes[0].get_ylabel() == "cosine with gd 0.1"


def test_where_draws_diverged_at_every_rate_the_answer_says_how_many_at_the_one_it_speaks_of():
    view = planted(Diverges((0.01, 0), (0.5, 1), (0.5, 2)), rates=(0.01, 0.5), seeds=4)
    assert " at 0.5 (of 2 rates the most alike; diverged in 2 of 4 draws, which are left out) makes " in trained(view)
    view = planted(Diverges((0.01, 0)), seeds=3)
    assert " at 0.01 (diverged in 1 of 3 draws, which are left out) makes " in trained(view)
    assert "calibration queries (1 of 3 draws, where it diverged at every rate, are left out): " in Against(view).said()


def test_a_null_of_which_one_draw_is_left_has_no_p_value_and_no_place_among_the_others():
    class Lone(Plant):
        def __call__(self, cell):
            found = super().__call__(cell)
            rest = cell.labels.get("seed") != 0
            kept = [one for one in found.arrays if not (rest and one.labels.get("null") == "other task")]
            return type(found)(found.facts, [_moved(one, cell) if "null" in one.labels else one for one in kept])

    def _moved(one, cell):
        if one.labels["quantity"] not in ("cosine", "contrast"):
            return one
        noise = np.random.default_rng([cell.labels["seed"], len(one.values)]).random(one.values.shape)
        return replace(one, values=one.values + 1e-3 * noise)

    found = Beside(planted(Lone(), seeds=3, init="trained"))
    lone = found.differences["cosine", "own", NULLS["other task"]]
    assert (lone.estimate.kind, lone.verdict) == ("queries only", "undecided")
    assert np.isnan([lone.p, lone.corrected]).all()
    assert row(found.table(), f"own patches − {NULLS['other task']}")[2:] == ["n/a", "undecided"]
    known = [one for one in found.differences.values() if one.p == one.p]
    assert len(known) == len(found.differences) - 2  # own patches, and one matrix
    least = min(known, key=lambda one: one.p)
    assert least.p > 0
    assert least.corrected == pytest.approx(len(known) * least.p)


def test_training_that_diverged_everywhere_is_said():
    plant = Plant()
    plant.diverged = True
    view = planted(plant)
    assert trained(view) == "Finetuning the same matrices diverged at every rate."
    assert row(tables.steps(view), "gd 0.01, trained")[1:] == ["n/a", "n/a", "n/a", "2", "1"]
    assert [line[1:] for line in tables.alike(view).texts()] == [["n/a"] * 4] * 2
    assert tables.overlaps(view).rows == Beside(view).table().rows == []
    assert row(tables.short(view), "gd 0.01, diverged in 1 of 1")[1:] == ["n/a"] * 5
    assert page(view.study).html()


@pytest.mark.parametrize(
    "low, high, says",
    [
        (0.8, 0.9, "much the same change"),
        (0.3, 0.9, "a related change"),
        (-0.1, 0.1, "another change"),
        (0.1, 0.3, "a change"),
    ],
)
def test_words_for_a_cosine_are_no_surer_than_its_interval(low, high, says):
    found = estimate(np.random.default_rng(0).random((3, 4)))
    assert how_alike(replace(found, low=low, high=high, kind="draws"), True) == says
    assert how_alike(replace(found, low=low, high=high, kind="queries only"), True) == "a change"
    alike = {"much the same change", "a related change"}
    assert how_alike(replace(found, low=low, high=high, kind="draws"), False) == ("a change" if says in alike else says)


def test_likeness_stands_above_what_every_null_gives():
    lines = [[cell.strip() for cell in line] for line in tables.alike(planted(seeds=2)).texts()]
    first, second = (
        names.index(f"gd 0.01, {init}") for names in [[x[0] for x in lines]] for init in ("trained", "random")
    )
    assert lines[first][1:] == [".020 [.020 .020]"] * 2 + [".030 [.030 .030]"] * 2
    assert {line[0]: line[1] for line in lines[first + 1 : second]} == {
        title: f"{number} [{number} {number}]"
        for title, number in zip(NULLS.values(), (".010", ".011", ".012", ".005", ".004", ".003", ".000"), strict=True)
    }
    (others,) = [line for line in lines[first:second] if line[0] == NULLS["other demos"]]
    assert others[3:] == [".013 [.013 .013]"] * 2
    assert {line[0] for line in lines[first:second] if line[4]} == {
        "gd 0.01, trained",
        NULLS["other demos"],
        NULLS["noise"],
    }


def test_differences_to_nulls_are_of_the_most_alike_rate_and_corrected_together():
    found = Beside(planted(seeds=2, rates=(0.01, 0.5)))
    assert found.rate == 0.5
    assert len(found.differences) == 2 * (7 + 1) + 2 * (2 + 1)
    one = found.differences["cosine", "matrix", NULLS["other demos"]]
    assert one.estimate.mean == pytest.approx(0.02 * 1.5 - 0.012)
    assert one.corrected >= one.p
    assert found.differences["contrast", "own", NULLS["other demos"]].estimate.mean == pytest.approx(0.03 - 0.013)
    assert found.differences["cosine", "own", "random weights"].estimate.mean == pytest.approx(0.03 + 0.01)
    assert [line[0] for line in found.table().texts()][:2] == [
        "one matrix − trained on wrong labels", "one matrix − trained on shuffled labels",
    ]  # fmt: skip


def test_one_draw_is_above_no_null():
    found = Beside(planted())
    assert {one.verdict for one in found.differences.values()} == {"undecided"}
    assert found.said().startswith("not shown to be more than the .012 of one null, trained on other demonstrations")


def test_subspaces_stand_beside_chance_and_nulls_beside_the_largest_rank():
    lines = tables.overlaps(planted()).texts()
    names = [line[0].strip() for line in lines]
    for title, own in (("one matrix", ".200"), ("own patches", ".400"), ("labels' part", ".500")):
        for rank in (1, 4):
            assert row(tables.overlaps(planted()), f"{title}, rank {rank}, gd 0.01, trained")[1:] == [own, ".010"] * 2
    first = names.index("one matrix, rank 4, gd 0.01, trained")
    assert names[first + 1 : first + 8] == list(NULLS.values())
    assert [line[1] for line in lines[first + 1 : first + 8]] == [f".{100 + x}" for x in (10, 11, 12, 5, 4, 3, 0)]
    labels = names.index("labels' part, rank 4, gd 0.01, trained")
    assert lines[labels + 1] == [f"  {NULLS['other demos']}", ".450", ".010", ".450", ".010"]
    assert names.count(NULLS["noise"]) == 2  # of one rank of the first weights


def test_subspaces_have_intervals_over_draws():
    class Spread(Plant):
        def _matrices(self, cell):
            seed = int(cell.labels["seed"])
            return [
                replace(one, values=one.values + 0.01 * seed) if one.labels["quantity"] == "overlap" else one
                for one in super()._matrices(cell)
            ]

    found = row(tables.overlaps(planted(Spread(), seeds=3)), "one matrix, rank 1, gd 0.01, trained")[1]
    half = 4.303 * 0.01 / 3**0.5  # Student's t, two degrees of freedom
    assert found == f".210 [.{round(1000 * (0.21 - half))} .{round(1000 * (0.21 + half))}]"


def test_sizes_and_the_best_step_are_medians_over_layers():
    assert row(tables.steps(planted()), "gd 0.01, random")[1:] == [".3", ".05", "4", "2", "0"]


# the page


def test_the_page_says_what_was_run_what_was_found_and_what_the_identity_does_not_say():
    view = planted()
    shown = page(view.study)
    assert shown.subtitle == "smollm2-135m · sentiment · k = 8 · 1 seed × 12 held-out queries · float32"
    assert shown.answer == answer(view) == f"{static(view)} {trained(view)} {Against(view).said()} {identity(view)}"
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
