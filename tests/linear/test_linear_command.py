"""`iclgd linear` as a user meets it."""

import json
import subprocess
import sys
from contextlib import redirect_stdout
from io import StringIO

import pytest

from iclgd.cli import main

SMALL = ["--dx", "3", "--demos", "5", "--seeds", "2", "--steps", "20", "--batch", "8", "--episodes", "60"]


def iclgd(*words):
    main(["linear", *words])


def refused(capsys, *words):
    with pytest.raises(SystemExit) as stop:
        iclgd(*words)
    assert stop.value.code == 2
    return capsys.readouterr().err


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run with its pictures, and what it printed."""
    folder = tmp_path_factory.mktemp("runs") / "one"
    with redirect_stdout(StringIO()) as shown:
        iclgd("train", *SMALL, "--compare", "gd,preconditioned", "--out", str(folder))
    return folder, shown.getvalue()


@pytest.fixture
def no_pictures(monkeypatch):
    monkeypatch.setattr("iclgd.labs.linear.figures.draw", lambda result, folder: [])


def test_training_leaves_figures_and_a_record(run):
    run, _ = run
    names = {f"{name}.{suffix}" for name in ("training", "weights", "shifts", "learners") for suffix in ("svg", "png")}
    assert {path.name for path in run.iterdir()} == names | {"record.json"}
    record = json.loads((run / "record.json").read_text())
    assert record["experiment"]["seeds"] == 2
    assert len(record["loss"]) == 2
    assert list(record["references"]) == ["gd ×1", "preconditioned gd"]
    assert record["curves"]["step"][-1] == 20


@pytest.mark.usefixtures("no_pictures")
def test_the_command_it_prints_repeats_the_numbers(run, tmp_path):
    folder, shown = run
    line = next(line for line in shown.splitlines() if line.startswith("repeat"))
    words = line.split()[3:]
    words[words.index(str(folder))] = str(tmp_path / "again")
    iclgd(*words)
    again = json.loads((tmp_path / "again" / "record.json").read_text())
    assert again == json.loads((folder / "record.json").read_text())


@pytest.mark.usefixtures("no_pictures")
def test_the_table_says_what_was_run_what_came_out_and_compared_with_what(capsys, tmp_path):
    iclgd("train", *SMALL, "--layers", "2", "--shared", "--compare", "gd,gd++", "--out", str(tmp_path / "run"))
    shown = capsys.readouterr().out
    for part in (
        "2 layers of linear attention",
        "2 seeds × 20 steps",
        "gd ×2",
        "gd++ ×2",
        "null: untrained",
        "after layer 2",
    ):
        assert part in shown


def test_a_folder_with_files_is_refused_and_kept(run, capsys):
    run, _ = run
    before = (run / "record.json").read_bytes()
    assert "has files in it" in refused(capsys, "train", *SMALL, "--out", str(run))
    assert (run / "record.json").read_bytes() == before


@pytest.mark.parametrize(
    "words, sentence",
    [
        (["--demos", "0"], "at least one demonstration"),
        (["--task", "lineer"], "Did you mean linear"),
        (["--compare", "gdd"], "Did you mean gd"),
        (["--attention", "softmx"], 'no attention "softmx"'),
        (["--rate", "1e9", "--layers", "3", "--steps", "50"], "diverged"),
        (["--rate", "-1"], "learning rate of -1 trains nothing; give a positive one"),
        (["--clip", "0"], "clipping norm of 0"),
        (["--noise", "nan"], "noise is a standard deviation"),
        (["--seeds", "0"], "at least one"),
        (["--task", "tree", "--dy", "2"], "one output"),
        (["--layers", "many"], "not a valid integer"),
        (["--task", "sine", "--dx", "1", "--width", "0"], "give the model an MLP"),
    ],
)
def test_what_cannot_be_run_gets_a_sentence(capsys, tmp_path, words, sentence):
    error = refused(capsys, "train", *SMALL, *words, "--out", str(tmp_path / "none"))
    assert sentence in error
    assert error.count("\n") == 1
    assert not (tmp_path / "none").exists()


def test_optimum_prints_closed_forms(capsys):
    iclgd("optimum", "--steps", "2", "--sample", "300")
    shown = capsys.readouterr().out
    assert ".2062" in shown
    assert "6.061" in shown
    assert "gd++ ×2 untied 1" in shown
    assert "linear functions, not Tree" in refused(capsys, "optimum", "--task", "tree")


def test_help_does_not_import_torch():
    code = "import sys, iclgd.cli.linear; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
