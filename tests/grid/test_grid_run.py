"""A grid is run, planned and looked at as one, and its parts are ordinary studies."""

import json
import time

import pytest
from little_grid import PARTS
from watching import rows, started

import iclgd
import toy
from iclgd.spec import key
from iclgd.store.cells import Store
from said import refused, run


def test_every_part_has_its_own_page_and_the_front_page_leads_to_them_with_their_answers(capsys, place):
    code, out, err = run(capsys, "study", "run", "mine.yaml")
    assert code == 0, err
    folder = place / "runs/mine"
    front = (folder / "index.html").read_text()
    for name in PARTS:
        study = iclgd.open(folder / name)
        assert (folder / name / "index.html").read_text() == study.page.html()
        assert study.answer in out
        assert f'<a href="{name.replace("=", "%3D")}/index.html">{name}</a>' in front
        assert study.answer in front
    assert "ran      12 cells" in out
    assert "Whether k matters. · 4 parts · 12 cells" in front


def test_a_part_is_the_study_that_the_labs_own_command_runs(capsys, done):
    code, out, _ = run(capsys, "toy", "--k", 2, "--scale", 2, "--seeds", 3, "--json")
    assert code == 0
    assert toy.RAN == []
    assert json.loads(out)["cells"] == list(iclgd.open(done / "runs/mine/a-k=2-scale=2").keys)


def test_a_study_runs_only_what_is_missing_and_follows_its_file(capsys, done):
    assert "ran      0 cells" in run(capsys, "study", "run", "mine.yaml")[1]
    text = (done / "mine.yaml").read_text().replace("seeds: 3", "seeds: 4").replace("scale: [1, 2]", "scale: [1]")
    (done / "mine.yaml").write_text(text.replace("    exclude: [{k: 3, scale: 2}]\n", ""))
    assert "ran      3 cells" in run(capsys, "study", "run", "mine.yaml")[1]
    assert toy.RAN == [3, 3, 3]
    assert not (done / "runs/mine/a-k=2-scale=2").exists()  # no part of it any more; its cells stay
    assert len(Store(done / "runs/cells").names()) == 15


def test_the_repeat_line_shows_the_same_study_from_another_folder(capsys, done, monkeypatch):
    lines = run(capsys, "study", "run", "mine.yaml")[1].splitlines()
    (done / "elsewhere").mkdir()
    monkeypatch.chdir(done / "elsewhere")
    again = run(capsys, *lines[-1].split()[2:])[1].splitlines()
    assert again[:-2] == lines[:-2]
    assert toy.RAN == []
    assert list((done / "elsewhere").iterdir()) == []


def test_a_plan_says_what_is_done_and_left_and_what_it_will_take_from_cells_like_these(capsys, place):
    out = run(capsys, "study", "plan", "mine.yaml")[1]
    assert rows(out)["a-k=2-scale=1"] == ["toy", "3", "0", "3", "unknown"]
    assert "left     12 cells of 12" in out
    assert not (place / "runs").exists()
    run(capsys, "toy", "--k", 2, "--seeds", 2)
    out = run(capsys, "study", "plan", "mine.yaml")[1]
    assert rows(out)["a-k=2-scale=1"][:4] == ["toy", "3", "2", "1"]
    assert "left     10 cells of 12" in out
    assert "time     0 s, one after another" in out
    memory, disk = rows(out)["memory"], rows(out)["disk"]
    assert memory[1] in ("MB", "GB")
    size = sum(path.stat().st_size for path in (place / "runs/cells").glob("*/*")) / 2 * 10
    assert disk[:2] == [f"{size / 1000:.3g}", "kB"]


def test_the_time_that_is_left_is_that_of_cells_of_the_same_model_and_task():
    from iclgd.engine.work import Job
    from iclgd.grid.estimate import costs
    from iclgd.lab import Cell
    from iclgd.spec import ModelSpec, Spec
    from iclgd.store.index import Kept

    class Asked(Spec):
        model: ModelSpec
        task: str
        k: int
        seed: int

    def spec(model: str, task: str, k: int, seed: int = 0) -> Asked:
        return Asked(model=ModelSpec(name=model), task=task, k=k, seed=seed)

    def kept(seconds: float, *asked) -> Kept:
        return Kept("", "lab", spec(*asked).model_dump(mode="json"), "", seconds, 1e9 * seconds, 100, "")

    known = [kept(1, "a", "x", 8), kept(3, "a", "x", 8, 1), kept(50, "a", "x", 32), kept(7, "b", "x", 8)]
    jobs = [Job("", Cell("lab", spec("a", "x", 8, 5)), {})] * 10
    assert costs(jobs, known).seconds == 20
    assert (costs(jobs, known).memory, costs(jobs, known).disk) == (3e9, 1000)
    assert costs([Job("", Cell("lab", spec("b", "x", 32)), {})], known).seconds == 7  # the nearest of its model
    assert costs([Job("", Cell("lab", spec("a", "y", 8)), {})], known).unknown == 1
    assert costs([Job("", Cell("other", spec("a", "x", 8)), {})], known).unknown == 1


