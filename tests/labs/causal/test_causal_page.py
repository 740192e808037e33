"""What the page of `causal` says of studies whose numbers are known."""

import numpy as np
import pytest
from planted_causal import ANSWERS, LAYERS, Plant, planted

from iclgd.labs.causal import tables
from iclgd.labs.causal.answer import _alone, answer, found, taken_out, trained
from iclgd.labs.causal.figures import draw_layers
from iclgd.labs.causal.ground import SWAPS
from iclgd.labs.causal.page import page
from iclgd.labs.causal.view import View


def rows(table) -> dict[str, list[str]]:
    return {str(row[0]).strip(): [str(entry) for entry in row[1:]] for row in table.rows}


def test_shares_are_those_that_were_planted():
    view = planted(seeds=3)
    found = view.layer_shares("trained", 0.01, "icl", "zero-shot", False, site="attention")
    assert found.shape == (1, 3, len(ANSWERS), LAYERS)
    np.testing.assert_allclose(found.mean((0, 1, 2)), (0.1, 0.1, 0.5, 0.1))
    whole = view.layer_shares("trained", 0.01, "gd", "zero-shot", False, site="attention", layers="all")
    np.testing.assert_allclose(whole.mean(), 1)
    np.testing.assert_allclose(
        view.layer_shares("trained", 0.01, "gd", "zero-shot", False, "icl", site="attention", layers="all").mean(),
        0.5,
        atol=0.02,
    )  # training goes half of reading's way


def test_layers_have_their_foremost_their_sum_and_where_half_of_it_is():
    found = rows(tables.layers(planted(seeds=3)))
    assert found["icl into zero-shot"][0] == "2"
    assert found["icl into zero-shot"][1].startswith(".50")
    assert found["icl into zero-shot"][2].startswith(".80")
    assert found["icl into zero-shot"][3].startswith("1.00")
    assert found["icl into zero-shot"][4] == "2 of 3"
    assert found["another query's update"][3].startswith(".60")
    assert found["random, as long"][4] == "n/a"
    assert set(found) >= {"gd into icl 0.01", "icl into gd 0.01", "zero-shot into icl", "icl into zero-shot, random"}


def test_swaps_without_training_are_not_repeated_for_every_rate():
    names = [str(row[0]) for row in tables.layers(planted(rates="0.01,0.1", init="trained")).rows]
    assert names.count("icl into zero-shot") == names.count("zero-shot into icl") == 1
    assert {"gd into zero-shot 0.01", "gd into zero-shot 0.1"} <= set(names)


def test_training_is_measured_along_reading_and_reading_along_training():
    found = rows(tables.training(planted(seeds=3)))
    assert found["gd's layers, icl's effect, 0.01"][0].startswith(".5")
    assert found["icl's layers, gd's effect, 0.01"][0].startswith("2.0")


def test_nulls_stand_below_training_along_reading_and_reading_along_training():
    lines = [(str(row[0]), str(row[1])[:3]) for row in tables.training(planted(seeds=3, init="trained")).rows]
    assert lines == [
        ("gd's layers, icl's effect, 0.01", ".50"), ("  another query's update", ".30"), ("  random, as long", ".00"),
        ("icl's layers, gd's effect, 0.01", "2.0"), ("  another query's update", "1.2"), ("  random, as long", ".00"),
    ]  # fmt: skip


def test_what_training_s_attention_carries_is_held_against_its_nearest_null():
    beside_untrained, alone = (trained(planted(seeds=3, init=init)) for init in ("trained,random", "trained"))
    assert "Training's attention at 0.01 carries .50" in alone
    assert "of reading's effect, more than the .30" in alone
    assert "of the nearest null, another query's update. What single heads carry in training" in alone
    assert "effect, not shown to be more than the .50" in beside_untrained  # planted alike
    assert "of the nearest null, random weights. What single heads carry in training" in beside_untrained
    assert "effect, not shown to be more than" in trained(planted(seeds=1, init="trained"))
    assert "What is left of reading's effect without the foremost 10 heads is " in answer(planted(seeds=3))


