"""`iclgd compare` as a user meets it: a whole study of a tiny model, cut short, repeated, gone wrong."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import load_file

import iclgd
from iclgd.engine import serial
from little import little_model, little_task
from said import refused, run

SOURCE = str(Path(iclgd.__file__).parents[1])
# sums depend on how many threads share them: other processes use as many as conftest.py sets here
SAME_THREADS = {**os.environ, "PYTHONPATH": SOURCE, "OMP_NUM_THREADS": "1"}
SMALL = ("--k", 3, "--queries", 4, "--device", "cpu")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    made = tmp_path_factory.mktemp("place")
    little_model(made / "model")
    little_task(made)
    return made


def args(place, out, *more):
    return ["compare", "--model", place / "model", "--task", place / "mine.yaml", *SMALL, "--out", out, *more]


SWEEP = ("--lr", "0,1e-2,3e38", "--seeds", 2, "--init", "trained,random")


@pytest.fixture(scope="module")
def study(place):
    """Two learners at three rates, one of them zero and one far too large, in a process of its own."""
    command = [sys.executable, "-c", "from iclgd.cli import main; main()", *args(place, place / "study", *SWEEP)]
    done = subprocess.run(list(map(str, command)), env=SAME_THREADS, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return place / "study", done.stdout, done.stderr


def row(said: str, name: str) -> str:
    return next(line for line in said.splitlines() if line.startswith(name))


def cells_of(folder: Path) -> dict[str, dict]:
    return {path.parent.name: load_file(path) for path in (folder / "cells").glob("[!.]*/arrays.safetensors")}


def assert_same_bits(one: dict[str, dict], two: dict[str, dict]) -> None:
    assert one.keys() == two.keys()
    for cell in one:
        assert one[cell].keys() == two[cell].keys()
        for name, array in one[cell].items():
            assert array.numpy().tobytes() == two[cell][name].numpy().tobytes(), f"{cell} {name}"


@pytest.fixture
def undrawn(monkeypatch):
    """Figures take most of a little study's time, and are looked at elsewhere."""
    monkeypatch.setattr("iclgd.report.study.draw_all", lambda _comparison: iter(()))


# what it shows and leaves


def test_a_study_prints_rows_of_learners_nulls_baselines_and_floors_and_nothing_on_the_error_stream(study):
    _, said, err = study
    assert err == ""
    title = "mine.yaml · k = 3 · 2 seeds × 4 queries · float32 · at the prompt's last token"
    assert said.splitlines()[0].endswith(title)
    for start in ("zero-shot", "icl", "gd 0.01", "lcgd 0.01", "─ nulls", "─ untrained (random)", "─ noise floor"):
        assert row(said, start)
    assert "lcgd − gd at 0.01" in said


def test_a_diverging_rate_is_said_to_diverge_and_is_averaged_into_nothing(study):
    folder, said, _ = study
    diverged = [line for line in said.splitlines() if "diverged" in line]
    assert len(diverged) == 4  # two learners, trained and untrained
    assert all(line.split("  ")[0] in ("gd 3e+38", "lcgd 3e+38") for line in diverged)
    assert all("diverged in 2 of 2 seeds" in line for line in diverged)
    record = json.loads((folder / "record.json").read_text())
    assert {found["learner"] for found in record["estimates"]}.isdisjoint({"gd 3e+38", "lcgd 3e+38"})
    assert all(cell["diverged"] == ["gd 3e+38", "lcgd 3e+38"] for cell in record["cells"].values())


def test_a_rate_of_zero_has_no_likeness_rather_than_one_of_zero(study):
    folder, said, _ = study
    assert row(said, "gd 0 ").count("n/a") == 3
    record = json.loads((folder / "record.json").read_text())
    assert {e["metric"] for e in record["estimates"] if e["learner"] == "gd 0" and e["null"] is None} == {"SimAM", "τ"}


def test_the_best_of_the_sweep_says_that_it_is_one_and_ignores_what_is_undefined(study):
    said = study[1]
    best = row(said, "gd, best of 3 rates, column by column")
    assert "n/a" not in best
    value = row(said, "gd 0.01").split("  ")
    likeness = [cell for cell in value if "[" in cell][2].split()[0]  # after the two accuracies
    assert likeness in best