def test_status_counts_what_is_done_set_aside_and_left(capsys, done):
    keys = list(iclgd.open(done / "runs/mine/b").keys)
    Store(done / "runs/cells").remove(keys[0])
    Store(done / "runs/cells").remove(keys[1])
    (done / "runs/cells/quarantine").mkdir()
    (done / f"runs/cells/quarantine/{keys[1][:32]}.json").write_text("{}")
    for what in ("mine.yaml", "runs/mine", "runs/mine/study.yaml"):
        found = rows(run(capsys, "study", "status", what)[1])
        assert found["b"] == ["1", "0", "1", "1"]
        assert found["a-k=2-scale=1"] == ["3", "0", "0", "0"]
        assert found["all"] == ["10", "0", "1", "1"]


def test_a_changed_file_is_planned_anew_by_status(capsys, done):
    text = (done / "mine.yaml").read_text().replace("seeds: 3", "seeds: 5")
    (done / "mine.yaml").write_text(text)
    assert rows(run(capsys, "study", "status", "mine.yaml")[1])["all"] == ["12", "0", "0", "8"]


def test_a_study_of_one_is_looked_at_like_a_grid(capsys, place):
    run(capsys, "toy", "--seeds", 2, "--out", "one")
    assert rows(run(capsys, "study", "status", "one")[1])["toy"] == ["2", "0", "0", "0"]
    assert run(capsys, "study", "verify", "one")[0] == 0


@pytest.mark.parametrize("what", ["plan", "status", "table", "verify", "run"])
def test_what_is_no_study_is_refused_in_a_sentence(capsys, place, what):
    (place / "empty").mkdir()
    assert "cannot read nothing.yaml: No such file" in refused(capsys, place, "study", what, "nothing.yaml")
    refused(capsys, place, "study", what, "empty")


def test_parts_named_like_the_studys_own_files_are_run_and_run_again(capsys, place):
    names = ["study.json", "study.yaml", "index.html", "page.md"]
    (place / "own.yaml").write_text("\n".join(["parts:", *(f"  {name}: {{lab: toy, seeds: 2}}" for name in names)]))
    for ran in (2, 0):
        code, out, err = run(capsys, "study", "run", "own.yaml")
        assert (code, f"ran      {ran} cells" in out) == (0, True), err
    there = {path.name for path in (place / "runs/own").iterdir() if path.is_dir()}
    assert there == {f"{name}-2" for name in names}
    assert run(capsys, "study", "run", "runs/own/study.yaml")[0] == 0
    assert {path.name for path in (place / "runs/own").iterdir() if path.is_dir()} == there


UNLIKE = """\
defaults: {steps: 1, dx: 1, k: 2, seeds: 1, episodes: 2}
parts:
  a: {lab: linear train, grid: {batch: [2]}}
  b: {lab: linear optimum}
"""
TOLD = 'the default "steps" has more than one meaning: "Training steps" in a (linear train); "The most steps to tune'


def test_a_default_of_several_meanings_is_told_with_the_plan_and_before_the_run(capsys, place, monkeypatch):
    def begins(*_):
        raise iclgd.Refusal("here it begins.")

    (place / "unlike.yaml").write_text(UNLIKE)
    assert f"\nnote     {TOLD}" in run(capsys, "study", "plan", "unlike.yaml")[1]
    (said,) = json.loads(run(capsys, "study", "plan", "unlike.yaml", "--json")[1])["notes"]
    assert said.startswith(TOLD)
    monkeypatch.setattr("iclgd.grid.run.run_grid", begins)
    first, second = run(capsys, "study", "run", "unlike.yaml")[2].splitlines()
    assert first.startswith(f"iclgd: {TOLD}")
    assert run(capsys, "study", "run", "unlike.yaml", "--quiet")[2] == f"{second}\n" == "iclgd: here it begins.\n"


