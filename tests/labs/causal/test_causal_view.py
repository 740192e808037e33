"""Arrays of `causal` found by their labels: values that differ in every place, bounds just reached, what is lost."""

from dataclasses import replace

import numpy as np
import pytest
from planted_causal import HEADS, LAYERS, QUERIES, Plant, margins, planted

from iclgd.labs.causal import charts, tables
from iclgd.labs.causal.answer import answer, carried, reading, taken_out
from iclgd.labs.causal.figures import draw_layers
from iclgd.labs.causal.heads import Heads
from iclgd.labs.causal.page import page
from iclgd.labs.causal.tables import foremost, halfway
from iclgd.labs.causal.view import CORRELATION, mean


class Without(Plant):
    """Some arrays of the second draw are lost."""

    def __init__(self, part: str, **labels):
        super().__init__()
        self.part, self.lost = part, labels

    def __call__(self, cell):
        found = super().__call__(cell)
        if (cell.labels["seed"], cell.labels["part"]) != (1, self.part):
            return found
        return type(found)(found.facts, [one for one in found.arrays if not self._is_lost(one.labels)])

    def _is_lost(self, labels):
        return all(labels.get(name) == value for name, value in self.lost.items())


MEASURES = {
    "layers": lambda view: view.layer_shares("trained", 0.01, "icl", "zero-shot", False, site="attention"),
    "along": lambda view: view.layer_shares(
        "trained", 0.01, "gd", "zero-shot", False, "icl", site="attention", layers="all"
    ),
    "rank": lambda view: view.rank_likeness("induction"),
    "left": lambda view: view.left("induction"),
    "right": lambda view: view.right("induction"),
    "correlation": lambda view: Heads(view).correlation(0.01),
    "common": lambda view: Heads(view).common(0.01),
    "together": lambda view: Heads(view).together(0.01),
}
PLAIN = {"quantity": "scores", "score": None, "source": None}


@pytest.mark.parametrize(
    "part, lost, empty",
    [
        ("swaps", {**PLAIN, "run": "zero-shot"}, {"layers", "along", "correlation", "common", "together"}),
        ("swaps", {**PLAIN, "run": "icl"}, {"layers", "along"}),
        ("swaps", {**PLAIN, "run": "gd"}, {"correlation", "common", "together"}),
        ("swaps", {"source": "icl", "into": "zero-shot"}, {"layers"}),
        ("swaps", {"source": "gd", "site": "attention"}, {"along"}),
        ("swaps", {"site": "heads"}, {"correlation", "common", "together"}),
        ("heads", {"by": "head"}, {"rank", "correlation", "common"}),
        ("heads", {**PLAIN, "run": "icl"}, {"rank", "left", "correlation", "common"}),
        ("heads", {**PLAIN, "run": "zero-shot"}, {"rank", "left", "correlation", "common"}),
        ("heads", {"quantity": "head score"}, {"rank"}),
        ("heads", {"score": "induction", "run": "zero-shot"}, {"left"}),
        ("heads", {"score": "induction", "run": "icl"}, {"left", "right"}),
        ("heads", {"quantity": "answers"}, {"right"}),
    ],
)
def test_a_draw_of_which_an_array_is_lost_has_no_value_and_the_other_keeps_its_own(part, lost, empty):
    view = planted(Without(part, **lost), seeds=2, init="trained")
    for name, measure in MEASURES.items():
        values = measure(view)
        assert np.isfinite(values[0, 0]).all(), name
        assert np.isnan(values[0, 1]).all() == (name in empty), name


def test_a_table_of_heads_is_of_the_draws_that_have_them():
    lost = planted(Without("heads", by="head"), seeds=2, init="trained")
    assert [str(entry) for entry in tables.heads(lost).rows[0][:2]] == ["layer 3, head 2", ".110"]
    assert len(Heads(lost).listed().rows) == 10
    none = planted(Without("heads", by="head"), seeds=(1,), init="trained")
    assert tables.heads(none).rows == Heads(none).listed().rows == []


class Different(Plant):
    """Without the induction heads the two labels change their places."""

    def _heads(self, cell, seed):
        for one in super()._heads(cell, seed):
            if one.labels.get("run") == "icl" and one.labels.get("score") == "induction":
                one = replace(one, values=one.values[..., ::-1] if "draw" not in one.labels else one.values)
            yield one


def test_accuracy_is_that_of_the_answers_behind_the_demonstrations_without_these_heads():
    """Margins are above nothing for every query, so that class 1 is answered to all, and half of them are it."""
    found = {str(row[0]): str(row[1]) for row in tables.ablated(planted(Different(), seeds=2)).rows}
    assert found["no head"].startswith(".50 [")
    view = planted(seeds=2)
    np.testing.assert_array_equal(view.right()[0, 0], np.arange(QUERIES) % 2)
    np.testing.assert_array_equal(planted(Different(), seeds=2).right("induction")[0, 0], 1 - np.arange(QUERIES) % 2)


