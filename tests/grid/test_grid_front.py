"""The page of a grid answers by itself, from what its parts found."""

import json
from dataclasses import replace

import numpy as np
import pytest

import toy
from charted import charted
from iclgd.lab import LABS, Lab
from iclgd.overview import overview
from iclgd.report.found import Found
from iclgd.report.numbers import Number
from said import run


@pytest.fixture
def judged(monkeypatch):
    """The toy lab with a verdict: whether the mean is shown to be above zero."""

    def page(study):
        values = study.stack("seed", study.spec.seeds, quantity="value").mean(1)
        half = 4.3 * values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
        number = Number(float(values.mean()), values.mean() - half, values.mean() + half)
        words = "the mean is above zero" if number.low > 0 else "the mean is not shown to be above zero"
        found = [Found("mean", number, "nothing is decided, with 1 seed" if np.isnan(half) else words)]
        return replace(toy.page(study), found=found)

    monkeypatch.setitem(LABS._things, "toy", Lab(toy.ToySpec, toy.run, page))


def test_the_front_page_counts_what_parts_found_and_shows_a_number_of_each(capsys, place, judged):
    code, out, err = run(capsys, "study", "run", "mine.yaml", "--json")
    assert code == 0, err
    told = json.loads(out)["answer"]
    assert told.startswith("In all 4 parts the mean is not shown to be above zero (mean from ")
    assert told in (place / "runs/mine/index.html").read_text(encoding="utf-8").replace("&#39;", "'")
    (row,) = overview(place / "runs").table("Studies").rows
    assert row[1] == told


def test_an_undecided_part_is_counted_as_undecided(capsys, place, judged):
    text = (place / "mine.yaml").read_text().replace("b: {lab: toy, loud: true}", "b: {lab: toy, seeds: [7]}")
    (place / "mine.yaml").write_text(text)
    told = json.loads(run(capsys, "study", "run", "mine.yaml", "--json")[1])["answer"]
    assert "in 1 of 4 parts (b) nothing is decided, with 1 seed" in told
    assert told.startswith("In 3 of 4 parts (a-k=2-scale=1, a-k=2-scale=2, a-k=3-scale=1) the mean is not shown")


def test_parts_without_a_verdict_are_not_counted_and_still_drawn(capsys, place):
    from iclgd.grid.file import read_grid
    from iclgd.grid.front import UNCOUNTED, front
    from iclgd.study import open_study

    told = json.loads(run(capsys, "study", "run", "mine.yaml", "--json")[1])["answer"]
    assert told == UNCOUNTED
    grid = read_grid(place / "mine.yaml")
    studies = [open_study(place / "runs/mine" / part.name) for part in grid.parts]
    page = front(grid, studies, place / "runs/mine")
    shown = charted(page.picture, "name", number="0 · mean")
    assert list(shown) == [(part.name,) for part in grid.parts]
    for part, study in zip(grid.parts, studies, strict=True):
        assert shown[part.name,] == pytest.approx([study.stack("seed", [0], quantity="value").mean()], rel=1e-4)
