"""Forms: the answer first and in eighty columns, all of it, as JSON, quiet; and what a shell completes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

import iclgd
import toy
from iclgd.cli import OTHERS, group
from iclgd.cli.examples import epilog
from iclgd.cli.summary import ROWS, summary
from iclgd.lab import LABS
from iclgd.report.numbers import Number
from iclgd.report.page import Page, Section, Table
from iclgd.running import Where, run_study
from little import little_model, little_task
from said import run

SOURCE = Path(iclgd.__file__).parents[1]
WORDS = "The trained layer is nearest to preconditioned gd, of four learners that were tuned on the same episodes. " * 2


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("ICLGD_STORE", "ICLGD_DATA", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def a_page(rows: int = 30, answer: str = WORDS) -> Page:
    wide = [[f"learner {i}", *(Number(i / 7, i / 8, i / 6) for _ in range(6))] for i in range(rows)]
    table = Table(["", *(f"metric {i}" for i in range(6))], wide)
    hidden = Table(["", "x"], [["hidden", "1"]])
    sections = [Section("Likeness", "How to read it. " * 9, table, brief=True), Section("Details", "", hidden)]
    return Page("linear", "linear · 10 → 1 · k = 10 · " * 4, answer, sections)


# widths


def widest(text: str) -> int:
    return max(map(len, text.splitlines()))


def test_a_summary_begins_with_the_answer_and_fits_eighty_columns():
    shown = summary(a_page())
    assert " ".join(shown.split("\n\n")[0].split()) == WORDS.strip()
    assert widest(shown) <= 80
    assert "hidden" not in shown
    assert "How to read it" not in shown


def test_the_window_says_how_wide_a_summary_is(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    assert 40 < widest(summary(a_page())) <= 60
    monkeypatch.setenv("COLUMNS", "200")
    assert 120 < widest(summary(a_page())) <= 200


def test_a_long_table_is_cut_in_a_summary_and_whole_in_full(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    shown, full = summary(a_page()), summary(a_page(), full=True)
    assert f"learner {ROWS - 1} " in shown
    assert f"learner {ROWS} " not in shown
    assert f"… and {30 - ROWS} lines more (--full)" in shown
    assert "learner 29 " in full
    assert "hidden" in full
    assert "How to read it" in full
    assert "--full" not in summary(a_page(rows=ROWS))


def test_a_page_without_an_answer_is_a_list_which_is_not_cut(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert "learner 29 " in summary(a_page(answer=""))


MODEL = {"k": 3, "queries": 2}
SMALL = {"seeds": 2, "batch": 8, "episodes": 20, "k": 6}
STUDIES = {
    "compare": {**MODEL, "seeds": 2, "learners": "gd", "nulls": "random,wrong-labels", "floor": False},
    "trace": MODEL,
    "exits": MODEL,
    "dual check": MODEL,
    "dual modify": {**MODEL, "modifications": "regularised:alpha=0.1"},
    "dual train": {**SMALL, "tasks": "linear", "arms": "regularised:alpha=0.1", "dx": 3, "epochs": 1, "steps": 2},
    "implicit": {"k": 2, "queries": 2, "init": "trained", "calibration": "1,2", "exact": 2, "tokens": 2},
    "linear train": {**SMALL, "dx": 3, "steps": 4, "learners": "gd"},
    "linear optimum": {"task": "gaussian", "dx": 3, "steps": 1},
    "languages run": {**SMALL, "encoder": "pca", "steps": 4, "dims": 3, "max_length": 6},
    "languages list": {},
    "identities": {"names": "any-path-is-descent", "seeds": 2},
}


@pytest.fixture(scope="module")
def little(tmp_path_factory):
    folder = tmp_path_factory.mktemp("little")
    return {"model": str(little_model(folder / "model")), "task": str(little_task(folder)), "device": "cpu"}


SLOW = ("compare", "implicit", "dual check", "linear train")


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in STUDIES])
def test_the_summary_of_every_lab_fits_eighty_columns(little, tmp_path, name):
    kind = LABS[name].spec
    spec = kind.of(STUDIES[name] | (little if "model" in kind.model_fields else {}))
    page = run_study(name, spec, Where(tmp_path / "cells")).page
    shown = summary(page)
    assert widest(shown) <= 80, max(shown.splitlines(), key=len)
    assert shown.startswith(" ".join((page.answer or page.subtitle).split()[:6]))


def test_the_help_of_every_command_fits_eighty_columns_and_its_examples_can_be_copied(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for path, command in leaves(group):
        words = " ".join(("iclgd", *path))
        told = command.get_help(click.Context(command, info_name=words, max_content_width=100))
        assert widest(told) <= 80, max(told.splitlines(), key=len)
    assert epilog("  iclgd a --b 1   what it does\n  iclgd c\n") == (
        "\b\nExamples:\n  iclgd a --b 1   what it does\n  iclgd c"
    )
    long = epilog(f"  iclgd a {'--bb 1 ' * 14}  {'what it does ' * 4}\n").splitlines()
    assert [line.endswith(" \\") for line in long] == [False, False, True, False, False]
    assert " ".join(line.strip(" \\") for line in long[2:-1]) == f"iclgd a {'--bb 1 ' * 14}".strip()
    assert long[-1].strip() == ("what it does " * 4).strip()


@pytest.mark.parametrize("asked", ["tasks", "tasks sst2", "models", "known", "claims", "languages list"])
def test_lists_fit_the_window(capsys, monkeypatch, asked):
    monkeypatch.setenv("COLUMNS", "80")
    assert widest(run(capsys, *asked.split())[1]) <= 80


# JSON and quiet


def leaves(command: click.Command, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], click.Command]]:
    """Every command that does something, with its words."""
    if not isinstance(command, click.Group):
        return [(path, command)]
    own = [(path, command)] if command.invoke_without_command else []
    context = click.Context(command)
    inner = [(name, command.get_command(context, name)) for name in command.list_commands(context)]
    return own + [leaf for name, one in inner if one is not None for leaf in leaves(one, (*path, name))]


def test_every_command_that_finds_something_can_be_told_json_and_quiet():
    found = leaves(group)
    assert {path[0] for path, _ in found} >= {*OTHERS, "compare", "linear", "dual"}
    for path, command in found:
        flags = {flag for parameter in command.params for flag in parameter.opts}
        if path != ("study", "schema"):  # which is JSON
            assert {"--json", "--quiet", "-q"} <= flags, path


ASKED = [
    ("tasks",),
    ("tasks", "sentiment"),
    ("tasks", "sst2"),
    ("models",),
    ("known",),
    ("claims", "--paper", "ren2024"),
    ("claims", "show", "ren2024.thm31"),
    ("claims", "run", "deutch2023.noise-quarter"),
    ("languages", "list"),
    ("linear", "optimum", "--dx", "2", "--steps", "1"),
    ("study", "plan", "g.yaml"),
    ("study", "status", "g.yaml"),
    ("study", "run", "g.yaml"),
    ("study", "table", "runs/g"),
    ("study", "verify", "runs/g", "--sample", "1"),
    ("study", "compare", "runs/g", "runs/g"),
    ("store", "check"),
    ("store", "gc"),
    ("store", "export", "cells.tar"),
    ("store", "import", "runs/cells", "--store", "more"),
]


def test_json_is_json_and_quiet_is_short(capsys, place):
    (place / "g.yaml").write_text("parts: {a: {lab: linear optimum, task: gaussian, dx: 2, steps: 1}}\n")
    run(capsys, "study", "run", "g.yaml")
    for asked in ASKED:
        code, out, _ = run(capsys, *asked, "--json")
        assert code == 0, asked
        assert json.loads(out) is not None
        for left in place.glob("cells.tar"):
            left.unlink()
        quiet = run(capsys, *asked, "--quiet")
        assert (quiet[0], quiet[2]) == (0, ""), asked
        for left in place.glob("cells.tar"):
            left.unlink()
        assert quiet[1].count("\n") <= run(capsys, *asked)[1].count("\n"), asked


def test_a_quiet_study_prints_its_answer_and_nothing_else(capsys):
    assert "toy" in LABS, toy  # the lab of the tests
    answer = json.loads(run(capsys, "toy", "--json")[1])["answer"]
    assert answer.startswith("The mean is ")
    assert run(capsys, "toy", "-q") == (0, f"{answer}\n", "")


# completion


def completions(line: str) -> set[str]:
    words = line.split(" ")
    given = {"_ICLGD_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), **given}
    code = "from iclgd.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    return {entry.partition(",")[2] for entry in done.stdout.splitlines()}


@pytest.mark.parametrize(
    "line, expected",
    [
        ("iclgd com", {"compare"}),
        ("iclgd dual ", {"check", "bound", "modify", "train"}),
        ("iclgd trace --task sst", {"sst2", "sst5"}),
        ("iclgd compare --task kinds,sst", {"kinds,sst2", "kinds,sst5"}),
        ("iclgd compare --model smol", {"smollm2-135m"}),
        ("iclgd compare --learners lc", {"lcgd"}),
        ("iclgd compare --dtype bf", {"bfloat16"}),
        ("iclgd doctor smol", {"smollm2-135m"}),
        ("iclgd models fetch gem", {"gemma3-270m"}),
        ("iclgd tasks sen", {"sentiment"}),
        ("iclgd claims show ren2024.thm3", {"ren2024.thm31"}),
        ("iclgd claims run --paper ren", {"ren2024"}),
    ],
)
def test_a_shell_completes_commands_tasks_models_learners_and_claims(line, expected):
    assert expected <= completions(line)
