"""Heat maps, lines over sizes and dots over powers of ten in a browser: they tell the numbers that were given."""

import numpy as np
import pytest
from browsing import cut, faults_of, opened
from playwright.sync_api import expect

from iclgd.report.charts import OWN, Looks, Series, dots, lines
from iclgd.report.maps import maps
from iclgd.report.page import Page, Section

NORMS = np.array([[1e-6, 1.0, 0.0], [100.0, np.nan, 10.0]])


def written(folder, *widgets):
    path = folder / "index.html"
    sections = [Section(f"Section {i}", widget=widget) for i, widget in enumerate(widgets)]
    path.write_text(Page("t", "s", "a", sections).html(), encoding="utf-8")
    return path


def test_a_map_tells_its_numbers_from_the_top_row_on_and_zero_has_no_logarithm(browser, tmp_path):
    both = maps({"norms": NORMS}, [1, 2, 3], "demonstration", "layer", "about", log=True)
    plain = maps({"norms": NORMS, "cosines": -NORMS}, [1, 2, 3], "demonstration", "layer", "about")
    path = written(tmp_path, both, plain)
    with opened(browser, path) as page:
        svg = page.locator("svg.plot").first
        svg.press("ArrowLeft")
        assert page.locator("#tip").inner_text().split("\n") == ["norms", "layer 1, demonstration 1: 100.000"]
        svg.press("ArrowDown")
        assert page.locator("#tip").inner_text().endswith("layer 0, demonstration 1: .00000100")
        drawn = "all => all.map(one => one.getAttribute('fill-opacity')).filter(Boolean).map(Number)"
        assert svg.locator("rect").evaluate_all(drawn) == pytest.approx([1.0, 0.8875, 0.1, 0.775], abs=6e-4)
        assert page.locator("svg.plot").last.locator("rect[fill='var(--s1)']").count() == 4  # two have no colour
        page.get_by_text("Numbers").first.click()
        expect(page.locator(".widget tbody tr")).to_have_count(NORMS.size)
    for width in (390, 1400):
        with opened(browser, path, width=width) as page:
            assert cut(page) == []
    assert faults_of(browser, path) == []


def test_many_numbers_of_a_map_are_not_packed():
    values = np.full((70, 70), 1e-6)
    values[0, 0] = 1e6
    assert maps({"norms": values}, range(70), "x", "y", "about").data["values"][1] == 1e-6


def test_a_line_over_sizes_joins_the_points_that_it_has_on_a_logarithmic_axis(browser, tmp_path):
    rows = [([0.1, np.nan, 0.3], [0.0, np.nan, 0.2], [0.2, np.nan, 0.4]), ([np.nan, 0.5, np.nan], [], [])]
    series = [Series({"name": name, "role": OWN}, *row) for name, row in zip("ab", rows, strict=True)]
    path = written(tmp_path, lines(lambda: series, [0.001, 0.01, 0.1], Looks(colour="name", x="rate", apart=True), "a"))
    with opened(browser, path) as page:
        svg = page.locator("svg.plot:not(.swatch)").first
        assert svg.evaluate("one => one.scale('x').type") == "log"
        svg.press("ArrowRight")
        assert page.locator("#tip").inner_text().split("\n") == ["a", "rate 0.1: .300 [.200 .400]"]
        paths = svg.locator("path").evaluate_all("all => all.map(one => one.getAttribute('d'))")
        assert any(one.count("L") == 1 and one.count("M") == 1 for one in paths)  # one piece, from end to end
        page.get_by_text("Numbers").first.click()
        expect(page.locator(".widget tbody tr")).to_have_count(3)
        assert [row.split("\t") for row in page.locator(".widget tbody tr").all_inner_texts()] == [
            ["a", "0.001", ".100 [.000 .200]"], ["a", "0.1", ".300 [.200 .400]"], ["b", "0.01", ".500"],
        ]  # fmt: skip


def test_dots_on_a_logarithmic_scale_tell_an_interval_that_begins_at_zero(browser, tmp_path):
    series = [
        Series({"name": "near", "role": OWN}, [0.01], [0.0], [0.03]),
        Series({"name": "far", "role": OWN}, [10.0]),
    ]
    path = written(tmp_path, dots(lambda: series, Looks(x="distance", log=("",)), "about"))
    with opened(browser, path) as page:
        svg = page.locator("svg.plot").first
        assert svg.evaluate("one => one.scale('x').type") == "log"
        svg.press("ArrowRight")
        svg.press("ArrowLeft")
        assert page.locator("#tip").inner_text().split("\n") == ["near", ".010 [.000 .030]"]
        assert svg.locator("circle[r='4.5']").count() == 2
        assert "NaN" not in svg.inner_html()
