"""`iclgd compare` as a user meets it: a whole study of a tiny model, shown, repeated, gone wrong."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import click
import numpy as np
import pytest

import iclgd
from iclgd.cli.lab import command, registries
from iclgd.lab import LABS
from iclgd.nulls import NULLS
from little import little_model, little_task
from said import refused, run

SOURCE = Path(iclgd.__file__).parents[1]
SMALL = ("--k", 3, "--queries", 4, "--device", "cpu", "--metrics", "accuracy,SimAOU,SimAM", "--nulls", "random,uniform")
SWEEP = ("--rates", "0,1e-2,3e38", "--seeds", 2, "--init", "trained,random")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    made = tmp_path_factory.mktemp("place")
    little_model(made / "model")
    little_task(made)
    return made


def args(place, out, *more):
    model, task = place / "model", place / "mine.yaml"
    return ["compare", "--model", model, "--task", task, *SMALL, "--store", place / "cells", "--out", out, *more]


@pytest.fixture(scope="module")
def study(place):
    """Two learners at three rates, one of them zero and one far too large, in a process of its own."""
    path = os.pathsep.join([str(SOURCE), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-c", "from iclgd.cli import main; main()", *args(place, place / "study", *SWEEP)]
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(list(map(str, command)), env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return place / "study", done.stdout, done.stderr


def row(said: str, name: str) -> str:
    return next(line for line in said.splitlines() if line.startswith(name))


def test_a_study_prints_rows_of_learners_nulls_baselines_and_floors_and_only_progress_on_the_error_stream(study):
    folder, said, err = study
    assert all(re.match(r"\d+ of \d+ cells · ", line) for line in err.splitlines())  # progress, where it takes long
    title = "mine · k = 3 · 2 seeds × 4 queries · float32 · at the prompt's last token"
    assert title in " ".join(said.split("\n\n")[1].split())
    for start in ("zero-shot", "icl", "gd 0.01", "  random directions", "  a model with random weights", "lcgd 0.01"):
        assert row(said, start)
    assert max(map(len, said.split("\npage ")[0].splitlines())) <= 80
    everything = iclgd.open(folder).page.text(full=True)
    for start in ("─ nulls", "─ untrained (random)", "─ noise floor"):
        assert row(everything, start)


def test_a_diverging_rate_is_said_to_diverge(study):
    diverged = [line for line in study[1].splitlines() if "diverged in 2 of 2 draws" in line]
    assert {line.split("  ")[0] for line in diverged} == {"gd 3e+38", "lcgd 3e+38"}


def cell(folder: Path, learner: str, metric: str) -> object:
    """What the table of the task has for a learner."""
    table = iclgd.open(folder).table("mine, at the prompt's last token")
    return next(row for row in table.rows if row[0] == learner)[list(table.header).index(metric)]


def test_a_rate_of_zero_has_no_likeness_of_updates_rather_than_one_of_zero(study):
    assert cell(study[0], "gd 0", "SimAOU") == "n/a"
    assert cell(study[0], "gd 0", "SimAM") != "n/a"


def test_a_study_leaves_figures_and_a_page_in_all_forms(study):
    names = {path.name for path in study[0].iterdir()}
    drawn = ("layers-prompt", "layers-label", "gradients", "rates")
    assert {f"{name}.{kind}" for name in drawn for kind in ("svg", "png")} <= names
    assert {"index.html", "study.json", "spec.yaml", "page.md", ".iclgd"} <= names
    assert "diverged in 2 of 2 seeds" in (study[0] / "index.html").read_text(encoding="utf-8")


def test_a_printed_likeness_is_the_mean_of_the_arrays(study):
    opened = iclgd.open(study[0])
    found = opened.arrays(init="trained", learner="gd 0.01", metric="SimAOU", null=None, floor=None, versus=None)
    assert len(found) == 2
    mean = np.mean([one.at(position="prompt").values for one in found])
    printed = cell(study[0], "gd 0.01", "SimAOU")
    assert printed.value == pytest.approx(mean, abs=1e-6)
    assert str(printed) in study[1]


def test_the_same_command_runs_nothing_and_prints_the_same(study, place, capsys):
    code, said, _ = run(capsys, *args(place, place / "study", *SWEEP))
    assert code == 0
    assert said == study[1]


@pytest.mark.parametrize(
    "given, complaint",
    [
        (("--learners", "gd,adam"), 'no learner "adam"'),
        (("--learners", ""), "--learners needs at least one"),
        (("--learners", "gd:rate=-1"), "gd: rate must be at least 0, not -1."),
        (("--learners", "none.py:Noise"), "cannot be read: it must be a Python file"),
        (("--rates", "fast"), '--rates takes a finite number, not "fast"'),
        (("--rates", "1e-3,1.0000001e-3"), "the same to six digits"),
        (("--init", "trained,fresh"), '"fresh" is none of them'),
        (("--position", "middle"), "--position takes prompt, label"),
        (("--task", "sentimant"), "Did you mean sentiment"),
        (("--task", "sst3"), "Did you mean sst5 or sst2"),
        (("--model", "smollm2-153m"), "Did you mean smollm2-135m"),
        (("--k", "1000"), "1000 demonstrations were asked for"),
        (("--learners", "lcgd-paper:trains=all"), "keys and values only"),
    ],
)
def test_bad_arguments_are_answered_with_one_sentence_and_leave_nothing(place, capsys, tmp_path, given, complaint):
    assert complaint in refused(capsys, tmp_path, *args(place, tmp_path / "out", *given))


def test_an_episode_file_takes_no_options_that_would_draw_another(place, capsys, tmp_path):
    for flag, value in (("--k", 7), ("--queries", 3), ("--seeds", 3)):
        said = refused(capsys, tmp_path, "compare", "--model", place / "model", "--task", "episode.json", flag, value)
        assert f"leave out {flag}" in said


def test_data_that_changed_is_another_cell(place, capsys, tmp_path):
    data, plain = place / "mine.csv", ("--learners", "gd", "--init", "trained", "--no-floor", "--json")
    before = data.read_text()
    cells = json.loads(run(capsys, *args(place, tmp_path / "a", *plain))[1])["cells"]
    try:
        data.write_text(before.replace("red", "rose"))
        others = json.loads(run(capsys, *args(place, tmp_path / "b", *plain))[1])["cells"]
    finally:
        data.write_text(before)
    assert set(cells).isdisjoint(others)


def test_no_nulls_leaves_out_all_of_them(place, capsys):
    """Nulls that stand before it count no more."""
    code, said, _ = run(capsys, *args(place, place / "bare", "--no-nulls", "--learners", "gd", "--json"))
    assert code == 0
    assert json.loads(said)["spec"]["nulls"] == []
    assert iclgd.open(place / "bare").arrays(null="random") == []


def test_every_lab_with_nulls_has_a_flag_for_none_of_them_and_of_two_wishes_the_last_counts():
    for name in LABS:
        made, fields = command(name), LABS[name].spec.model_fields
        known = {field for field, info in fields.items() if NULLS in list(registries(info.metadata))}
        flags = {word for one in made.params for word in one.opts if word.startswith("--no-")}
        assert flags == {f"--no-{field}" for field in known}
    parsed = [
        command("compare").make_context("compare", given).params["nulls"]
        for given in ([], ["--no-nulls"], ["--nulls", "random", "--no-nulls"], ["--no-nulls", "--nulls", "random"])
    ]
    assert parsed == [None, "none", "none", "random"]
    assert "--no-nulls" in command("compare").get_help(click.Context(command("compare")))
