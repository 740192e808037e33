"""Numbers that are run again, or in another run, are equal to the bit, near, or different; and that is said."""

import json
import shutil

import pytest
from little_grid import drawn

import iclgd
import toy
from iclgd.lab import LABS
from iclgd.results import Result, array
from iclgd.store.cells import Store
from said import refused, run


def altered(monkeypatch, by: float) -> None:
    """The lab gives other numbers than it did, under the same keys."""

    def run_anew(cell, tools, own=LABS["toy"].run):
        found = own(cell, tools)
        return Result(found.facts, [array(found.arrays[0].values * (1 + by), "draw", quantity="value")])

    lab = LABS["toy"]
    before = lab.run
    object.__setattr__(lab, "run", run_anew)
    monkeypatch.setattr(toy, "undo", lambda: object.__setattr__(lab, "run", before), raising=False)


@pytest.fixture
def again(monkeypatch):
    yield lambda by: altered(monkeypatch, by)
    toy.undo()


def test_verifying_runs_a_sample_again_elsewhere_and_finds_it_equal(capsys, done):
    before = {path: path.stat().st_mtime_ns for path in (done / "runs/cells").rglob("*")}
    code, out, _ = run(capsys, "study", "verify", "mine.yaml", "--sample", "5")
    assert code == 0
    assert "5 cells equal to the bit" in out
    assert len(toy.RAN) == 5
    assert {path: path.stat().st_mtime_ns for path in (done / "runs/cells").rglob("*")} == before
    run(capsys, "study", "verify", "mine.yaml", "--sample", "5", "--seed", 1)
    assert toy.RAN[5:] != toy.RAN[:5]


def test_verifying_says_how_far_numbers_are_and_fails_only_beyond_the_tolerance(capsys, done, again):
    again(1e-4)
    code, out, _ = run(capsys, "study", "verify", "mine.yaml", "--sample", "99")
    assert code == 0
    assert "12 cells within tolerance" in out
    most = max(abs(drawn(seed, k).mean()) / abs(drawn(seed, k)).max() for seed in range(3) for k in (2, 3, 4)) * 1e-4
    assert f"{most:.3g}".lstrip("0") in out or f"{most:.2e}" in out, (most, out)
    assert "0.00%" in out
    assert run(capsys, "study", "verify", "mine.yaml", "--tolerance", "1e-5")[0] == 1
    code, out, _ = run(capsys, "study", "verify", "mine.yaml", "--tolerance", "1e-5", "--json")
    assert code == 1
    assert {one["verdict"] for one in json.loads(out)["cells"]} == {"different"}


def test_a_study_that_was_not_run_has_nothing_to_verify(capsys, place):
    assert "run it first" in refused(capsys, place, "study", "verify", "mine.yaml")


def test_two_runs_are_laid_side_by_side(capsys, done, again):
    shutil.copytree(done / "runs/cells", done / "cells")
    keys = list(iclgd.open(done / "runs/mine/b").keys)
    Store(done / "cells").remove(keys[2])
    assert (
        "1 cell only in runs/mine\n0 cells only in cells\n11 cells equal"
        in (run(capsys, "study", "compare", "runs/mine", "cells")[1])
    )
    again(0.5)
    text = (done / "mine.yaml").read_text().replace("name: mine", "name: other").replace("seeds: 3", "seeds: 4")
    (done / "other.yaml").write_text(text)
    run(capsys, "study", "run", "other.yaml", "--store", "else")
    out = run(capsys, "study", "compare", "runs/mine", "runs/other", "--json")[1]
    found = json.loads(out)
    assert found["only_in_first"] == []
    assert [cell["seed"] for cell in found["only_in_second"]] == [3] * 4
    assert {one["verdict"] for one in found["cells"]} == {"different"}
    one = next(one for one in found["cells"] if one["seed"] == 1)
    values = drawn(1, k=one.get("k", 2))
    assert float(one["largest"]) == pytest.approx(0.5 * abs(values.mean()) / abs(values).max(), rel=1e-3)
    assert one["elements_beyond"] == 1


def test_cells_that_ask_the_same_are_compared_though_their_keys_differ(capsys, done):
    """As after a new version of a lab."""
    object.__setattr__(LABS["toy"], "version", 2)
    try:
        run(capsys, "study", "run", "mine.yaml", "--store", "new", "--out", "new-run")
        out = run(capsys, "study", "compare", "runs/mine", "new-run")[1]
    finally:
        object.__setattr__(LABS["toy"], "version", 1)
    assert set(iclgd.open(done / "runs/mine/b").keys).isdisjoint(Store(done / "new").names())
    assert "0 cells only in runs/mine\n0 cells only in new-run\n12 cells equal to the bit" in out