def test_how_far_random_sets_are_from_independent_is_said():
    plant = Plant()
    plant.sets = [[[0, 1], [1, 0]], [[0, 1], [1, 2]]]  # in turn: of five, three and two
    (section,) = [one for one in page(planted(plant, seeds=2).study).sections if one.title == "Heads taken out"]
    common = (4 * 1 + 6 * 0.5) / 10
    assert (
        f"of 5 sets 2 to 2 are different ones, and two of them have .{100 * common:.0f} of their heads" in section.text
    )


def test_what_is_left_is_of_the_effect_and_beside_random_sets():
    view = planted(seeds=3)
    np.testing.assert_allclose(view.left("function vector").mean(), 0.2)
    np.testing.assert_allclose(view.random_left("induction").mean((1, 2, 3)), [0.7, 0.75, 0.8, 0.85, 0.9])
    found = rows(tables.ablated(view))
    assert found["10 by function vector"][1].startswith(".20")
    assert found["10 by function vector"][2] == ".80 [.70 .90]"
    assert found["10 by function vector"][3].startswith(".60")
    assert found["10 by function vector"][4] == ".00"
    assert found["10 by dual step"][4] == "1.00"
    assert found["10 by induction"][4] == ".60"


def test_heads_are_listed_by_what_they_carry_with_rank_correlations():
    table = tables.heads(planted(seeds=2))
    assert str(table.rows[0][0]) == "layer 3, head 2"
    assert [str(entry) for entry in table.rows[0][1:]] == [".110", ".110", "-.110", ".110"]
    assert len(table.rows) == 11
    assert [str(entry)[:5] for entry in table.rows[-1][2:]] == ["1.00 ", "-1.00", "1.00 "]


def test_the_answer_says_what_carries_it_and_what_is_left():
    found = answer(planted(Plant(layers=(0.1, 0.1, 0.6, 0.1)), seeds=3))
    assert found.startswith("One layer carries half or more of what reading does to the label margins")
    assert "attention of layer 2 of 3" in found
    assert "heads is less than without random ones (by function vector .20" in found
    assert ", random .80), not shown to be less than without random ones (by induction " in found
    assert "more than without random ones (by dual step " in found
    none = answer(planted(Plant(layers=(0.1, 0.2, 0.3, 0.1)), seeds=3))
    assert none.startswith("No single layer carries half of what reading does")


def drawn(*layers: tuple[float, float]) -> np.ndarray:
    """Shares of layers by their mean and how far two of three draws are from it; queries are all alike."""
    means, apart = np.array(layers).T
    return np.repeat((means + np.outer([-1, 0, 1], apart))[None, :, None], 4, axis=2)


@pytest.mark.parametrize(
    "layers, says",
    [
        ([(0.6, 0.01), (0.1, 0.01)], "One layer carries half or more of"),
        ([(0.3, 0.01), (0.1, 0.01)], "No single layer carries half of"),
        ([(0.6, 0.1), (0.1, 0.01)], "No single layer is shown to carry half of"),
        ([(0.3, 0.01), (0.1, 0.3)], "No single layer is shown to carry half of"),  # the second may well carry it
    ],
)
def test_whether_one_layer_carries_half_is_no_surer_than_the_interval_of_any(layers, says):
    assert _alone(drawn(*layers)) == says


def test_the_foremost_of_several_layers_that_might_carry_half_is_corrected_for_all_of_them():
    """Student's t with two degrees of freedom, p = .04; layers that surely carry less leave it as it is (Holm)."""
    first, less, might = (0.5 + 4.85 * 0.02 / 3**0.5, 0.02), (0.1, 0.02), (0.45, 0.2)
    assert _alone(drawn(first)) == _alone(drawn(first, less, less)) == "One layer carries half or more of"
    assert _alone(drawn(first, less, might)) == "No single layer is shown to carry half of"


def test_a_half_that_the_interval_straddles_or_that_one_draw_has_is_not_decided():
    for view in (planted(seeds=3), planted(Plant(layers=(0.1, 0.1, 0.6, 0.1)), seeds=1)):
        assert answer(view).startswith("No single layer is shown to carry half of what reading does")


