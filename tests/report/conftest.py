"""One browser for all tests of pages."""

import shutil

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
QUIET = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
QUIET += ["--disable-component-update", "--disable-sync", "--no-first-run"]


@pytest.fixture(scope="package")
def browser():
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield opened
        opened.close()
