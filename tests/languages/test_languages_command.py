"""`iclgd languages` as a user meets it."""

import json
import re
import shlex
import subprocess
import sys

import pytest

from iclgd.cli import main

SMALL = ["--seeds", "2", "--steps", "4", "--encoder-steps", "4", "--episodes", "40", "--batch", "8"]


def iclgd(*words):
    main(["languages", *words])


def refused(capsys, *words):
    with pytest.raises(SystemExit) as stop:
        iclgd(*words)
    assert stop.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith("iclgd: ")
    assert error.count("\n") == 1
    return error


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "one"
    iclgd("run", "--language", "((a|b)c)*", *SMALL, "--out", str(folder))
    return folder


def test_a_run_leaves_a_page_figures_and_a_record(run):
    names = {f"{name}.{suffix}" for name in ("training", "autoencoder", "weights") for suffix in ("svg", "png")}
    assert {path.name for path in run.glob("[!.]*")} == names | {"record.json", "index.html"}
    record = json.loads((run / "record.json").read_text(), parse_constant=pytest.fail)  # no NaN
    assert record["experiment"]["language"] == "((a|b)c)*"
    assert len(record["learners"]["trained"]["accuracy"]) == 2
    page = (run / "index.html").read_text()
    assert "default-src 'none'" in page
    assert page.count("<svg") == 3


def test_the_command_it_prints_repeats_the_numbers(run, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    iclgd("run", "--language", "((a|b)c)*", *SMALL)
    shown = capsys.readouterr().out
    line = next(line for line in shown.splitlines() if line.startswith("repeat"))
    main([*shlex.split(line)[2:], "--out", "again"])
    (default,) = (tmp_path / "runs").iterdir()
    assert re.fullmatch(r"languages-[0-9a-f]{6}", default.name)
    expected = json.loads((run / "record.json").read_text())
    assert json.loads((default / "record.json").read_text()) == expected
    assert json.loads((tmp_path / "again" / "record.json").read_text()) == expected


def test_a_folder_that_exists_is_refused_and_kept(run, capsys):
    before = (run / "record.json").read_bytes()
    assert "exists already" in refused(capsys, "run", *SMALL, "--out", str(run))
    assert (run / "record.json").read_bytes() == before


@pytest.mark.parametrize(
    "words, sentence",
    [
        (["--language", "a*("], "is not a regular expression"),
        (["--language", "tomita-1"], "too small for the split"),
        (["--language", "[a-zA-Z]*"], "too large"),
        (["--language", "a{30}"], "has no words of length 1 to 12"),
        (["--labels", "language"], "--language random together"),
        (["--negatives", "editz"], "Did you mean edits"),
        (["--alphabet", "é"], "cannot be a symbol"),
        (["--demos", "3"], "an even number"),
        (["--layers", "many"], "not a valid integer"),
    ],
)
def test_what_cannot_be_run_gets_a_sentence(capsys, tmp_path, words, sentence):
    assert sentence in refused(capsys, "run", *SMALL, *words, "--out", str(tmp_path / "none"))
    assert not (tmp_path / "none").exists()


def test_the_list_shows_expressions_and_sizes(capsys):
    iclgd("list")
    shown = capsys.readouterr().out
    assert re.search(r"document-1 +a\*bc\* +abc +3 +78", shown)
    assert re.search(r"document-2 +\(\(a\|b\)c\)\* +abc +3 +127", shown)
    assert re.search(r"document-3 +\(abc\?\)\* +abc +4 +48", shown)


def test_sample_prints_words(capsys):
    iclgd("sample", "a*bc*", "--length", "5", "--count", "30")
    words = capsys.readouterr().out.split()
    assert len(words) == 30
    assert all(re.fullmatch("a*bc*", word) and len(word) == 5 for word in words)
    iclgd("sample", "a*bc*", "--length", "5", "--complement")
    assert not any(re.fullmatch("a*bc*", word) for word in capsys.readouterr().out.split())
    assert "no words of length 3" in refused(capsys, "sample", "((a|b)c)*", "--length", "3")


def test_sample_prints_what_a_random_automaton_emits(capsys):
    iclgd("sample", "random", "--length", "6", "--count", "20", "--seed", "3")
    words = capsys.readouterr().out.split()
    assert len(words) == 20
    iclgd("sample", "random", "--length", "6", "--count", "20", "--seed", "3", "--complement")
    assert not set(words) & set(capsys.readouterr().out.split())
    assert "cannot be a symbol" in refused(capsys, "sample", "random", "--alphabet", "a$")


@pytest.mark.slow
def test_the_whole_set_runs_and_leaves_the_documents_figures(tmp_path, capsys):
    iclgd("all", "--seeds", "2", "--shrink", "400", "--jobs", "1", "--out", str(tmp_path / "set"))
    shown = capsys.readouterr().out
    assert "Fixed labels: is anything learned in context?" in shown
    assert "Sign or language drawn: which gradient descent?" in shown
    assert "tables.md" in {path.name for path in (tmp_path / "set").iterdir()}
    names = {path.stem for path in (tmp_path / "set").glob("*.svg")}
    assert {"summary", "fixed-training", "fixed-autoencoder", "fixed-weights-1", "sign-weights-3"} <= names


def test_help_does_not_import_torch():
    code = "import sys, iclgd.cli.languages; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
