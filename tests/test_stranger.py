"""A package outside the repository, really installed: one file each for a learner with an option of its own, a metric,
a null, a task, a claim and a lab. Nothing here is edited for it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import iclgd
from little import little_model

EXAMPLES = Path(__file__).parents[1] / "examples"
SOURCE = Path(iclgd.__file__).parents[1]
PROJECT = """
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"
[project]
name = "iclgd-stranger"
version = "1.2"
description = "Somebody else's additions."
[project.entry-points."iclgd.learners"]
noise = "stranger.learner:Noise"
[project.entry-points."iclgd.metrics"]
signs = "stranger.metric:signs"
[project.entry-points."iclgd.nulls"]
other-layer = "stranger.null:OtherLayer"
[project.entry-points."iclgd.tasks"]
colours = "stranger.task:TASK"
[project.entry-points."iclgd.claims"]
"example.random-directions" = "stranger.claim:CLAIM"
"example.broken" = "stranger.broken:CLAIM"
[project.entry-points."iclgd.labs"]
chance = "stranger.lab:CHANCE"
[tool.setuptools]
packages = ["stranger"]
[tool.setuptools.package-data]
stranger = ["*.yaml", "*.csv"]
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """The examples as a package, built and installed into a folder of its own; a tiny model."""
    made = tmp_path_factory.mktemp("stranger")
    shutil.copytree(EXAMPLES, made / "project" / "stranger", ignore=shutil.ignore_patterns("__pycache__", "model.py"))
    (made / "project" / "pyproject.toml").write_text(PROJECT)
    (made / "project" / "stranger" / "broken.py").write_text("raise RuntimeError('not today')\n")
    offline = ["--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check", "--quiet"]
    install = [sys.executable, "-m", "pip", "install", *offline, "--target", made / "site", made / "project"]
    done = subprocess.run(list(map(str, install)), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    little_model(made / "model")
    return made


def python(place: Path, *args, code: str = "from iclgd.cli import main; main()") -> subprocess.CompletedProcess:
    path = os.pathsep.join([str(SOURCE), str(place / "site"), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "ICLGD_STORE": str(place / "cells")}
    environment["COLUMNS"] = "200"
    command = [sys.executable, "-c", code, *map(str, args)]
    return subprocess.run(command, env=environment, cwd=place, capture_output=True, text=True)


def said(place: Path, *args) -> str:
    done = python(place, *args)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def study(place):
    given = ("--learners", "gd,noise:scale=2", "--metrics", "accuracy,signs", "--nulls", "other-layer:step=2,random")
    small = ("--model", place / "model", "--task", "colours", "--k", 3, "--queries", 4, "--init", "trained")
    return said(place, "compare", *small, *given, "--no-floor", "--rates", "0.001,0.01", "--out", place / "study")


def row(text: str, name: str) -> str:
    return next(line for line in text.splitlines() if line.startswith(name))


def test_the_help_has_the_lab_and_says_whose_it_is_without_importing_it(place):
    assert "from iclgd-stranger: Somebody else's additions." in row(said(place, "--help"), "  chance")
    code = "import sys; from iclgd.cli import main; main(); assert not {m for m in sys.modules if 'stranger' in m}"
    assert python(place, "--help", code=code).returncode == 0


def test_the_help_of_compare_has_learner_metric_null_and_task(place):
    text = " ".join(said(place, "compare", "--help").split()).replace("- ", "-")  # words broken at a hyphen
    assert "in-context-vector, noise." in text
    assert "margins-recovered-centred, signs." in text
    assert "other-task, other-layer." in text
    assert "trec, colours." in text


def test_what_is_known_has_them_all_with_their_options(place):
    text = said(place, "known")
    assert row(text, "noise ").endswith("scale=1.0 seed=0")
    assert row(text, "other-layer").endswith("step=1")
    assert "Random weights nearby" in row(text, "noise ")
    assert "Share of coordinates" in row(text, "signs")
    assert "How alike two random directions are" in row(text, "chance")
    assert "the colour of a thing" in row(text, "colours")


def test_the_tasks_have_the_task(place):
    assert row(said(place, "tasks"), "colours").split()[1:3] == ["2", "here"]


def test_the_claims_have_the_claim_and_one_that_cannot_be_loaded_hides_no_other(place):
    text = said(place, "claims")
    assert "The squared cosine" in text
    assert "cannot be loaded: RuntimeError: not today" in " ".join(text.split())
    assert "SimAOU_norm gives" in text


def test_the_claim_runs(place):
    assert "✓ example.random-directions  holds" in said(place, "claims", "run", "example.random-directions")


def test_the_labs_command_runs_with_its_own_option(place):
    text = said(place, "chance", "--dim", 4, "--seeds", 2)
    assert "in 4 dimensions" in text
    assert row(text, "repeat").startswith("repeat   iclgd chance --spec ")


def test_the_tables_of_a_comparison_have_learner_metric_and_null(study):
    assert "same sign" in study
    assert row(study, "noise scale=2")
    assert row(study, "  another layer's update (step=2)")


def test_the_page_and_the_figures_of_a_comparison_have_them(study, place):
    page = (place / "study" / "index.html").read_text(encoding="utf-8")
    assert "noise scale=2" in page
    assert "same sign" in page
    code = """
import iclgd
drawn = iclgd.open("study").figure("layers-prompt")
titles = [axes.get_title(loc="left") for axes in drawn.axes]
print(*titles, *(text.get_text() for text in drawn.legends[0].get_texts()), sep="|")
"""
    done = python(place, code=code)
    assert done.returncode == 0, done.stderr
    shown = done.stdout.strip().split("|")
    assert shown[0] == "same sign"
    assert {"noise scale=2", "gd: another layer's update (step=2)", "noise scale=2: random directions"} <= set(shown)
    assert len({"gd 0.001", "gd 0.01"} & set(shown)) == 1  # the more alike of the two
