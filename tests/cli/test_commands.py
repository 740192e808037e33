"""The command line as a whole: what it lists, what it refuses, how fast it answers."""

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import iclgd
from iclgd.cli import OTHERS
from iclgd.lab import LABS
from little import little_task
from said import refused, run

SOURCE = str(Path(iclgd.__file__).parents[1])
OWN = ("compare", "trace", "linear train", "linear optimum", "languages run", "dual check", "dual bound")
LIGHT = ("torch", "transformers", "numpy", "scipy", "matplotlib", "pandas")


def python(code: str, *args: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    return subprocess.run([sys.executable, "-c", code, *args], env=environment, capture_output=True, text=True)


# what it lists


def test_the_help_names_every_lab_and_every_other_command_with_what_it_does(capsys):
    code, out, _ = run(capsys, "--help")
    assert code == 0
    told = {line.split()[0]: line.split(maxsplit=1)[1] for line in out.splitlines() if len(line.split()) > 1}
    for name in ("compare", "trace", "linear", "languages", "dual", *OTHERS):
        assert len(told[name]) > 5
    assert run(capsys)[1] == out


@pytest.mark.parametrize("name", [*OWN, "claims", "doctor", "tasks", "models", "study", "store"])
def test_a_command_explains_itself_with_an_example(capsys, name):
    code, out, _ = run(capsys, *name.split(), "--help")
    assert code == 0
    assert "Examples:" in out
    assert f"iclgd {name}" in out


def test_the_labs_in_this_test_are_labs():
    assert set(OWN) <= set(LABS)


def test_tasks_are_listed_and_one_is_shown(capsys, tmp_path):
    code, out, _ = run(capsys, "tasks")
    assert code == 0
    assert {"sst2", "kinds", "sentiment"} <= {line.split()[0] for line in out.splitlines() if line}
    out = run(capsys, "tasks", "sst2")[1]
    assert "template  Sentence: {text} Label: <label>" in out
    assert "labels    Negative / Positive" in out


def test_models_are_listed_with_their_licences_and_where_they_are_kept(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("ICLGD_CACHE", str(tmp_path))
    code, out, _ = run(capsys, "models")
    assert code == 0
    assert "98 MB" in out
    assert "Gemma Terms of Use" in out
    assert out.splitlines()[-1] == f"cache   {tmp_path}"


def test_what_can_be_named_is_listed_with_its_options(capsys):
    code, out, _ = run(capsys, "known")
    assert code == 0
    rows = set()
    for block in out.strip().split("\n\n"):
        head, *lines = block.splitlines()
        rows |= {(head.split()[0], line.split()[0], line.split("  ")[-1].strip()) for line in lines}
    for place in (("lab", "compare"), ("metric", "SimAOU"), ("null", "wrong-labels"), ("task", "sst2")):
        assert place in {row[:2] for row in rows}
    assert any(row[:2] == ("learner", "gd") and row[2].startswith("rate=0.001 trains=kv") for row in rows)


def test_the_version_is_the_packages(capsys):
    for flag in ("-V", "--version"):
        assert run(capsys, flag)[:2] == (0, f"iclgd, version {version('iclgd')}\n")


# what it refuses


@pytest.mark.parametrize(
    "given, complaint",
    [
        (("trase",), 'no command "trase". Did you mean trace'),
        (("dual", "chek"), 'no command "chek". Did you mean check? `iclgd dual --help` lists all.'),
        (("--loud",), "No such option"),
        (("tasks", "--loud"), "See `iclgd tasks --help`."),
        (("trace", "--modle", "x"), "Did you mean"),
        (("trace", "left-over"), "left-over"),
        (("tasks", "sentimant"), "Did you mean sentiment"),
        (("models", "fetch", "gemma-270m"), "Did you mean gemma3-270m"),
        (("claims", "run", "nobody2020.nothing"), 'no claim "nobody2020.nothing"'),
        (("--plugin",), "--plugin needs the path of a Python file."),
        (("trace", "--plugin="), "--plugin needs the path of a Python file."),
    ],
)
def test_what_is_not_there_is_answered_with_one_sentence(capsys, tmp_path, given, complaint):
    assert complaint in refused(capsys, tmp_path, *given)


@pytest.mark.parametrize(
    "given",
    [
        ("\x1b[31mred",),
        ("tasks", "\x1b[31mred"),
        ("trace", "--task", "\x1b[31mred"),
        ("trace", "--model", "\x1b[31mred"),
        ("trace", "--\x1b[31mred"),
        ("models", "fetch", "\x1b[31mred"),
        ("compare", "--learners", "\x1b[31mred"),
        ("--plugin", "\x1b[31mred"),
    ],
)
def test_control_characters_of_a_name_do_not_reach_the_terminal(capsys, tmp_path, monkeypatch, given):
    monkeypatch.chdir(tmp_path)
    said = refused(capsys, tmp_path, *given)
    assert "\x1b" not in said
    assert r"\x1b[31mred" in said


def test_control_characters_of_a_file_do_not_reach_the_terminal(capsys, tmp_path):
    file = little_task(tmp_path)
    file.write_text(file.read_text().replace("my own", '"\\e[31mred"'))
    code, out, _ = run(capsys, "tasks", file)
    assert code == 0
    assert "\x1b" not in out
    assert r"\x1b[31mred" in out


def test_terms_are_refused_without_acceptance(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ICLGD_CACHE", str(tmp_path))
    for args in (("trace", "--model", "gemma3-270m"), ("models", "fetch", "gemma3-270m"), ("doctor", "gemma3-270m")):
        said = refused(capsys, tmp_path, *args)
        assert "Gemma Terms of Use (https://ai.google.dev/gemma/terms)" in said
        assert "--accept-terms" in said


# how fast it answers

MAIN = """
import sys, time
from iclgd.cli import main
try:
    main()
except SystemExit:
    pass
"""
LOADED = f"""
import sys, time
print([name for name in {LIGHT} if name in sys.modules], time.process_time())
"""


def loaded(code: str, *args: str) -> tuple[str, float, str]:
    """Heavy packages that a piece of Python imported, the CPU time it took (the best of three), its error stream."""
    done = [python(code + LOADED, *args) for _ in range(3)]
    names, seconds = zip(*(one.stdout.splitlines()[-1].rsplit(" ", 1) for one in done), strict=True)
    return names[0], min(map(float, seconds)), done[0].stderr


@pytest.mark.parametrize("code, args", [("import iclgd", ()), (MAIN, ("--help",)), (MAIN, ("-V",))])
def test_import_and_help_take_half_a_second_of_a_processor_and_import_nothing_heavy(code, args):
    names, seconds, _ = loaded(code, *args)
    assert names == "[]"
    assert seconds < 0.5


@pytest.mark.parametrize("command", ["trace --model", "compare --model", "doctor"])
def test_a_wrong_model_is_refused_before_torch_is_imported(command):
    names, _, err = loaded(MAIN, *command.split(), "smollm2-153m")
    assert "Did you mean smollm2-135m" in err
    assert "torch" not in names
    assert "transformers" not in names


def test_a_reader_that_has_seen_enough_gets_no_traceback():
    command = [sys.executable, "-c", "from iclgd.cli import main; main()", "tasks"]
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.close()
    process.wait(timeout=60)
    assert process.stderr.read() == ""
