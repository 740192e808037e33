"""Figures: grids, legends, intervals, and the same text for the same figure."""

import matplotlib
import pytest

from iclgd.report.figures import COLOURS, STYLE, band, figure, legend, panels, save, styled, svg
from iclgd.report.page import Drawing


def test_a_figure_has_a_grid_of_axes_of_so_many_inches_each():
    made, grid = figure(3, 2, width=2, height=1.5)
    assert grid.shape == (2, 3)
    assert (made.get_figwidth(), made.get_figheight()) == (6, 3)
    alone, one = figure()
    assert one.shape == (1, 1)
    assert (alone.get_figwidth(), alone.get_figheight()) == (4.6, 3.0)


@pytest.mark.parametrize("count, rows, columns", [(1, 1, 1), (4, 1, 4), (5, 2, 4), (8, 2, 4), (9, 3, 4)])
def test_panels_stand_in_rows_of_at_most_four(count, rows, columns):
    made, axes = panels(count, 2, 1)
    assert len(axes) == len(made.axes) == count
    assert (made.get_figwidth(), made.get_figheight()) == (2 * columns, rows)


def test_no_panels_are_an_empty_figure():
    made, axes = panels(0, 2, 1)
    assert (len(axes), made.get_figwidth(), made.get_figheight()) == (0, 2, 1)


def test_a_legend_has_each_label_once_and_as_many_columns_as_there_is_room_for():
    made, grid = figure(2, width=3.4)
    for axes in grid[0]:
        for label in ("one", "two", "three", "four", "five"):
            axes.plot([0, 1], [0, 1], label=label)
    legend(made, grid.flat)
    (found,) = made.legends
    assert [text.get_text() for text in found.get_texts()] == ["one", "two", "three", "four", "five"]
    assert found._ncols == 3  # 6.8 inches, 2.2 for each
    few, (row,) = figure(4)
    row[0].plot([0, 1], label="only")
    legend(few, row)
    assert few.legends[0]._ncols == 1
    narrow, (row,) = figure(width=1)
    row[0].plot([0, 1], label="only")
    legend(narrow, row)
    assert narrow.legends[0]._ncols == 1


def test_a_band_is_a_line_and_the_interval_around_it():
    _, grid = figure()
    band(grid[0, 0], [1, 2], [5, 6], [4, 5], [7, 9], COLOURS[1], "it")
    (line,) = grid[0, 0].lines
    assert line.get_xydata().tolist() == [[1, 5], [2, 6]]
    assert (line.get_label(), line.get_color()) == ("it", COLOURS[1])
    extent = grid[0, 0].collections[0].get_paths()[0].get_extents()
    assert (extent.ymin, extent.ymax, extent.xmin, extent.xmax) == (4, 9, 1, 2)


def test_the_style_is_that_of_the_figure_and_leaves_the_programs_own_alone():
    before = matplotlib.rcParams["axes.spines.top"]
    seen = []

    @styled
    def draw():
        """It draws."""
        seen.append(matplotlib.rcParams["axes.spines.top"])
        return figure()[0]

    assert not any(axes.spines["top"].get_visible() for axes in draw().axes)
    assert seen == [False]
    assert matplotlib.rcParams["axes.spines.top"] == before
    assert (draw.__name__, draw.__doc__) == ("draw", "It draws.")
    assert not STYLE["legend.frameon"]
    assert not STYLE["axes.spines.right"]


def test_a_figure_is_the_same_text_twice_and_three_files(tmp_path):
    def draw():
        made, grid = figure()
        grid[0, 0].plot([0, 1], [0, 1])
        return made

    assert svg(draw()) == svg(draw())
    assert svg(draw()).startswith("<svg")
    save(Drawing("it", draw), tmp_path)
    assert (tmp_path / "it.svg").read_text(encoding="utf-8") == svg(draw())
    assert (tmp_path / "it.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "it.pdf").read_bytes().startswith(b"%PDF")
