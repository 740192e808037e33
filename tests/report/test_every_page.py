"""The page of every lab, made by running it on data that is hostile: it can be used, and nothing in it runs."""

import pytest
from browsing import cut, faults_of, opened

import iclgd
from every_lab import SPECS
from iclgd.lab import LABS
from little import little_model

IMAGE, TEX, TURN = "</script><img src=x onerror=alert(1)>", r"$\frac{", "turned \u202e round"


@pytest.fixture(scope="module")
def ground(tmp_path_factory):
    """A tiny model, and a task whose name, title, words and texts are hostile."""
    folder = tmp_path_factory.mktemp("ground")
    words = [f"Negative {IMAGE}", f"Positive {TEX}"]
    (folder / "mine.yaml").write_text(
        f"name: mine\nversion: 1\ntitle: '{IMAGE} {TEX}'\nsource: '{IMAGE}'\ntemplate: '{IMAGE} {{text}} Label:'\n"
        f"labels: ['{words[0]}', '{words[1]}']\nexamples: mine.csv\n",
        encoding="utf-8",
    )
    colours = ("red", "blue", "green", "cat", "rose", "car")
    rows = [f"{IMAGE} {TEX} {TURN} {one} {other},{i % 2}" for i, one in enumerate(colours) for other in colours]
    (folder / "mine.csv").write_text("\n".join(["text,label", *rows, ""]), encoding="utf-8")
    return {"model": str(little_model(folder / "model")), "task": str(folder / "mine.yaml"), "device": "cpu"}


def use(page) -> None:
    """Every selector through its options, every slider to its end, every button that is no download, every detail."""
    for details in page.locator("main details").all():
        details.locator("summary").first.click()
    for box in page.locator("main select").all():
        for value in box.locator("option").evaluate_all("all => all.map(one => one.value)")[:4]:
            box.select_option(value)
    for slider in page.get_by_role("slider").all():
        slider.focus()
        page.keyboard.press("End")
    for button in page.locator("main button:not(.save button)").all()[:12]:
        button.click()
    for svg in page.locator("main svg[tabindex]").all()[:6]:
        svg.focus()
        page.keyboard.press("ArrowRight")


@pytest.mark.slow
@pytest.mark.parametrize("lab", [name for name in SPECS if name != "languages all"])
def test_the_page_of_every_lab_can_be_used_and_hostile_data_is_inert(browser, ground, tmp_path, lab):
    given = SPECS[lab] | (ground if "model" in LABS[lab].spec.model_fields else {})
    study = getattr(iclgd, lab.replace(" ", "_"))(store=tmp_path / "cells", **given)
    path = tmp_path / "index.html"
    path.write_text(study.page.html(), encoding="utf-8")
    assert "\u202e" not in path.read_text(encoding="utf-8")
    with opened(browser, path) as page:
        use(page)
        assert page.locator("main img[src=x]").count() == 0
    with opened(browser, path, width=390, dark=True) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert cut(page) == []
    assert faults_of(browser, path) == []
