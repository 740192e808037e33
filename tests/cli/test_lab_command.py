"""A lab's command, made from its spec: options, files, folders, the line that repeats it."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import iclgd
import toy
from iclgd.lab import GROUPS
from said import refused, run

SOURCE = Path(iclgd.__file__).parents[1]


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ICLGD_STORE", raising=False)
    toy.RAN.clear()
    return tmp_path


def page(capsys, *args) -> dict:
    code, out, err = run(capsys, "toy", "--json", *args)
    assert code == 0, err
    return json.loads(out)


def test_the_help_has_every_field_with_its_default(capsys):
    text = " ".join(run(capsys, "toy", "--help")[1].split())
    for part in ("How large random numbers are.", "--scale X How large. [default: 1.0]", "--k N", "--loud Say it"):
        assert part in text


def test_the_help_says_what_every_group_of_labs_is_about(capsys):
    text = " ".join(run(capsys, "--help")[1].split())
    assert "dual Softmax attention as one gradient step on a kernel model. (check, bound, modify, train)" in text
    for group in ("dual", "languages", "linear"):
        assert GROUPS[group] in run(capsys, group, "--help")[1]


def test_a_lab_that_leaves_no_folder_unasked_does_not_say_that_it_does(capsys):
    assert "runs/<what>" not in run(capsys, "linear", "optimum", "--help")[1]
    assert "runs/<what>" in run(capsys, "trace", "--help")[1]


def test_known_spells_options_as_they_are_typed_and_tells_two_kinds_of_learner_apart(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    said = run(capsys, "known")[1]
    assert "clip=none" in said
    assert "learner of iclgd linear train" in said
    assert max(map(len, said.splitlines())) <= 100


@pytest.mark.parametrize("lab", ["compare", "trace"])
def test_reading_no_demonstrations_is_refused(capsys, place, lab):
    assert "--k must be at least 1, not 0." in refused(capsys, place, lab, "--k", "0")


def test_a_study_prints_its_answer_its_tables_its_page_and_how_to_repeat_it(capsys, place):
    code, out, err = run(capsys, "toy", "--seeds", 2)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].startswith("The mean is ")
    assert lines[2] == "2 seeds"
    folder = next(path for path in (place / "runs").iterdir() if path.name.startswith("toy-"))
    assert f"page     runs/{folder.name}/index.html" in out
    assert lines[-1] == f"repeat   iclgd toy --spec {folder}/spec.yaml"


def test_an_option_beside_a_spec_wins(capsys, place):
    (place / "x.yaml").write_text("k: 7\nscale: 3\n")
    assert page(capsys, "--spec", "x.yaml")["spec"]["k"] == 7
    found = page(capsys, "--spec", "x.yaml", "--k", 2, "--out", "other")["spec"]
    assert (found["k"], found["scale"]) == (2, 3)


def test_json_is_the_page_with_numbers_as_numbers(capsys):
    found = page(capsys, "--seeds", 2)
    assert found["lab"] == "toy"
    assert len(found["cells"]) == 2
    table = found["sections"][0]["table"]
    assert table["header"] == ["seed", "mean"]
    assert isinstance(table["rows"][0][1]["value"], float)
    assert found["answer"].startswith("The mean is ")


def test_the_repeat_line_works_as_printed_from_another_folder_and_runs_nothing(capsys, place, monkeypatch):
    line = run(capsys, "toy", "--seeds", 2, "--k", 3)[1].splitlines()[-1].removeprefix("repeat   iclgd ")
    first = run(capsys, *shlex.split(line))[1]
    (place / "elsewhere").mkdir()
    monkeypatch.chdir(place / "elsewhere")
    assert run(capsys, *shlex.split(line))[1].splitlines()[:-2] == first.splitlines()[:-2]
    assert len(toy.RAN) == 2
    assert list((place / "elsewhere").iterdir()) == []


def test_the_repeat_line_of_a_plugins_lab_works_in_a_fresh_process_elsewhere(place):
    path = os.pathsep.join([str(SOURCE), os.environ.get("PYTHONPATH", "")])
    plugin = os.path.relpath(toy.__file__, place)

    def iclgd_(folder, *args):
        command = [sys.executable, "-c", "from iclgd.cli import main; main()", *args]
        done = subprocess.run(
            command, cwd=folder, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    said = iclgd_(place, "toy", "--plugin", plugin, "--seeds", "2")
    (place / "elsewhere").mkdir()
    again = iclgd_(place / "elsewhere", *shlex.split(said.splitlines()[-1])[2:])
    assert again.splitlines()[:-2] == said.splitlines()[:-2]


@pytest.mark.parametrize(
    "given, complaint",
    [
        (("--k", "0"), "--k must be at least 1, not 0."),
        (("--k", "101"), "--k must be at most 100, not 101."),
        (("--k", "many"), '--k takes a whole number, not "many".'),
        (("--scale", "0"), "--scale must be above 0, not 0."),
        (("--scale", "nan"), "--scale takes a finite number"),
        (("--seeds", "0"), "--seeds takes from 1 to 10000 draws"),
        (("--seeds", "x"), '--seeds takes a whole number, not "x".'),
        (("--sclae", "1"), "No such option"),
        (("--spec", "none.yaml"), "cannot read none.yaml"),
        (("--jobs", "0"), "--jobs must be at least 1, not 0."),
        (("--jobs", "two"), '--jobs takes a whole number, not "two".'),
        (("extra",), "Got unexpected extra argument (extra). See"),
        (("--plugin", "none.py"), "the plugin none.py cannot be read"),
    ],
)
def test_bad_arguments_are_answered_with_one_sentence_and_leave_nothing(capsys, place, given, complaint):
    assert complaint in refused(capsys, place, "toy", *given)
    assert toy.RAN == []


@pytest.mark.parametrize(
    "text, complaint",
    [
        ("speed: 3", 'there is no field "speed"'),
        ("seeds: [-1]", "--seeds must be at least 0"),
        ("seeds: [0.5]", "--seeds takes a whole number"),
        ("seeds: []", "--seeds needs at least 1 value"),
        ("- a", "this is no spec"),
    ],
)
def test_a_spec_that_is_none_is_refused(capsys, place, text, complaint):
    (place / "x.yaml").write_text(text)
    assert complaint in refused(capsys, place, "toy", "--spec", "x.yaml")


# folders


def test_a_folder_that_iclgd_did_not_write_is_left_alone_even_with_overwrite(capsys, place):
    (place / "mine").mkdir()
    (place / "mine" / "thesis.tex").touch()
    for more in ((), ("--overwrite",)):
        assert "was not written by iclgd" in refused(capsys, place, "toy", "--out", "mine", *more)


def test_the_folder_of_another_study_is_left_alone_unless_it_is_to_be_replaced(capsys, place):
    run(capsys, "toy", "--out", "out")
    said = refused(capsys, place, "toy", "--k", 9, "--out", "out")
    assert "holds another study: give another --out, or --overwrite to replace it." in said
    (place / "out" / "stale.svg").touch()
    assert run(capsys, "toy", "--k", 9, "--out", "out", "--overwrite")[0] == 0
    assert not (place / "out" / "stale.svg").exists()


def test_a_file_a_dangling_link_and_a_place_that_cannot_be_written_are_no_folders(capsys, place):
    (place / "file").touch()
    (place / "link").symlink_to(place / "nowhere")
    assert "is a file, not a folder" in refused(capsys, place, "toy", "--out", "file")
    assert "is a link to nothing" in refused(capsys, place, "toy", "--out", "link")
    assert "cannot write to file/below" in refused(capsys, place, "toy", "--out", "file/below")


def test_overwriting_recomputes_and_asking_again_does_not(capsys):
    run(capsys, "toy", "--seeds", 2, "--out", "out")
    run(capsys, "toy", "--seeds", 2, "--out", "out")
    assert len(toy.RAN) == 2
    run(capsys, "toy", "--seeds", 2, "--out", "out", "--overwrite")
    assert len(toy.RAN) == 4


def test_stopping_says_so_and_the_same_command_goes_on(capsys, monkeypatch):
    monkeypatch.setenv("TOY_STOPS_AT", "1")
    code, _, err = run(capsys, "toy", "--out", "out")
    assert (code, err.strip()) == (
        130,
        "iclgd: stopped; 2 of 3 cells are kept in runs/cells: the same command goes on from there.",
    )
    monkeypatch.delenv("TOY_STOPS_AT")
    assert run(capsys, "toy", "--out", "out")[0] == 0
    assert sorted(toy.RAN) == [0, 1, 2]
