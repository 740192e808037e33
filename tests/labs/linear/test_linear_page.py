"""Planted results give the right sentence and table entries."""

import math

import numpy as np
import pytest
import torch
from planted_linear import SHIFTS, study

from iclgd.labs.linear import page
from iclgd.labs.linear.spec import OptimumSpec
from iclgd.results import Result
from iclgd.small.optimum import best_gd, best_gdpp
from iclgd.study import Study

T3 = 4.302652729911275  # Student's t, 97.5%, two degrees of freedom


def entry(table, row, column):
    (found,) = [line for line in table.rows if line[0] == row]
    return found[list(table.header).index(column)]


def near(number, value, spread=None, bounds=(0, math.inf)):
    """The mean of value − .01, value, value + .01, and its interval; of a cosine Wilson's, as wide as its ends have it.

    (c − m)² = half² (1 − c²) / (1 − m²) at both ends.
    """
    assert number.value == pytest.approx(value)
    if spread is None:
        assert math.isnan(number.low)
    else:
        half = T3 * spread / 3**0.5
        if bounds == (-1, 1):
            assert -1 < number.low < value < number.high < 1
            for end in (number.low, number.high):
                assert (end - value) ** 2 == pytest.approx(half**2 * (1 - end**2) / (1 - value**2))
            return
        assert number.low == pytest.approx(max(bounds[0], value - half))
        assert number.high == pytest.approx(min(bounds[1], value + half))


def test_the_answer_names_the_nearest_learner_its_interval_and_the_untrained_model():
    said = page.answer(study())
    assert said.startswith(
        "The trained layer is nearest to gd ×1, of 3 learners: squared prediction distance .1 [.07516 .1248]"
    )
    assert "cosine of sensitivities .99 [.9217 .9988] (before training .01 [-.01484 .03483])" in said
    assert "Its loss is not shown to differ from that of gd ×1 (.01 [-.01484 .03484])." in said


@pytest.mark.parametrize("seeds", [3, 5, 8])
@pytest.mark.parametrize("middle, spread", [(0.99, 0.01), (0.9, 0.1), (0.0, 0.3)])
def test_cosines_near_one_are_covered(middle, spread, seeds):
    """Student's t cut off at 1 holds 88 to 90% of those at .99 and .9."""
    share, size = (middle + 1) / 2, (1 - middle**2) / spread**2 - 1
    drawn = 2 * np.random.default_rng(0).beta(share * size, (1 - share) * size, (3000, seeds)) - 1
    found = [page.estimate(one, -1, 1) for one in drawn]
    assert np.mean([one.low <= middle <= one.high for one in found]) >= 0.93 - 0.0175


def test_a_seed_without_a_value_leaves_no_mean_and_no_interval():
    for unknown in (math.nan, math.inf):
        for bounds in ((0, math.inf), (-1, 1)):
            assert str(page.estimate([0.5, unknown, 0.6], *bounds)) == "n/a"


def test_a_learner_without_a_direction_has_no_cosine_in_the_answer():
    flat = study()
    for result in flat.results.values():
        for one in result.select(quantity="likeness", learner="gd ×1"):
            one.values[list(one.coordinates["metric"]).index("cosine")] = math.nan
    said = page.answer(flat)
    assert said.startswith("The trained layer is nearest to gd ×1, of 3 learners: squared prediction distance .1 [")
    assert "cosine" not in said
    assert "n/a" not in said


def test_a_loss_above_or_below_the_learners_is_said_only_when_the_interval_is_clear_of_zero():
    assert "Its loss is above that of gd ×1 by .11 [.08516 .1348]." in page.answer(study(losses=(0.4, 0.29, 0.35, 0.5)))
    assert "Its loss is below that of gd ×1 by .09 [.06516 .1148]." in page.answer(study(losses=(0.2, 0.29, 0.35, 0.5)))


def test_the_nearest_learner_is_found_wherever_it_stands_in_the_list():
    assert "is nearest to ridge, of 3 learners: squared prediction distance .05" in page.answer(study(spd=(0.2, 0.05)))
    assert "that of ridge" in page.answer(study(spd=(0.2, 0.05)))