def test_a_folder_of_somebody_elses_is_refused_before_anything_is_run(capsys, place):
    (place / "runs/mine/b").mkdir(parents=True)
    (place / "runs/mine/thesis.tex").touch()
    assert "was not written by iclgd" in refused(capsys, place, "study", "run", "mine.yaml", "--overwrite")
    assert toy.RAN == []


def test_a_folder_of_another_study_is_replaced_only_as_a_whole_and_when_asked_to(capsys, place):
    run(capsys, "toy", "--out", "runs/mine")
    assert "holds another study" in refused(capsys, place, "study", "run", "mine.yaml")
    assert run(capsys, "study", "run", "mine.yaml", "--overwrite")[0] == 0
    there = {path.name for path in (place / "runs/mine").iterdir()}
    assert there == {".iclgd", "study.yaml", "study.json", "index.html", "page.md", *PARTS}


BUGGY = """
import os
import toy
def run(cell, tools, own=toy.run):
    if cell.spec.k == 3:
        raise ZeroDivisionError("one over nothing")
    return own(cell, tools)
object.__setattr__(toy.LABS["toy"], "run", run)
"""


def test_status_counts_cells_that_raised_as_failed_until_they_are_run(capsys, place):
    (place / "buggy.py").write_text(BUGGY)
    process = started(place, "--plugin", "buggy.py", "study", "run", "mine.yaml")
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "iclgd: 3 of 12 cells failed, 9 are kept in runs/cells." in err
    said = run(capsys, "study", "status", "runs/mine")[1]
    assert rows(said)["a-k=3-scale=1"] == ["0", "0", "3", "0"]
    assert rows(said)["all"] == ["9", "0", "3", "0"]
    assert "the last run ended with: 3 of 12 cells failed" in said
    assert "ran      3 cells" in run(capsys, "study", "run", "mine.yaml")[1]
    said = run(capsys, "study", "status", "runs/mine")[1]
    assert rows(said)["all"] == ["12", "0", "0", "0"]
    assert "ended" not in said


def test_a_run_says_before_its_first_cell_how_long_cells_like_these_took(place, capsys, monkeypatch):
    """On a store that has none of the study's own."""
    assert run(capsys, "toy", "--seeds", 2)[0] == 0
    for path in place.glob("runs/cells/*/record.json"):
        record = json.loads(path.read_text())
        record["provenance"]["seconds"] = 70.0
        del record["sha256"]
        path.write_text(json.dumps(record | {"sha256": key(record)}))
    (place / "more.yaml").write_text("parts: {a: {lab: toy, seeds: '5,6,7'}}\n")
    err = run(capsys, "study", "run", "more.yaml")[2]
    assert err.splitlines()[0].startswith("0 of 3 cells · about 4 min left")


def test_of_several_damaged_cells_the_first_are_named_in_the_plans_order(place, capsys):
    (place / "many.yaml").write_text("parts: {a: {lab: toy, seeds: 8}}\n")
    assert run(capsys, "study", "run", "many.yaml")[0] == 0
    names = [cell["key"][:32] for cell in json.loads((place / "runs/many/study.json").read_text())["parts"][0]["cells"]]
    for name in names[1:6]:
        (place / "runs/cells" / name / "arrays.safetensors").write_bytes(b"")
    (place / "many.yaml").write_text("parts: {a: {lab: toy, seeds: 9}}\n")
    code, _, err = run(capsys, "study", "run", "many.yaml")
    assert code == 2
    assert f"5 cells in runs/cells cannot be read: {', '.join(names[1:4])} and 2 more; remove those folders" in err


def test_a_plan_says_what_it_lists_while_it_takes_long(place, capsys, monkeypatch):
    monkeypatch.setattr("iclgd.report.terminal.EVERY", 0.05)
    own = toy.ToySpec.cells
    monkeypatch.setattr(toy.ToySpec, "cells", lambda self: [time.sleep(0.2), own(self)][1])
    assert run(capsys, "study", "plan", "mine.yaml", "--quiet")[1:] == ("12\n", "")
    code, out, err = run(capsys, "study", "plan", "mine.yaml")
    assert code == 0
    assert set(err.splitlines()) & {f"listing the cells of {name}" for name in PARTS}
    assert "12 cells of 12" in out


def test_one_cell_that_is_not_there_to_be_exported_is_spoken_of_in_the_singular(place, capsys):
    (place / "one.yaml").write_text("parts: {a: {lab: toy, seeds: 1}}\n")
    (place / "cells").mkdir()
    said = refused(capsys, place, "store", "export", "out.tar", "--study", "one.yaml", "--store", "cells")
    assert said == "iclgd: 1 cell of one.yaml is not in cells: run it first.\n"