def test_a_random_set_that_leaves_just_as_much_counts_as_damaging():
    plant = Plant(left={"function vector": 0.8, "induction": 0.75, "dual step": 0.69})
    view = planted(plant, seeds=2)  # random sets leave .7, .75, .8, .85, .9
    left = {name: view.left(name) for name in plant.left}
    for name, count in (("function vector", 3), ("induction", 2), ("dual step", 0)):
        np.testing.assert_allclose(left[name].mean(), plant.left[name])
        below = (view.random_left(name).mean(-1) <= left[name].mean(-1) + 1e-12).mean()
        assert below == pytest.approx(count / 5)
    assert view.as_damaging("dual step") == 0
    assert view.as_damaging("function vector") == 0.6


def test_half_of_the_way_is_gone_from_the_block_on_behind_which_it_never_falls_below():
    def shares(*layers: float) -> np.ndarray:
        return np.broadcast_to(np.array(layers), (1, 2, 5, len(layers)))

    assert halfway(shares(0.1, 0.5, 0.6, 1.0)) == "1 of 3"
    assert halfway(shares(0.9, 0.4, 0.6, 1.0)) == "2 of 3"
    assert halfway(shares(0.9, 0.8, 0.6, 0.4)) == "n/a"
    assert foremost(shares(0.1, 0.7, 0.6))[0] == 1
    assert foremost(shares(-0.1, -0.7))[0] == 0
    assert foremost(np.full((1, 2, 5, 3), np.nan)) is None


def test_the_first_sentence_has_the_foremost_layer_and_both_nulls_in_all_layers():
    assert reading(planted(Plant(layers=(0.1, 0.1, 0.6, 0.1)), seeds=3)) == (
        "One layer carries half or more of what reading does to the label margins: attention of layer 2 of 3, the "
        "foremost and chosen after the fact, carries .60 [.60 .60]. All layers together carry 1.00 [1.00 1.00], "
        "another query's update .60 [.60 .60], a random one as long .00 [.00 .00]."
    )


def test_one_head_is_spoken_of_in_the_singular():
    assert taken_out(planted(seeds=3, heads=1)).startswith(
        "What is left of reading's effect without the foremost head is "
    )
    assert taken_out(planted(seeds=3, heads=2)).startswith(
        "What is left of reading's effect without the foremost 2 heads is "
    )


def test_without_heads_and_layers_the_answer_is_what_is_left_of_it():
    class Bare(Plant):
        def __call__(self, cell):
            found = super().__call__(cell)
            return type(found)(found.facts, [one for one in found.arrays if one.labels.get("quantity") == "answers"])

    view = planted(Bare(), seeds=2)
    assert answer(view) == "Finetuning diverged at every rate."
    assert charts.layers(view) is None
    shown = {section.title: section.text for section in page(view.study).sections}
    assert shown["Heads taken out"].endswith("the share of random sets that leave as little.")


def test_every_exchange_of_every_rate_and_of_both_weights_has_its_row():
    names = [str(row[0]) for row in tables.layers(planted(seeds=2, rates="0.01,0.1")).rows]
    nulls = ["  another query's update", "  random, as long"]
    assert names == [
        "icl into zero-shot", *nulls, "gd into zero-shot 0.01", *nulls, "icl into gd 0.01", "gd into icl 0.01",
        "zero-shot into icl", "gd into zero-shot 0.1", *nulls, "icl into gd 0.1", "gd into icl 0.1",
        "icl into zero-shot, random", "gd into zero-shot 0.01, random", "icl into gd 0.01, random",
        "gd into icl 0.01, random", "zero-shot into icl, random", "gd into zero-shot 0.1, random",
        "icl into gd 0.1, random", "gd into icl 0.1, random",
    ]  # fmt: skip
    names = [str(row[0]) for row in tables.training(planted(seeds=2, rates="0.01,0.1")).rows if str(row[0])[0] != " "]
    assert names == [
        f"{one}'s layers, {two}'s effect, {rate}{init}"
        for init in ("", ", random")
        for rate in ("0.01", "0.1")
        for one, two in (("gd", "icl"), ("icl", "gd"))
    ]


def test_without_the_shift_a_layer_carries_what_it_does_query_by_query():
    """Queries move by a tenth more or less than the shift: it is all that is left of an effect without the shift."""
    (row,) = [row for row in tables.training(planted(seeds=2, init="trained")).rows if str(row[0]).startswith("icl's")]
    assert str(row[1]).startswith("2.0")
    assert str(row[2]).startswith("2.0")
    assert [str(entry)[:3] for entry in row[3:]] == ["2", "1.0"]


def test_chance_is_of_all_heads_and_no_more_than_all():
    def said(**given) -> str:
        sections = page(planted(seeds=1, **given).study).sections
        return next(one.text for one in sections if one.title == "Heads of reading and of training")

    assert "(by chance .25)" in said(heads=3)
    assert "(by chance 1.00)" in said(heads=LAYERS * HEADS + 1)