def test_a_study_leaves_figures_a_page_tables_and_a_strict_record(study):
    folder, _, _ = study
    names = {path.name for path in folder.iterdir()}
    drawn = ("layers-prompt", "layers-label", "alpha", "gradients", "rates")
    assert {f"{name}.{kind}" for name in drawn for kind in ("svg", "png")} <= names
    assert {"index.html", "record.json", "spec.yaml", "tables.md", "cells", ".iclgd"} <= names

    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    record = json.loads((folder / "record.json").read_text(encoding="utf-8"), parse_constant=refuse)
    assert len(record["cells"]) == 4
    page = (folder / "index.html").read_text(encoding="utf-8")
    assert "<svg" in page
    assert "diverged in 2 of 2 seeds" in page


def test_a_printed_likeness_is_the_mean_of_the_arrays(study):
    folder, said, _ = study
    record = json.loads((folder / "record.json").read_text())
    wanted = {"init": "trained", "learner": "gd 0.01", "metric": "SimAOU", "null": None, "position": "prompt"}
    found = next(e for e in record["estimates"] if wanted.items() <= e.items())
    cells = cells_of(folder)
    spec = {
        name: json.loads((folder / "cells" / name / "record.json").read_text())["spec"]["model"]["init"]
        for name in cells
    }
    trained = [cells[name]["gd 0.01/SimAOU"][0].double().numpy() for name in cells if spec[name] == "trained"]
    assert found["mean"] == pytest.approx(float(np.mean(trained)), abs=1e-6)
    assert found["low"] <= found["mean"] <= found["high"]
    assert f"{found['mean']:.3f}".replace("0.", ".", 1) in row(said, "gd 0.01")


# again, and on


@pytest.mark.usefixtures("undrawn")
def test_the_same_command_gives_the_same_bits(study, place, capsys, tmp_path):
    """In another process and another folder."""
    code, said, _ = run(capsys, *args(place, tmp_path / "again", *SWEEP))
    assert code == 0
    assert_same_bits(cells_of(study[0]), cells_of(tmp_path / "again"))
    assert said.splitlines()[:-2] == study[1].splitlines()[:-2]  # all but the folder's name
    assert (tmp_path / "again" / "record.json").read_bytes() == (study[0] / "record.json").read_bytes()


def counted(monkeypatch) -> list[str]:
    """The cells that are run from now on."""
    ran, really = [], serial.run_cell

    def count(subject, cell, *rest):
        ran.append(cell.key()[:16])
        return really(subject, cell, *rest)

    monkeypatch.setattr(serial, "run_cell", count)
    return ran


KILLED = """
import sys, time
from pathlib import Path
from iclgd.cli import main
from iclgd.store import cells

save, calls = cells.save_file, []

def slow(arrays, path):
    calls.append(path)
    if len(calls) == 2:
        save(dict(list(arrays.items())[:1]), path)
        Path(sys.argv[1]).touch()
        time.sleep(60)
    save(arrays, path)

cells.save_file = slow
main(sys.argv[2:])
"""
PLAIN = ("--lr", "1e-2", "--seeds", 3, "--init", "trained", "--learners", "gd")


@pytest.mark.usefixtures("undrawn")
def test_a_study_killed_while_it_writes_a_cell_has_whole_cells_only_and_the_same_command_finishes_it(
    place, capsys, tmp_path, monkeypatch
):
    marker, cut, whole = tmp_path / "writing", tmp_path / "cut", tmp_path / "whole"
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(marker), *map(str, args(place, cut, *PLAIN))],
        env=SAME_THREADS,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    while not marker.exists() and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=30)
    assert process.returncode == -signal.SIGKILL
    before = cells_of(cut)
    assert len(before) == 1
    assert not (cut / "index.html").exists()

    ran = counted(monkeypatch)
    code, said, _ = run(capsys, *args(place, cut, *PLAIN))
    assert code == 0
    assert len(ran) == 2
    assert set(ran).isdisjoint(before)
    assert run(capsys, *args(place, whole, *PLAIN))[0] == 0
    assert_same_bits(cells_of(cut), cells_of(whole))

    ran.clear()  # and once more: nothing is left to do, and --spec says the same
    assert run(capsys, "compare", "--spec", cut / "spec.yaml", "--out", cut)[1] == said
    assert ran == []
    assert run(capsys, *args(place, cut, *PLAIN, "--overwrite"))[0] == 0
    assert len(ran) == 3