def test_one_seed_shows_nothing_to_be_less():
    said = taken_out(planted(seeds=1))
    assert said.count("not shown to be less than") == 1  # of all three scores
    assert said.count(", random ") == 3
    assert answer(planted(seeds=1)).endswith(". One draw: intervals are over queries alone.")
    assert "One draw" not in answer(planted(seeds=2))


def test_training_that_diverged_everywhere_is_said():
    plant = Plant()
    plant.diverged = True
    view = planted(plant)
    assert "Finetuning diverged at every rate." in answer(view)
    assert rows(tables.layers(view))["gd into zero-shot 0.01"] == ["n/a"] * 5
    assert rows(tables.training(view))["gd's layers, icl's effect, 0.01"] == ["n/a"] * 4
    draw_layers(view)


def test_the_page_has_every_section_and_says_what_was_run():
    shown = page(planted(seeds=2, task="sentiment,kinds").study)
    assert shown.subtitle == "smollm2-135m · sentiment, kinds · k = 8 · 2 seeds × 12 queries · float32"
    titles = [section.title for section in shown.sections]
    assert titles == [
        "Layers exchanged", "By layer", "Training and reading", "Heads taken out", "Heads put in",
        "Heads of reading and of training", "Training's heads put in", "Heads exchanged",
    ]  # fmt: skip
    assert "of the 10 foremost heads of either, the share that both have (by chance .83)" in shown.sections[-3].text


def test_the_figure_draws_every_swap_and_the_nulls():
    made = draw_layers(planted(seeds=2))
    assert [panel.get_title("left") for panel in made.axes[:5]] == [f"{a} into {b}" for a, b in SWAPS]
    lines = {line.get_label(): line.get_ydata() for panel in made.axes[:5] for line in panel.get_lines()}
    np.testing.assert_allclose(lines["icl into zero-shot"], (0.1, 0.1, 0.5, 0.1))
    np.testing.assert_allclose(lines["icl into zero-shot, other query"], (0.06, 0.06, 0.3, 0.06))
    np.testing.assert_allclose(lines["icl into zero-shot, random"], 0, atol=1e-12)
    assert {f"{a} into {b}" for a, b in SWAPS} <= set(lines)
    first = ["icl into zero-shot", "icl into zero-shot, other query", "icl into zero-shot, random"]
    assert [text.get_text() for text in made.legends[0].get_texts()] == first  # the others have titles


def test_the_figure_of_two_layers_has_no_halves_of_one():
    made = draw_layers(planted(Plant(layers=(0.1, 0.5)), seeds=2, init="trained"))
    assert made.axes[0].get_lines()[0].get_xdata().tolist() == [0, 1]
    assert all(float(tick).is_integer() for panel in made.axes[:5] for tick in panel.get_xticks())


def test_a_model_whose_values_are_hidden_has_two_scores():
    class Hidden(Plant):
        def __call__(self, cell):
            found = super().__call__(cell)
            kept = [one for one in found.arrays if one.labels.get("score") != "dual step"]
            return type(found)(found.facts, kept)

    view: View = planted(Hidden(), seeds=2)
    assert view.known_scores() == ["function vector", "induction"]
    assert "dual step" not in answer(view)
    assert len(tables.ablated(view).rows) == 3


class Untrained(Plant):
    """Of weights that were never trained the last layer carries nine tenths."""

    def __call__(self, cell):
        self.layers = (*self.layers[:-1], 0.1 if cell.labels["init"] == "trained" else 0.9)
        return super().__call__(cell)


@pytest.mark.parametrize("layers", [(0.1, 0.1, 0.6, 0.1), (0.1, 0.2, 0.3, 0.1)])
def test_what_a_grid_counts_is_what_the_answer_says_of_single_layers(layers):
    view = planted(Untrained(layers=layers), seeds=3)
    (one,) = found(view)
    assert f"chosen after the fact, carries {one.number}. All layers" in answer(view)
    assert answer(view).lower().startswith(one.verdict.removesuffix(" reading's effect").lower())
    assert one.number.value == pytest.approx(max(layers))
    assert "chosen after the fact" in answer(view)
    assert "chosen after the fact" in one.what