def test_two_learners_that_the_interval_does_not_tell_apart_are_not_ranked():
    mixed = study()
    for key, result in mixed.results.items():
        (ridge,) = result.select(quantity="likeness", learner="ridge")
        ridge.values[3] = 0.1 + (0.05 if key == "0" else -0.02)
    assert "is not shown to be nearer to" in page.answer(mixed)


def test_one_seed_has_no_interval_and_says_so():
    said = page.answer(study(seeds="1,"))
    assert said.endswith(". 1 seed: no interval over draws.")
    assert said.startswith("The trained layer is not shown to be nearer to gd ×1 than to ")
    assert "[" not in said
    assert "Its loss minus that of gd ×1 is .01" in said
    near(entry(page.learners_table(study(seeds="1,")), "trained", "loss"), 0.3)


def test_the_table_of_learners_holds_losses_cosines_and_distances():
    table = page.learners_table(study())
    assert [row[0] for row in table.rows] == ["trained", "gd ×1", "ridge", "zero", "null: untrained"]
    near(entry(table, "trained", "loss"), 0.3, 0.01)
    near(entry(table, "gd ×1", "loss"), 0.29, 0.0)
    near(entry(table, "zero", "loss"), 0.5, 0.0)
    near(entry(table, "gd ×1", "cosine"), 0.99, 0.01, (-1, 1))
    near(entry(table, "ridge", "cosine"), 0.89, 0.01, (-1, 1))
    near(entry(table, "gd ×1", "untrained"), 0.01, 0.01, (-1, 1))
    near(entry(table, "ridge", "SPD"), 0.5, 0.01)
    near(entry(table, "null: untrained", "loss"), 0.9, 0.01)


def test_the_other_measures_and_the_exact_risk_stand_in_their_columns():
    table = page.more_table(study())
    near(entry(table, "gd ×1", "exact risk"), 0.2875)
    assert entry(table, "ridge", "exact risk") == ""
    for column, value in (("|Δŷ|", 3.0), ("|Δ sensitivity|", 2.0), ("ILWD", 4.0)):
        near(entry(table, "ridge", column), value, 0.0)


def test_the_table_of_weights():
    rows = page.weights_table(study()).rows
    near(rows[0][1], 0.6, 0.01, (-math.inf, math.inf))
    near(rows[1][1], 0.61)
    assert "gradient step" in rows[2][0]
    near(rows[2][1], 0.05, 0.01)
    assert "preconditioned step" in rows[3][0]
    near(rows[3][1], 0.04, 0.01)
    near(rows[4][1], 0.295, 0.01)


def test_the_table_of_shifts_has_a_row_for_each_value_and_a_column_for_each_learner():
    table = page.shifts_table(study())
    assert list(table.header) == ["shift", "", "trained", "gd ×1", "ridge", "zero"]
    assert [tuple(row[:2]) for row in table.rows] == [(k, str(v)) for k, values in SHIFTS.items() for v in values]
    near(table.rows[4][2], 3.0, 0.01)
    near(table.rows[5][2], 4.0, 0.0)
    assert [cell.value for cell in table.rows[7][3:]] == [15.0, 25.0, 35.0]


def test_the_nearest_learners_of_each_layer_come_first():
    rows = page.layers_table(study()).rows
    assert [row[:2] for row in rows] == [["1", "b"], ["1", "d"], ["1", "c"], ["2", "a"], ["2", "b"], ["2", "d"]]
    near(rows[0][2], 1.0, 0.01)
    near(rows[3][2], 0.5, 0.01)


def test_the_page_says_what_was_run_and_has_its_sections():
    shown = page.page(study())
    assert shown.subtitle == "linear · 2 → 1 · k = 4 · 1 layer of linear attention · 3 seeds × 4000 steps of 64"
    titles = ["Learners", "Move a demonstration", "More measures", "Training", "Weights"]
    titles += ["Out of distribution", "After each layer"]
    assert [section.title for section in shown.sections] == titles
    assert list(shown.drawings) == ["training", "weights", "shifts", "learners"]
    assert "no interval: 1 seed" in page.page(study(seeds="1,")).sections[0].text