# bad input


@pytest.mark.parametrize(
    "given, complaint",
    [
        (("--learners", "gd,adam"), '"adam" is none of them'),
        (("--learners", ""), "--learners takes gd, lcgd, lcgd-paper"),
        (("--lr", "fast"), '"fast" is not that'),
        (("--lr", "nan"), "0 and above"),
        (("--lr", "-1"), "0 and above"),
        (("--lr", "1e-3,1.0000001e-3"), "the same to six digits"),
        (("--init", "trained,fresh"), '"fresh" is none of them'),
        (("--seeds", "0"), "at least one draw"),
        (("--seeds", "x"), '"x" is not that'),
        (("--seeds", f"{2**32},"), "below 4294967296"),
        (("--clip", "0"), "--clip"),
        (("--clip", "nan"), "--clip"),
        (("--order", str(2**32)), "--order"),
        (("--epochs", "0"), "--epochs"),
        (("--position", "middle"), "--position"),
        (("--task", "sentimant"), "Did you mean sentiment"),
        (("--task", "sst3"), "Did you mean sst5 or sst2"),
        (("--task", ","), "`iclgd tasks` lists all"),
        (("--model", "smollm2-153m"), "Did you mean smollm2-135m"),
        (("--k", "1000"), "1000 demonstrations were asked for"),
        (("--k", "30"), "do not fit the model's context"),
        (("--learners", "gd,lcgd-paper", "--trains", "all"), "use --trains kv"),
        (("--spec", "/no/such/spec.yaml"), "cannot read /no/such/spec.yaml"),
    ],
)
def test_bad_arguments_are_answered_with_one_sentence_and_leave_nothing(place, capsys, tmp_path, given, complaint):
    assert complaint in refused(capsys, tmp_path, *args(place, tmp_path / "out", *given))


@pytest.mark.parametrize("text", ["learners: []", "tasks: []", "seeds: [-1]", "speed: 3", "- a", "{", "seeds: [0.5]"])
def test_a_spec_that_is_none_is_refused(capsys, tmp_path, text):
    (tmp_path / "spec.yaml").write_text(text)
    said = refused(capsys, tmp_path, "compare", "--spec", tmp_path / "spec.yaml", "--out", tmp_path / "out")
    assert "is not the spec of a study" in said


def test_the_folder_of_another_study_is_left_alone(study, place, capsys):
    said = refused(capsys, study[0], *args(place, study[0], "--lr", "1e-4"))
    assert "exists already" in said


def test_a_folder_that_iclgd_did_not_write_is_left_alone_even_with_overwrite(place, capsys, tmp_path):
    (tmp_path / "thesis.tex").touch()
    assert "exists already" in refused(capsys, tmp_path, *args(place, tmp_path))
    assert "not written by iclgd" in refused(capsys, tmp_path, *args(place, tmp_path, "--overwrite"))


def test_a_damaged_cell_is_named_and_what_to_do_about_it(study, place, capsys, tmp_path):
    copied = tmp_path / "copy"
    shutil.copytree(study[0], copied)
    damaged = next((copied / "cells").glob("[!.]*/arrays.safetensors"))
    damaged.write_bytes(b"")
    said = refused(capsys, tmp_path, *args(place, copied, *SWEEP))
    assert str(damaged.parent) in said
    assert "remove that folder and run again" in said


def test_a_study_begun_with_other_data_is_not_mixed_with_these(study, place, capsys, tmp_path):
    copied, data = tmp_path / "copy", place / "mine.csv"
    shutil.copytree(study[0], copied)
    before = data.read_text()
    try:
        data.write_text(before.replace("red", "rose"))
        assert "was begun with other examples" in refused(capsys, tmp_path, *args(place, copied, *SWEEP))
    finally:
        data.write_text(before)


def test_overwriting_keeps_the_old_study_until_there_is_something_new(study, place, capsys, tmp_path):
    copied = tmp_path / "copy"
    shutil.copytree(study[0], copied)
    refused(capsys, tmp_path, *args(place, copied, "--overwrite", "--model", tmp_path / "none"))
    assert (copied / "index.html").is_file()
