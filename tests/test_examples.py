"""Every example runs as a script and as a plugin."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import iclgd
from little import little_model

EXAMPLES = Path(__file__).parents[1] / "examples"
SOURCE = Path(iclgd.__file__).parents[1]
SHOWN = {
    "model": ("gd 0.001", "Name: value"),
    "learner": ("noise scale=100", "gd 0.001"),
    "metric": ("same sign", "SimAOU"),
    "null": ("another layer's update",),
    "task": ("gd 0.001", "icl"),
    "claim": ("example.random-directions", "holds"),
    "lab": ("in 16 dimensions", "root mean square"),
}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    made = tmp_path_factory.mktemp("examples")
    little_model(made / "tiny")
    return made


def run(place: Path, *command) -> str:
    path = os.pathsep.join([str(SOURCE), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "ICLGD_STORE": str(place / "cells")}
    done = subprocess.run(
        [sys.executable, *map(str, command)], env=environment, cwd=place, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def command(place: Path, *args) -> str:
    return run(place, "-c", "from iclgd.cli import main; main()", *args)


def compare(place: Path, *args) -> str:
    small = ("--model", place / "tiny", "--k", 3, "--queries", 4, "--init", "trained", "--no-floor", "--full")
    return command(place, "compare", *small, *args)


def test_there_is_an_example_of_every_extension():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(SHOWN)


@pytest.mark.parametrize("name", SHOWN)
def test_an_example_runs_by_itself(place, name):
    out = run(place, EXAMPLES / f"{name}.py")
    for part in SHOWN[name]:
        assert part in out


def test_a_learner_is_named_by_a_plugin_or_by_its_file(place):
    plugin, task = EXAMPLES / "learner.py", ("--task", EXAMPLES / "colours.yaml", "--nulls", "random")
    assert "\nnoise scale=3 " in compare(place, "--plugin", plugin, "--learners", "noise:scale=3", *task)
    assert "\nNoise scale=2 " in compare(place, "--learners", f"{plugin}:Noise:scale=2", *task)


def test_metric_null_and_task_are_known_by_their_plugins(place):
    plugins = ("--plugin", f"{EXAMPLES / 'metric.py'},{EXAMPLES / 'null.py'}", "--plugin", EXAMPLES / "task.py")
    given = ("--metrics", "signs,SimAOU", "--nulls", "other-layer:step=2", "--task", "colours", "--learners", "gd")
    out = compare(place, *plugins, *given)
    assert "another layer's update (step=2)" in out
    assert "same sign" in out


def test_lab_and_claim_are_known_by_their_plugins(place):
    assert "in 8 dimensions" in command(place, "--plugin", EXAMPLES / "lab.py", "chance", "--dim", 8)
    assert "The squared cosine" in command(place, "claims", "--plugin", EXAMPLES / "claim.py")
