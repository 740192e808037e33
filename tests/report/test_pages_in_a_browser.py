"""Pages in a real browser: controls work, numbers are those of the study, nothing is logged or asked of a network."""

import csv
import re

import numpy as np
import pytest
from browsing import faults_of, opened
from playwright.sync_api import expect

import iclgd
from iclgd.report import explorer
from iclgd.report.charts import packed, small
from iclgd.report.page import Page
from little import little_model, little_task

HOSTILE = ("</script><img src=x onerror=alert(1)>", r"$\frac{", "turned\u202eround")


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """Two tasks, two seeds, two rates, two learners on a tiny model: a study and the file of its page."""
    folder = tmp_path_factory.mktemp("compared")
    model = little_model(folder / "model")
    tasks = [str(little_task(folder)), str(little_task(folder, "other", ("red", "blue")))]
    few = {"nulls": "other-query,wrong-labels", "floor": False, "k": 3, "queries": 6, "init": "trained"}
    few |= {"learners": "gd", "rates": [0.01, 0.1], "metrics": "SimAOU,contrast-AOU,accuracy"}
    study = iclgd.compare(model=str(model), task=tasks, seeds=2, store=folder / "cells", **few)
    (folder / "index.html").write_text(study.page.html(), encoding="utf-8")
    return study, folder / "index.html"


def saved(page, button) -> bytes:
    with page.expect_download() as found:
        button.click()
    return found.value.path().read_bytes()


def test_every_control_of_a_comparison_can_be_used(browser, compared):
    with opened(browser, compared[1]) as page:
        for box in page.locator("select").all():
            for option in box.locator("option").all():
                if box.is_visible() and option.count():
                    box.select_option(option.get_attribute("value"))
        slider = page.get_by_role("slider", name="layer")
        slider.fill("2")
        for name in ("Next query", "Previous query"):
            page.get_by_role("button", name=name).click()
        for details in page.locator("main details").all():
            details.locator("summary").first.click()
        assert "layer=2" in page.url
        for svg in page.locator("svg.plot[tabindex]").all():
            svg.focus()
            for key in ("ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp"):
                page.keyboard.press(key)


def test_a_choice_is_in_the_address_and_the_address_is_a_choice(browser, compared):
    path = compared[1]
    with opened(browser, path) as page:
        picture = page.locator(".widget").first
        before = picture.locator("svg.plot").first.get_attribute("aria-label")
        picture.locator("select[name=metric]").select_option("SimAOU")
        assert picture.locator("svg.plot").first.get_attribute("aria-label") != before
        assert "metric=SimAOU" in page.url
        chosen, after = page.url, picture.locator("svg.plot").first.get_attribute("aria-label")
    with opened(browser, path, hash=chosen[chosen.index("#") :]) as page:
        assert page.locator(".widget").first.locator("svg.plot").first.get_attribute("aria-label") == after


def test_a_dot_is_the_number_of_the_table(browser, compared):
    study, path = compared
    table = study.page.table("In short, at the prompt's last token")
    column = list(table.header).index("SimAOU")
    row = next(row for row in table.rows if row[0] == "gd 0.1")
    with opened(browser, path, hash="#metric=SimAOU&rate=0.1") as page:
        svg = page.locator(".widget").first.locator("svg.plot").first
        assert f"gd 0.1 {row[column]}" in svg.get_attribute("aria-label").replace("−", "-")
        svg.focus()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowUp")
        expect(page.locator("#tip")).to_have_text(re.compile("^gd 0.1"))
        assert str(row[column]) in page.locator("#tip").inner_text().replace("−", "-")
        page.keyboard.press("Escape")
        expect(page.locator("#tip")).to_be_hidden()


def test_the_end_of_an_interval_tells_its_numbers_and_a_tip_stays_in_the_window(browser, compared):
    with opened(browser, compared[1], width=390) as page:
        svg, tip = page.locator(".widget").first.locator("svg.plot").first, page.locator("#tip")
        svg.evaluate("one => scrollTo(0, one.getBoundingClientRect().bottom + scrollY - innerHeight)")
        box = svg.bounding_box()
        for across in (0.5, 0.02, 0.98):
            page.mouse.move(box["x"] + across * box["width"], box["y"] + box["height"] - 40)
            expect(tip).to_have_text(re.compile(r"\["))
            expect(tip).to_be_visible()
            shown = tip.bounding_box()
            assert min(shown["x"], shown["y"]) >= 0
            assert shown["x"] + shown["width"] <= 390
            assert shown["y"] + shown["height"] <= 900


