"""The figures of `implicit` beside their lines: what axes say, where the levels are that a reader compares with."""

import pytest
from planted_implicit import LAYERS, Diverges, Plant, planted

from iclgd.labs.implicit import figures
from iclgd.labs.implicit.view import View
from iclgd.report.figures import COLOURS


@pytest.fixture(scope="module")
def view() -> View:
    return planted(seeds=2)


def levels(panel) -> list[float]:
    return sorted(float(line.get_ydata()[0]) for line in panel.lines if line.get_label().startswith("_"))


def entries(made) -> list[str]:
    (legend,) = made.legends
    return [text.get_text() for text in legend.get_texts()]


SHARE = "share of the effect on label margins"
MARGINS = ["raw", "without the mean shift"]


@pytest.mark.parametrize(
    "draw, titles, below, beside, named",
    [
        (figures.draw_curve, MARGINS, "calibration queries", SHARE, ["vector", "matrix", "rank 1", "rank 4"]),
        (figures.draw_depth, MARGINS, "last layer that is patched", SHARE, ["all layers up to here", "a part alone"]),
        (
            figures.draw_layers,
            ["own patches", "one matrix for all"],
            "layer",
            "cosine with gd 0.01",
            [
                *("gd", "gd, random weights", "gd, wrong labels", "gd, other demonstrations", "gd, another task"),
                *("reading filler", "labels' part"),
            ],
        ),
    ],
)
def test_panels_stand_side_by_side_under_their_titles_with_one_legend(view, draw, titles, below, beside, named):
    made = draw(view)
    assert [panel.get_title("left") for panel in made.axes] == titles
    assert [panel.get_xlabel() for panel in made.axes] == [below] * 2
    assert [panel.get_ylabel() for panel in made.axes] == [beside, ""]
    assert len({round(panel.get_position().y0, 6) for panel in made.axes}) == 1
    assert sorted(entries(made)) == sorted(named)
    for panel in made.axes:
        assert levels(panel) == ([0] if draw is figures.draw_layers else [0, 1])


def test_ticks_are_the_numbers_of_queries_the_ends_of_parts_and_whole_layers(view):
    for panel in figures.draw_curve(view).axes:
        assert panel.get_xscale() == "log"
        assert panel.get_xticks().tolist() == [1, 4, 16]
        assert [text.get_text() for text in panel.get_xticklabels()] == ["1", "4", "16"]
        assert panel.get_xticks(minor=True).tolist() == []
    assert all(panel.get_xticks().tolist() == [1, 3] for panel in figures.draw_depth(view).axes)
    for panel in figures.draw_layers(view).axes:
        assert all(float(tick).is_integer() for tick in panel.get_xticks())
        assert panel.lines[0].get_xdata().tolist() == list(range(LAYERS))


def test_a_null_and_the_labels_part_have_colours_of_their_own_and_other_weights_a_style(view):
    panel, _ = figures.draw_layers(view).axes
    lines = {line.get_label(): line for line in panel.lines if not line.get_label().startswith("_")}
    colours = [line.get_color() for name, line in lines.items() if name != "gd, random weights"]
    assert colours == list(COLOURS[: len(colours)])
    gd, untrained = lines["gd"], lines["gd, random weights"]
    assert gd.get_color() == untrained.get_color()
    assert gd.get_linestyle() != untrained.get_linestyle()


def test_a_rank_that_few_queries_do_not_have_is_drawn_from_where_they_do(view):
    """Of rank 4 there is no patch of four queries."""
    raw, _ = figures.draw_curve(view).axes
    points = {line.get_label(): list(line.get_xdata()) for line in raw.lines}
    assert (points["matrix"], points["rank 1"], points["rank 4"]) == ([1, 4, 16], [4, 16], [16])


def test_likeness_is_drawn_at_the_rate_that_the_answer_speaks_of_and_not_at_all_where_there_is_none():
    view = planted(Diverges((0.5, 0)), seeds=2, rates=(0.01, 0.1, 0.5))
    assert figures.draw_layers(view).axes[0].get_ylabel() == "cosine with gd 0.1"  # .5 is not steady
    plant = Plant()
    plant.diverged = True
    assert not any(panel.lines for panel in figures.draw_layers(planted(plant)).axes)