def test_training_is_held_against_untrained_weights_at_every_rate():
    found = carried(planted(seeds=2, rates="0.01,0.1"))
    assert {rate: list(nulls) for rate, nulls in found.nulls.items()} == {
        rate: ["another query's update", "random, as long", "random weights"] for rate in (0.01, 0.1)
    }
    assert set(found.differences) == {(rate, title) for rate, nulls in found.nulls.items() for title in nulls}


def test_the_terminal_shows_what_the_answer_rests_on_without_being_asked_for_more():
    shown = page(planted(seeds=2).study)
    assert [one.title for one in shown.sections if one.brief] == [
        "Layers exchanged", "Training and reading", "Heads taken out",
    ]  # fmt: skip
    assert [one.title for one in shown.sections if one.table is None] == ["By layer"]
    assert shown.title == "What carries it"


class Shifted(Plant):
    """Layers carry the shift that queries share, and nothing of what differs between them."""

    def _between(self, into, source, share, seed):
        one, two = margins(self.at[into], seed), margins(self.at[source], seed)
        return one + share * (two - one).mean(0)


def test_shares_are_of_the_whole_effect_and_without_the_shift_where_it_is_said():
    view = planted(Shifted(), seeds=3, init="trained")
    places = ("trained", 0.01, "icl", "zero-shot")
    raw, centred = (view.layer_shares(*places, c, site="attention").mean((0, 1, 2)) for c in (False, True))
    np.testing.assert_allclose(raw, (0.1, 0.1, 0.5, 0.1), rtol=0.02)
    np.testing.assert_allclose(centred, 0, atol=1e-9)
    (row,) = [row for row in tables.training(view).rows if str(row[0]).startswith("icl's")]
    assert [str(entry)[:3] for entry in row[1:]] == ["1.9", ".00", "2", "1.0"]  # of training's effect, half as long
    assert [str(entry)[:3] for entry in tables.layers(view).rows[0][1:]] == ["2", ".50", ".80", "1.0", "2 o"]
    assert "carries .50" in reading(view)
    assert page(view.study).found[0].number.value == pytest.approx(0.5, rel=0.02)
    assert "Training's attention at 0.01 carries .5" in answer(view)
    assert np.nanmean(view.left("induction")) == pytest.approx(0.8, abs=0.02)
    lines = {line.get_label(): line.get_ydata() for panel in draw_layers(view).axes for line in panel.get_lines()}
    np.testing.assert_allclose(lines["icl into zero-shot, other query"], 0.6 * np.array([0, 0.2, 1, 1]), rtol=0.02)
    np.testing.assert_allclose(lines["icl into zero-shot"], [0, 0.2, 1, 1], rtol=0.02)


def test_the_figure_has_rows_for_attention_and_the_stream_and_is_of_the_last_rate():
    class Rates(Plant):
        def __call__(self, cell):
            self.layers = (0.2, 0.4, 0.6, 0.8) if cell.labels.get("rate") == 0.1 else (0.1,) * 4
            return super().__call__(cell)

    axes = draw_layers(planted(Rates(), seeds=2, rates="0.01,0.1")).axes
    assert len(axes) == 10
    assert [one.get_ylabel() for one in axes] == [
        "attention of one layer",
        *[""] * 4,
        "stream after a block",
        *[""] * 4,
    ]
    assert [one.get_xlabel() for one in axes] == [""] * 5 + ["layer"] * 5
    assert [one.get_title("left") for one in axes[5:]] == [""] * 5
    for panel, shares in ((axes[0], (0.2, 0.4, 0.6, 0.8)), (axes[5], (0, 0.2, 1, 1))):
        lines = {line.get_label(): line for line in panel.get_lines()}
        np.testing.assert_allclose(lines["icl into zero-shot"].get_ydata(), shares, atol=1e-12)
        assert lines["icl into zero-shot"].get_xdata().tolist() == [0, 1, 2, 3]
        np.testing.assert_allclose(lines["icl into zero-shot, other query"].get_ydata(), 0.6 * np.array(shares))
        assert [line.get_ydata()[0] for line in panel.get_lines() if line.get_label().startswith("_")] == [0, 1]
    assert axes[0].get_ylim() == axes[4].get_ylim()


def test_every_row_has_as_many_entries_as_the_header():
    view = planted(seeds=2, rates="0.01,0.1")
    made = [tables.layers(view), tables.training(view), tables.heads(view), tables.ablated(view)]
    for table in (*made, Heads(view).table(), Heads(view).listed()):
        assert {len(row) for row in table.rows} == {len(table.header)}
    row = Heads(view).table().rows[0]
    assert [str(entry)[:3] for entry in row] == ["icl", "", "", "", "", ".65"]  # ten of twelve heads, .02 to .11


def test_the_interval_of_a_correlation_stays_between_minus_one_and_one():
    found = mean(np.array([[[0.9], [-0.4]]]), CORRELATION)
    assert found.mean == pytest.approx(0.25)
    assert -1 <= found.low < -0.4
    assert 0.9 < found.high <= 1
