"""The page of a large study stays small enough to send and quick enough to use, and its explorer fluid."""

import pytest
from browsing import opened
from large_comparison import HEADS, LAYERS, QUERIES, episode, large

from iclgd.report import explorer
from iclgd.report.page import Page

FRAME = 0.05  # seconds of the page's own thread: twenty changes a second
EACH = """async ([name, values]) => {
  for (const value of values) {
    iclgd.choose(name, value);
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  }
}"""


def spent(ticks) -> float:
    """Seconds of the page's own thread: what else runs on the machine does not count."""
    return {one["name"]: one["value"] for one in ticks.send("Performance.getMetrics")["metrics"]}["TaskDuration"]


@pytest.mark.slow
def test_a_page_of_6_tasks_3_seeds_5_rates_and_3_learners_has_15_mb_and_takes_2_seconds(browser, tmp_path):
    path = tmp_path / "index.html"
    path.write_text(large().page.html(), encoding="utf-8")
    assert path.stat().st_size < 15e6
    with opened(browser, path) as page:
        ticks = page.context.new_cdp_session(page)
        ticks.send("Performance.enable", {"timeDomain": "threadTicks"})
        page.reload()
        page.wait_for_selector("html[data-ready]", state="attached")
        assert spent(ticks) < 2
        for name, value in (("layer", "7"), ("head", "3"), ("query", "5")):
            before = spent(ticks)
            page.evaluate(EACH, [name, [value]])
            assert spent(ticks) - before < 0.5


@pytest.mark.slow
def test_the_explorer_stays_fluid_with_30_layers_9_heads_and_100_queries(browser, tmp_path, monkeypatch):
    monkeypatch.setattr(explorer, "ROOM", 10**9)  # a page of a study has fewer queries
    path = tmp_path / "index.html"
    path.write_text(Page("t", "s", "a", [explorer.section(lambda: [episode()])]).html(), encoding="utf-8")
    with opened(browser, path) as page:
        assert page.locator("select[name=query] option").count() == QUERIES
        page.locator(".widget").scroll_into_view_if_needed()
        ticks = page.context.new_cdp_session(page)
        ticks.send("Performance.enable", {"timeDomain": "threadTicks"})
        for name, count in (("layer", LAYERS), ("head", HEADS), ("query", QUERIES)):
            values = [str(value) for value in range(1, count)]
            before = spent(ticks)
            page.evaluate(EACH, [name, values])
            assert (spent(ticks) - before) / len(values) < FRAME
            assert page.url.endswith(f"{name}={count - 1}") or f"{name}={count - 1}&" in page.url
