"""The page of a large study stays small enough to send and quick enough to use."""

import pytest
from browsing import opened
from large_comparison import large


@pytest.mark.slow
def test_a_page_of_6_tasks_3_seeds_5_rates_and_3_learners_has_15_mb_and_takes_2_seconds(browser, tmp_path):
    path = tmp_path / "index.html"
    path.write_text(large().page.html(), encoding="utf-8")
    assert path.stat().st_size < 15e6
    with opened(browser, path) as page:
        ticks = page.context.new_cdp_session(page)
        ticks.send("Performance.enable", {"timeDomain": "threadTicks"})  # of the page's own thread: others do not count
        page.reload()
        page.wait_for_selector("html[data-ready]", state="attached")
        found = {one["name"]: one["value"] for one in ticks.send("Performance.getMetrics")["metrics"]}
        assert found["TaskDuration"] < 2
        for name, value in (("layer", "7"), ("head", "3"), ("query", "5")):
            spent = page.evaluate(
                "([n, v]) => { const t = performance.now(); iclgd.choose(n, v); return performance.now() - t }",
                [name, value],
            )
            assert spent < 500