def test_the_terminal_shows_learners_weights_and_layers_unasked():
    brief = [section.title for section in page.page(study()).sections if section.brief]
    assert brief == ["Learners", "Weights", "After each layer"]


# optimum


def test_the_page_of_optimum_shows_every_risk_with_its_rates_and_curvatures():
    from iclgd.labs.linear import optimum

    spec = OptimumSpec.of({"task": "gaussian", "dx": 3, "k": 6, "noise": 0.5, "steps": 2, "sample": 50})
    rows = (
        ("zero", 1.5, [], []),
        ("gd ×1", 0.8, [0.6], []),
        ("preconditioned gd ×1", 0.7, [], []),
        ("gd++ ×2", 0.3, [0.5, 2], [0.25]),
    )
    arrays = [one for name, risk, rates, bends in rows for one in optimum._row(name, risk, rates, bends)]
    found = optimum.page(Study("linear optimum", spec, spec.cells(), ["a"], {"a": Result({}, arrays)}))
    assert found.table().texts() == [
        ["zero", "1.5", "", ""],
        ["gd ×1", ".8", ".6", ""],
        ["preconditioned gd ×1", ".7", "", ""],
        ["gd++ ×2", ".3", ".5 2", ".25"],
    ]
    assert "step has a risk of .7 and the best plain gradient step .8, where the zero predictor has 1.5" in found.answer
    assert found.subtitle.startswith("gaussian · 3 inputs · 6 demonstrations · noise 0.5")


def test_optimum_runs_closed_forms_and_tuned_learners():
    from iclgd.labs.linear import optimum
    from iclgd.tools import Tools

    spec = OptimumSpec.of({"task": "gaussian", "dx": 3, "k": 6, "noise": 0.5, "steps": 2, "sample": 400})
    told: list[tuple[str, int]] = []
    result = optimum.run(spec.cells()[0], Tools(progress=lambda *what: told.append(what)))
    assert told == [("gd ×2", 0), ("gd++ ×2", 0)]
    risks = {one.labels["learner"]: float(one.values) for one in result.select(quantity="risk")}
    rate = 6 / (6 + 3 + 1 + 0.25)  # Mahankali 2023
    assert risks["zero"] == pytest.approx(1.5)
    assert risks["gd ×1"] == pytest.approx(1.5 * (1 - rate))
    assert risks["preconditioned gd ×1"] == pytest.approx(1.5 * (1 - rate))
    (found,) = result.select(quantity="rate", learner="gd ×1")
    assert found.values == pytest.approx([rate])
    assert risks["gd++ ×2 untied 1"] <= risks["gd++ ×2"] < risks["gd ×2"] < risks["gd ×1"]
    drawn = spec.family.draw(400, torch.Generator().manual_seed(0), dtype=torch.float64)  # the same in every run
    assert risks["gd ×2"] == pytest.approx(best_gd(spec.family, drawn, 2)[1])
    tied = best_gdpp(spec.family, drawn, 2)[:2]  # one rate and one curvature for all steps
    for quantity, values in zip(("rate", "curvature"), tied, strict=True):
        (found,) = result.select(quantity=quantity, learner="gd++ ×2")
        assert found.values == pytest.approx([float(values[0])])
    (bends,) = result.select(quantity="curvature", learner="gd++ ×2 untied 1")
    (rates,) = result.select(quantity="rate", learner="gd++ ×2 untied 1")
    assert (len(rates.values), len(bends.values)) == (2, 1)


def test_what_a_grid_counts_is_what_the_answer_says_of_the_nearest():
    (found,) = page.found(study())
    assert found.verdict == "the trained layer is nearest to gd ×1, of 3 learners"
    assert str(found.number) == ".1 [.07516 .1248]"
    (alone,) = page.found(study(seeds="1,"))
    assert alone.verdict.startswith("the trained layer is not shown to be nearer to gd ×1 than to ")
