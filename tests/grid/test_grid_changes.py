"""Numbers that are run again, or in another run, are equal to the bit, near, or different; and that is said."""

import json
import shutil
import signal
import time

import pytest
from little_grid import PARTS, drawn
from watching import started

import iclgd
import toy
from iclgd.grid.changes import verify
from iclgd.lab import LABS
from iclgd.report.terminal import CellProgress
from iclgd.results import Result, array
from iclgd.store.cells import Store
from said import refused, run


@pytest.fixture
def ran_by():
    """The lab runs its cells by another function, under the same keys."""
    lab, own = LABS["toy"], LABS["toy"].run
    yield lambda run: object.__setattr__(lab, "run", run)
    object.__setattr__(lab, "run", own)


@pytest.fixture
def again(ran_by):
    """The lab gives other numbers than it did."""

    def altered(by: float) -> None:
        def run_anew(cell, tools):
            found = toy.run(cell, tools)
            return Result(found.facts, [array(found.arrays[0].values * (1 + by), "draw", quantity="value")])

        ran_by(run_anew)

    return altered


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
    cells = json.loads(out)["cells"]
    assert {one["verdict"] for one in cells} == {"different"}
    assert all(one["part"] in PARTS for one in cells)  # cells of parts may have the same labels
    assert len({(one["part"], one["seed"]) for one in cells}) == len(cells) == 5


SLOW = """
import time
import numpy as np
import toy
from iclgd.results import Result, array
before = []
def run(cell, tools, own=toy.run):
    if len(before) == 3:
        open("running", "w").close()
        time.sleep(60)
    before.append(cell)
    found = own(cell, tools)
    values = found.arrays[0].values * (2 if len(before) == 2 else 1)
    return Result(found.facts, [array(values, "draw", quantity="value")])
object.__setattr__(toy.LABS["toy"], "run", run)
"""


@pytest.mark.parametrize("number, code", [(signal.SIGTERM, 143), (signal.SIGINT, 130)], ids=["SIGTERM", "SIGINT"])
def test_verifying_that_is_stopped_says_what_was_compared_and_shows_it(done, number, code):
    (done / "slow.py").write_text(SLOW)
    before = sorted((done / "runs").rglob("*"))
    process = started(done, "--plugin", "slow.py", "study", "verify", "mine.yaml", "--sample", "5")
    while not (done / "running").exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == code
    compared = "2 cells equal to the bit, 0 cells within tolerance, 1 cell different"
    stopped = f"iclgd: stopped; 3 of 5 cells were compared ({compared}): the same command begins again."
    assert err.splitlines()[-1] == stopped
    assert out.splitlines()[:3] == compared.split(", ")
    assert sum("different" in line for line in out.splitlines()) == 2  # the count, and the cell
    assert sorted((done / "runs").rglob("*")) == before


def test_verifying_that_is_stopped_before_the_first_cell_has_compared_nothing(capsys, done, monkeypatch):
    monkeypatch.setenv("TOY_STOPS_AT", "0")
    code, out, err = run(capsys, "study", "verify", "runs/mine/b", "--sample", 99)
    assert (code, out) == (130, "")
    assert err.strip() == "iclgd: stopped before a cell was compared: the same command begins again."


def test_verifying_says_after_every_cell_how_many_are_equal_near_and_different_so_far(done, again):
    said = list[str]()

    class Said(CellProgress):
        def so_far(self, known: str) -> None:
            super().so_far(known)
            said.append(self.line().split(" · ")[1])

    found = verify(done / "mine.yaml", done / "runs/cells", 3, 0, 1e-3, Said())
    next(found)
    assert said == ["1 equal to the bit"]
    again(1e-4)
    next(found)
    again(1.0)
    assert len(list(found)) == 1
    assert said[1:] == [
        "1 equal to the bit, 1 within tolerance",
        "1 equal to the bit, 1 within tolerance, 1 different",
    ]


def test_a_cell_that_cannot_be_run_again_is_named_and_keeps_no_other_from_being_compared(capsys, done, ran_by):
    def broken(cell, tools):
        if cell.spec.seed == 1 and cell.spec.k == 3:
            raise ZeroDivisionError("one over nothing")
        return toy.run(cell, tools)

    ran_by(broken)
    code, out, err = run(capsys, "study", "verify", "mine.yaml", "--sample", "99")
    assert code == 1
    assert "11 cells equal to the bit" in out
    said = "1 of 12 cells could not be run again (seed 1: ZeroDivisionError: one over nothing); the others: 11 equal"
    assert err.splitlines()[-1] == f"iclgd: {said} to the bit."
    assert "Traceback" in err


def test_a_kept_cell_that_was_altered_is_refused_before_anything_is_run_again(capsys, done):
    for numbers in (done / "runs/cells").glob("*/arrays.safetensors"):
        numbers.write_bytes(numbers.read_bytes()[:-1] + b"x")
    assert "its numbers were altered" in refused(capsys, done, "study", "verify", "mine.yaml")
    assert toy.RAN == []


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
