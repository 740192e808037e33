"""A real browser for pages: whatever a page logs as an error, asks of a network or pops up is a fault."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def opened(browser: Any, path: Path, width: int = 1280, hash: str = "", dark: bool = False) -> Iterator[Any]:
    """The page, once its scripts have run and charts have the width that the laid out page gives them."""
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light")
    faults: list[str] = []
    page.on("console", lambda said: faults.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("dialog", lambda dialog: faults.append(dialog.message) or dialog.dismiss())
    page.on("request", lambda asked: _asked(asked.url, path, faults))
    try:
        page.goto(path.as_uri() + hash)
        page.wait_for_selector("html[data-ready]", state="attached")
        page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        yield page
        assert faults == []
    finally:
        page.close()


def _asked(url: str, path: Path, faults: list[str]) -> None:
    if not url.startswith((path.as_uri(), "data:", "blob:")):
        faults.append(f"asked for {url}")


def cut(page: Any) -> list[str]:
    """Places of sections that are wider than their room: what stands out of them is cut off."""
    return page.evaluate(
        """() => [...document.querySelectorAll("main > section")].filter((section) => {
          section.style.contentVisibility = "visible"; // laid out, though it is far from the window
          return section.scrollWidth > section.clientWidth + 1;
        }).map((section) => section.id)"""
    )


def faults_of(browser: Any, path: Path) -> list[str]:
    """What axe finds wrong with a page; colours are looked at in the dark, too."""
    from axe_playwright_python.sync_playwright import Axe

    with opened(browser, path) as page:
        found = Axe().run(page).response["violations"]
        page.emulate_media(color_scheme="dark")
        found += Axe().run(page, options={"runOnly": ["color-contrast"]}).response["violations"]
    first = [(one["id"], one["nodes"][0]) for one in found]
    return [f"{name}: {node['html'][:200]} {node['failureSummary']}" for name, node in first]