def test_a_table_is_sorted_filtered_and_saved(browser, compared):
    title = "In short, at the prompt's last token"
    with opened(browser, compared[1]) as page:
        place = page.locator("section", has=page.get_by_role("heading", name=title, exact=True))
        values = "rows => [...rows].map(row => row.cells[3].dataset.value).filter(x => x !== undefined).map(Number)"
        place.get_by_role("button", name="Sort by SimAOU").click()
        down = place.locator("tbody tr").evaluate_all(values)
        assert down == sorted(down, reverse=True)
        assert len(down) == 4
        place.get_by_role("button", name="Sort by SimAOU").click()
        assert place.locator("tbody tr").evaluate_all(values) == down[::-1]
        place.get_by_role("searchbox").fill("wrong labels")
        shown = [row.inner_text() for row in place.locator("tbody tr:visible").all()]
        assert shown
        assert all("wrong labels" in row for row in shown)
        text = saved(page, place.get_by_role("button", name="CSV")).decode()
        rows = list(csv.reader(text.splitlines()))
        assert rows[0][-3:] == ["SimAOU", "SimAOU low", "SimAOU high"]
        assert len(rows) == len(shown) + 1
        assert float(rows[1][-2]) <= float(rows[1][-3]) <= float(rows[1][-1])
        assert saved(page, place.get_by_role("button", name="LaTeX")).startswith(b"\\begin{tabular}")
        assert saved(page, place.get_by_role("button", name="Markdown")).startswith(b"| ")
        assert b"@misc{dai2022" in saved(page, page.get_by_role("button", name="BibTeX"))


def test_a_figure_is_saved_as_svg_png_and_pdf(browser, compared):
    with opened(browser, compared[1], dark=True) as page:
        bar = page.locator(".widget").first
        drawn = saved(page, bar.get_by_role("button", name="SVG")).decode()
        assert drawn.startswith("<svg")
        assert "var(" not in drawn
        assert 'fill="#fff"' in drawn  # paper is white, whatever the screen is
        assert 'color="#1c2024"' in drawn
        assert saved(page, bar.get_by_role("button", name="PNG")).startswith(b"\x89PNG")
        assert saved(page, bar.get_by_role("button", name="PDF")).startswith(b"%PDF-1.4")
        page.locator("details.printed", has=page.locator("img")).first.locator("summary").click()
        figure = page.locator("figure").first
        assert saved(page, figure.get_by_role("link", name="PDF")).startswith(b"%PDF")
        assert saved(page, figure.get_by_role("button", name="PNG")).startswith(b"\x89PNG")


def test_a_saved_figure_has_the_words_of_its_legend_and_no_style_sheet_among_them(browser, compared):
    with opened(browser, compared[1]) as page:
        widget = page.locator(".widget", has=page.locator(".legend")).first
        names = [name.strip() for name in widget.locator(".legend li").all_inner_texts()]
        drawn = saved(page, widget.get_by_role("button", name="SVG")).decode()
        words = re.findall(r"<text[^>]*>([^<]*)</text>", drawn)
        assert names
        assert set(names) <= {word.strip() for word in words}
        assert not [word for word in words if "{" in word]


def test_a_word_tells_its_meaning_to_the_mouse_and_to_the_keyboard(browser, compared):
    with opened(browser, compared[1]) as page:
        term = page.locator("thead .term", has_text="SimAOU").first
        term.hover()
        expect(page.locator("#tip")).to_have_text("Cosine of the updates of attention outputs (Deutch 2023).")
        page.mouse.move(0, 0)
        expect(page.locator("#tip")).to_be_hidden()
        term.focus()
        expect(page.locator("#tip")).to_be_visible()
        page.keyboard.press("Enter")
        expect(page.locator("#word-simaou")).to_be_in_viewport()


def test_the_explorer_colours_tokens_by_the_numbers_of_the_study(browser, compared):
    study, path = compared
    (found,) = study.arrays(quantity="attention", learner="icl", seed=0, task=study.spec.task[0])
    layer, head, query = 1, 2, 3
    shares = (found.values[query, layer, head] / 255.0) ** 2
    with opened(browser, path, hash=f"#layer={layer}&head={head}&query={query}&colour=attention") as page:
        tokens = page.locator(".token")
        assert page.locator(".line.demo").first.evaluate("one => getComputedStyle(one).display") == "block"  # as a text
        place = 5
        tokens.nth(place).hover()
        told = page.locator("#tip").inner_text()
        assert f"{shares[place]:.4f}".removeprefix("0") in told or f"{shares[place]:.3g}" in told
        colours = tokens.evaluate_all("all => all.map(one => one.style.backgroundColor)")
        scale = shares[len(study.found().__next__()[1].facts["looked"]["start"]) :].max()
        strengths = [float(re.search(r"([\d.]+)%", colour)[1]) if colour else 0 for colour in colours]
        expected = np.minimum(1, shares[: len(strengths)] / scale) * 55
        assert np.allclose(strengths, np.where(expected < 0.5, 0, expected), atol=0.06)
        page.locator("select[name=colour]").select_option("reading − gd 0.01")
        own = [
            study.arrays(quantity="own attention", learner=who, seed=0, task=study.spec.task[0])[0]
            for who in ("icl", "gd 0.01")
        ]
        apart = np.subtract(*((one.values[query, layer, head] / 255.0) ** 2 for one in own))
        tokens.last.hover()
        last = len(study.facts("looked")[0]["queries"][query]) - 1
        said = page.locator("#tip").inner_text().replace("−", "-").replace("+", "")
        assert float(re.search(r"\n(-?[\d.e-]+)", said)[1]) == pytest.approx(apart[last], abs=6e-5)


