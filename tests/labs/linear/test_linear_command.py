"""`iclgd linear` as a user meets it."""

import json
import subprocess
import sys
from contextlib import redirect_stdout
from io import StringIO

import pytest

import iclgd.labs  # noqa: F401  registers the labs
from iclgd.cli import main
from iclgd.labs.linear.run import together
from iclgd.labs.linear.spec import OptimumSpec, TrainSpec
from iclgd.small.fast import RULES
from iclgd.small.kernels import KERNELS
from iclgd.small.known import KINDS, REFERENCES
from iclgd.study import open_study
from iclgd.tasks.families import FAMILIES
from iclgd.tools import Tools

SMALL = ["--dx", "3", "--k", "5", "--seeds", "2", "--steps", "20", "--batch", "8", "--episodes", "60"]


def iclgd_linear(*words):
    main(["linear", *words])


def refused(capsys, *words):
    with pytest.raises(SystemExit) as stop:
        iclgd_linear(*words)
    assert stop.value.code == 2
    return capsys.readouterr().err


def test_the_optimum_of_a_sine_is_refused_for_what_it_is(capsys):
    assert "only a linear family has a best step in closed form" in refused(capsys, "optimum", "--task", "sine")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run with its pictures, and what it printed."""
    folder = tmp_path_factory.mktemp("runs")
    with redirect_stdout(StringIO()) as shown:
        where = ["--out", str(folder / "one"), "--store", str(folder / "cells")]
        iclgd_linear("train", *SMALL, "--learners", "gd,preconditioned", *where)
    return folder / "one", shown.getvalue()


def test_training_leaves_figures_a_page_and_a_study_that_opens_again(run):
    folder, _ = run
    pictures = {
        f"{name}.{kind}" for name in ("training", "weights", "shifts", "learners") for kind in ("svg", "pdf", "png")
    }
    assert {path.name for path in folder.iterdir()} == pictures | {
        "index.html",
        "page.md",
        "spec.yaml",
        "study.json",
        ".iclgd",
    }
    again = open_study(folder)
    assert again.answer == json.loads((folder / "study.json").read_text())["answer"]
    assert len(again.arrays(quantity="loss", learner="trained")) == 2


def test_the_command_it_prints_shows_the_same_without_training(run, capsys):
    _, shown = run
    line = next(line for line in shown.splitlines() if line.startswith("repeat"))
    main(line.split()[2:])
    assert capsys.readouterr().out == shown


def test_what_is_shown_fits_a_hundred_columns_and_says_what_was_run(run):
    _, shown = run
    assert max(len(line) for line in shown.splitlines() if not line.startswith(("page", "repeat"))) <= 100
    for part in ("k = 5", "1 layer of linear attention", "2 seeds × 20 steps", "null: untrained", "After each layer"):
        assert part in shown


def test_a_folder_of_another_study_is_refused_and_kept(run, capsys):
    folder, _ = run
    before = (folder / "study.json").read_bytes()
    assert str(folder) in refused(capsys, "train", *SMALL, "--noise", "1", "--out", str(folder))
    assert (folder / "study.json").read_bytes() == before


@pytest.mark.parametrize(
    "words, sentence",
    [
        (["--k", "0"], "--k must be at least 1"),
        (["--task", "lineer"], "Did you mean linear"),
        (["--learners", "gdd"], "Did you mean gd"),
        (["--attention", "softmx"], 'no attention "softmx"'),
        (["--rate", "1e9", "--layers", "3", "--steps", "50"], "diverged"),
        (["--rate", "-1"], "--rate must be above 0"),
        (["--clip", "0"], "--clip must be above 0"),
        (["--noise", "nan"], "--noise takes a finite number"),
        (["--seeds", "0"], "--seeds takes from 1"),
        (["--task", "tree", "--dy", "2"], "one output"),
        (["--layers", "many"], "--layers takes a whole number"),
        (["--task", "sine", "--dx", "1", "--width", "0"], "give the model an MLP with --width 40"),
        (["--task", "sine"], "leave out --dx"),
    ],
)
def test_what_cannot_be_run_gets_a_sentence(capsys, tmp_path, words, sentence):
    where = ["--out", str(tmp_path / "none"), "--store", str(tmp_path / "cells")]
    error = refused(capsys, "train", *SMALL, *words, *where)
    assert sentence in error
    assert error.splitlines()[-1].startswith("iclgd: ")
    assert not (tmp_path / "none").exists()


def test_optimum_prints_closed_forms(capsys, tmp_path):
    iclgd_linear("optimum", "--steps", "2", "--sample", "300", "--store", str(tmp_path))
    shown = " ".join(capsys.readouterr().out.split())
    for part in (".2062", "6.061", "gd++ ×2 untied 1", "the zero predictor has .4167"):
        assert part in shown
    assert "linear functions, not Tree" in refused(capsys, "optimum", "--task", "tree")


def test_help_names_every_family_attention_and_learner():
    fields = TrainSpec.model_fields
    for field, known in (("task", FAMILIES), ("attention", KINDS), ("learners", REFERENCES)):
        words = fields[field].description.replace(",", " ").replace(".", " ").split()
        assert set(known) <= set(words), field
    assert all(OptimumSpec.of({"task": name, "steps": 1}) for name in ("linear", "gaussian", "skewed"))


def test_every_kind_of_layer_is_known_by_name_without_importing_it():
    assert ("softmax", *KERNELS, *RULES) == KINDS


def test_help_does_not_import_torch():
    code = (
        "import sys; from contextlib import suppress; from iclgd.cli import main\n"
        "main(['linear', 'train', '--help']); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


def test_learners_are_honoured_behind_an_mlp_and_beside_its_own():
    given = {"task": "sine", "steps": 2, "batch": 4, "episodes": 20, "seeds": 1, "width": 4, "hidden": 4}
    for learners, names in (({}, []), ({"learners": "gd,nearest"}, ["gd ×1", "3 nearest"])):
        (result,) = together(TrainSpec.of(given | learners).cells(), Tools())
        held = [one.labels["learner"] for one in result.select(quantity="likeness")]
        assert [name for name in held if name != "zero"] == ["gd ×1 on learned features", *names]
        assert TrainSpec.of(given | learners).learners == tuple(learners.get("learners", "").split(",")) or not learners


def test_no_learner_at_all_is_refused_where_there_is_no_mlp(capsys):
    assert "--learners needs at least one name" in refused(capsys, "train", "--learners", "")


def test_a_family_without_a_linear_part_is_refused_by_name_whatever_a_sample_says(capsys):
    for name in ("gd", "gd++", "momentum", "preconditioned", "ridge"):
        error = refused(capsys, "train", "--task", "quadratic", "--learners", f"nearest,{name}")
        assert f"{name} at its best answers 0" in error
    assert "no linear part" in refused(capsys, "train", "--task", "quadratic")
    assert TrainSpec.of({"task": "quadratic", "learners": "nearest,averaging"}).learners == ("nearest", "averaging")


def test_the_reference_on_learned_features_does_not_depend_on_how_many_seeds_there_are():
    given = {"task": "sine", "steps": 3, "batch": 4, "episodes": 20, "width": 4, "hidden": 4}
    found = []
    for seeds in ("0", "0,5,6"):
        result = next(iter(together(TrainSpec.of(given | {"seeds": f"{seeds},"}).cells(), Tools())))
        (own,) = result.select(quantity="loss", learner="gd ×1 on learned features")
        found.append(float(own.values))
    assert found[0] == found[1]
