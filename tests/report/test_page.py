"""The page shows what a data set says and runs none of it, in a real browser."""

import re
import shutil

import pytest
import torch

from iclgd.models.traces import Trace
from iclgd.prompts import Prompts
from iclgd.report.figures import band, figure, svg
from iclgd.report.page import Section, write_page
from iclgd.report.trace import TraceReport
from iclgd.tasks.episodes import Episode
from iclgd.tasks.text import Example, TextTask

HOSTILE = (
    "<script>document.title = 'owned'</script>",
    "</script><script>document.title = 'owned'</script>",
    "<img src=x onerror=\"document.title = 'owned'\">",
    '"><svg onload="document.title = \'owned\'">',
    "</title></style><iframe srcdoc='<script>parent.document.title = 1</script>'></iframe>",
    "<a href=\"javascript:document.title = 'owned'\" autofocus onfocus=\"document.title = 'owned'\">x</a>",
    "{{ 7 * 7 }} {% raw %} ${7*7} &lt;b&gt; ]]> <!--",
    "<meta http-equiv=refresh content=0;url=https://example.org>",
)


def hostile_report() -> TraceReport:
    """A report in which every text that can come from outside is hostile."""
    queries = tuple(Example({"text": hostile}, i % 2) for i, hostile in enumerate(HOSTILE))
    task = TextTask(
        name="hostile", version=1, title=HOSTILE[0], source=HOSTILE[1], template="{text}", labels=HOSTILE[:2]
    )
    count, layers = len(queries), 6
    random = torch.Generator().manual_seed(0)
    keys = torch.ones(count, 2, 3, dtype=torch.bool)

    def trace() -> Trace:
        outputs = torch.randn(count, layers, 2, 8, generator=random)
        logits = torch.randn(count, layers, 2, 2, 3, generator=random)
        scores = torch.randn(count, 2, generator=random)
        context, blanks = torch.randn(count, layers, 2, 1, generator=random), torch.randn(3, 2, generator=random)
        answers = tuple(q.label for q in queries)
        return Trace(scores, outputs, logits, keys.clone(), context, outputs.clone(), blanks, answers)

    prompts = Prompts((1,), (), (), ((5, 6),) * count, ((3,), (4,)), tuple(q.label for q in queries))
    title = f"{HOSTILE[2]} · {HOSTILE[3]}"
    return TraceReport(
        title, Episode(task, (), queries, "x"), prompts, trace(), trace(), {"task": HOSTILE[4]}, HOSTILE[5]
    )


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    hostile_report().write(folder)
    return folder


def test_the_page_has_no_script_and_nothing_from_elsewhere(written):
    text = (written / "index.html").read_text()
    assert not re.search(r"<(script|iframe|img|link|object|embed|base|form)\b", text)
    assert "default-src 'none'" in text
    elsewhere = set(re.findall(r"(?:src|href)=\"([^\"#]+)", text))
    assert elsewhere == set()


def test_the_page_is_the_same_for_the_same_report(written, tmp_path):
    hostile_report().write(tmp_path)
    for name in ("index.html", "record.json", "episode.json", "update-size.svg"):
        assert (tmp_path / name).read_bytes() == (written / name).read_bytes()


def test_text_in_a_figure_is_escaped():
    made, axes = figure()
    band(axes[0, 0], [0, 1], [1, 2], [0, 1], [2, 3], "#000000", HOSTILE[0])
    axes[0, 0].set_title(HOSTILE[1])
    axes[0, 0].legend()
    assert "<script" not in svg(made)


def test_a_section_without_rows_or_figure_is_only_its_text(tmp_path):
    write_page(tmp_path / "p.html", "t", "s", [Section("heading", "a < b")], "iclgd x")
    text = (tmp_path / "p.html").read_text()
    assert "a &lt; b" in text
    assert "<table" not in text


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
QUIET = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
QUIET += ["--disable-component-update", "--disable-sync", "--no-first-run"]


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield opened
        opened.close()


def test_hostile_text_is_inert_in_a_browser_and_still_readable(written, browser):
    page = browser.new_page()
    asked, dialogs = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("dialog", lambda dialog: dialogs.append(dialog.message))
    page.goto((written / "index.html").as_uri())
    page.wait_for_timeout(300)
    assert page.title() == "What reading demonstrations changes"
    assert dialogs == []
    assert asked == [(written / "index.html").as_uri()]
    assert page.locator("script, iframe, img, a, form, base").count() == 0
    assert page.evaluate("document.querySelectorAll('[onerror],[onload],[onfocus]').length") == 0
    shown = page.inner_text("body")
    for hostile in HOSTILE:
        assert " ".join(hostile.split()) in " ".join(shown.split())


def test_the_page_fits_a_phone_and_a_desk(written, browser):
    for width in (390, 1280):
        page = browser.new_page(viewport={"width": width, "height": 800})
        page.goto((written / "index.html").as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= width