def test_label_probabilities_are_those_of_the_scores(browser, compared):
    study, path = compared
    (scores,) = study.arrays(quantity="scores", learner="icl", seed=0, task=study.spec.task[0])
    p = np.exp(scores.values[2]) / np.exp(scores.values[2]).sum()
    with opened(browser, path, hash="#query=2") as page:
        cells = page.locator(".side tbody tr", has=page.locator("th", has_text="icl")).locator("td").all_inner_texts()
    assert [float(cell) for cell in cells[:2]] == pytest.approx(p, abs=0.006)


def test_hostile_tokens_and_labels_are_inert_text(browser, tmp_path):
    texts = {"start": [HOSTILE[0]], "demos": [list(HOSTILE)], "label_tokens": [1], "separator": [HOSTILE[1]]}
    texts |= {"queries": [list(HOSTILE)], "answers": [0]}
    own = np.full((1, 2, 2, 3), 99, dtype=np.uint8)
    scores = {who: np.log([[0.4, 0.6]]) for who in ("zero-shot", "icl", HOSTILE[0])}
    whole = np.full((1, 2, 2, 8), 50, dtype=np.uint8)
    one = explorer.Episode(HOSTILE[0], texts, HOSTILE[:2], scores, dict.fromkeys(scores, own), whole, whole)
    (tmp_path / "i.html").write_text(Page("t", "s", "a", [explorer.section(lambda: [one])]).html(), encoding="utf-8")
    with opened(browser, tmp_path / "i.html") as page:
        assert page.locator("main img").count() == 0
        assert page.locator(".token").first.inner_text() == HOSTILE[0]
        assert page.locator(".token").last.inner_text() == "turned⟨U+202E⟩round"


def test_many_numbers_are_packed_to_a_small_share_of_their_range(browser, compared):
    values = np.random.default_rng(0).normal(size=5000)
    values[7] = np.nan
    data = {"points": [], "choose": {}, "names": {"name": ["a"]}, "codes": {"name": small([0] * 5000)}}
    data |= {"count": 5000, "limited": list(range(5000))}
    data |= {what: packed(values) for what in ("values", "low", "high")}
    with opened(browser, compared[1]) as page:
        found = page.evaluate("data => iclgd.series(data).shown().map(row => row.values[0])", data)
    back = np.array([np.nan if value is None else value for value in found], dtype=float)
    assert np.isnan(back[7])
    assert np.nanmax(np.abs(back - values)) <= np.ptp(values[np.isfinite(values)]) / 65534


def test_axe_finds_no_fault_and_colours_can_be_read_in_the_dark_too(browser, compared):
    assert faults_of(browser, compared[1]) == []


def test_a_notebooks_frame_runs_the_page_and_cannot_reach_out_of_it(browser, compared, tmp_path):
    outer = tmp_path / "outer.html"
    outer.write_text(f"<html data-ready='yes'><body>{iclgd.show(compared[0])._repr_html_()}", encoding="utf-8")
    with opened(browser, outer) as page:
        inner = page.frame_locator("iframe")
        expect(inner.locator("html[data-ready]")).to_be_attached()
        inner.get_by_role("button", name="Next query").click()
        expect(inner.locator("select[name=query]")).to_have_value("1")
        assert inner.locator(".widget").count() == 1
        strokes = inner.locator(".side svg.plot [stroke]").evaluate_all(
            "all => all.map(one => one.getAttribute('stroke'))"
        )
        assert "var(--s1)" in strokes  # gd, as in every other chart


def test_paper_is_white_whatever_the_screen_is_and_nothing_on_it_is_folded_or_cut(browser, compared):
    with opened(browser, compared[1], width=794, dark=True) as page:
        page.emulate_media(media="print", color_scheme="dark")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert page.evaluate("getComputedStyle(document.body).color") == "rgb(28, 32, 36)"
        for details in page.locator("main details").all():
            assert details.get_attribute("open") is not None or not details.is_visible()
        for name in page.locator("main table th:first-child").all():
            assert name.evaluate("one => getComputedStyle(one).position") == "static"  # it would lie over its neighbour
        tokens = page.locator(".token").first
        assert tokens.evaluate("one => getComputedStyle(one).printColorAdjust") == "exact"
