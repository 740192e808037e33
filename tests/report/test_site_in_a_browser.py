"""The documentation as it is built: every link and anchor leads somewhere, and search works on pages from the disk."""

import html
import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import pytest

pytest.importorskip("material", reason="the extra `docs` is not installed")
pytest.importorskip("mkdocstrings", reason="the extra `docs` is not installed")
ROOT = Path(__file__).parents[2]
SERIOUS = ("serious", "critical")
AXED = ("index.html", "tutorials/compare.html", "api.html", "add.html", "dual.html", "results/strong.html")
SIZE = {"width": 1400, "height": 900}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    made = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(made)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return made


@pytest.mark.slow
def test_every_link_and_anchor_of_the_built_site_leads_somewhere_and_nothing_is_fetched(site):
    pages = {path: path.read_text(encoding="utf-8") for path in site.rglob("*.html") if path.name != "404.html"}
    names = {
        path: {html.unescape(one) for one in re.findall(r'\b(?:id|name)="([^"]+)"', pages[path])} for path in pages
    }
    followed = 0
    for path, text in pages.items():
        assert not re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="https?:', text), path.name
        for link in map(html.unescape, re.findall(r'(?:href|src)="([^"]+)"', text)):
            if re.match(r"(https?|data|mailto):", link):
                continue
            file, _, anchor = link.partition("#")
            target = (path.parent / unquote(file)).resolve() if file else path
            target = target / "index.html" if target.is_dir() else target
            assert target.is_file(), f"{path.name} links to {link}"
            assert not anchor or target not in names or unquote(anchor) in names[target], f"{path.name} links to {link}"
            followed += 1
    assert followed > 1000


@pytest.mark.slow
@pytest.mark.parametrize("name", ["index.html", "tutorials/compare.html"])
def test_search_finds_pages_that_are_opened_from_the_disk(site, browser, name):
    page, asked = browser.new_page(viewport=SIZE), []
    page.on("request", lambda request: asked.append(request.url) if request.url.startswith("http") else None)
    try:
        page.goto((site / name).as_uri())
        page.locator("input.md-search__input").click()
        page.keyboard.type("layer-causal")
        found = page.locator(".md-search-result__item").first
        found.wait_for()
        assert "layer" in found.inner_text().lower()
        assert asked == []
    finally:
        page.close()


@pytest.mark.slow
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("name", AXED)
def test_axe_finds_no_serious_fault_in_the_site(site, browser, name, dark):
    from axe_playwright_python.sync_playwright import Axe

    page = browser.new_page(viewport=SIZE, color_scheme="dark" if dark else "light")
    try:
        page.goto((site / name).as_uri())
        page.wait_for_timeout(500)
        found = Axe().run(page).response["violations"]
        assert [(one["id"], one["nodes"][0]["html"][:200]) for one in found if one["impact"] in SERIOUS] == []
    finally:
        page.close()


@pytest.mark.slow
def test_no_page_of_the_site_is_wider_than_a_phone(site, browser):
    page = browser.new_page(viewport={"width": 390, "height": 900})
    wide = []
    try:
        for path in sorted(site.rglob("*.html")):
            page.goto(path.as_uri())
            if page.evaluate("document.documentElement.scrollWidth") > 390:
                wide.append(path.name)
    finally:
        page.close()
    assert wide == []
