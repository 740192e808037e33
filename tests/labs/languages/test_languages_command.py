"""`iclgd languages` as a user meets it."""

import json
import re
import shlex

import pytest

from iclgd.cli import main

SMALL = ["--seeds", "2", "--steps", "4", "--encoder", "autoencoder:steps=4", "--episodes", "40", "--batch", "8"]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


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


def test_a_run_leaves_a_page_and_figures_and_its_spec_gives_the_numbers_again(capsys, tmp_path):
    iclgd("run", "--language", "((a|b)c)*", *SMALL)
    shown = capsys.readouterr().out
    (folder,) = (path.parent for path in (tmp_path / "runs").glob("*/study.json"))
    names = {f"{name}.{suffix}" for name in ("training", "autoencoder", "weights") for suffix in ("svg", "png")}
    written = {path.name for path in folder.glob("[!.]*")}
    assert names <= written
    record = json.loads((folder / "study.json").read_text(), parse_constant=pytest.fail)  # no NaN
    page = (folder / "index.html").read_text()
    assert "default-src 'none'" in page
    assert page.count('src="data:image/svg+xml') == 3
    line = next(line for line in shown.splitlines() if line.startswith("repeat"))
    main([*shlex.split(line)[2:], "--store", "elsewhere", "--out", "again"])
    again = json.loads((tmp_path / "again" / "study.json").read_text())
    assert again["sections"] == record["sections"]
    assert max(len(line) for line in shown.splitlines() if not line.startswith(("page", "repeat"))) <= 120


def cells(tmp_path):
    return {path.name for path in (tmp_path / "runs" / "cells").iterdir()}


def test_more_seeds_run_only_what_is_missing(capsys, tmp_path, monkeypatch):
    from iclgd.labs.languages import run

    trained, original = [], run.trained

    def counting(setting, data, progress):
        trained.append(data.seeds)
        return original(setting, data, progress)

    monkeypatch.setattr(run, "trained", counting)
    iclgd("run", *SMALL, "--seeds", "1", "--encoder", "pca")
    before = cells(tmp_path)
    iclgd("run", *SMALL, "--seeds", "3", "--encoder", "pca")
    assert trained == [(0,), (1, 2)]
    assert len(before) == 1
    assert before < cells(tmp_path)
    assert len(cells(tmp_path)) == 3


def test_a_stopped_study_keeps_the_settings_that_were_done(tmp_path, monkeypatch):
    """Cells are written one by one: what comes after the stop is all that is run again."""
    from iclgd.labs.languages import run
    from iclgd.labs.languages.spec import AllSpec
    from iclgd.running import Where, run_study

    settings = AllSpec(shrink=500).settings
    monkeypatch.setattr(AllSpec, "settings", lambda self: [s for s in settings() if s.encoder.kind == "pca"][:4])
    trained, original = [], run.trained

    def stopping(setting, data, progress):
        if len(trained) == 2:
            raise KeyboardInterrupt
        trained.append(setting.name())
        return original(setting, data, progress)

    monkeypatch.setattr(run, "trained", stopping)
    spec, where = AllSpec(seeds=1, shrink=500), Where(tmp_path / "cells")
    with pytest.raises(KeyboardInterrupt):
        run_study("languages all", spec, where)
    done = list(trained)
    trained.clear()
    trained.append("not stopping")
    with pytest.raises(KeyboardInterrupt):
        run_study("languages all", spec, where)
    assert trained[1] not in done
    monkeypatch.setattr(run, "trained", original)
    study = run_study("languages all", spec, where)
    assert study.fresh == 1


@pytest.mark.parametrize(
    "words, sentence",
    [
        (["--language", "a*("], "is not a regular expression"),
        (["--language", "tomita-1"], "too small for the split"),
        (["--language", "[a-zA-Z]*"], "too large"),
        (["--language", "a{30}"], "allow others with --max-length"),
        (["--labels", "language"], "--language is random"),
        (["--negatives", "editz"], "Did you mean edits"),
        (["--encoder", "autoencoda"], "Did you mean autoencoder"),
        (["--alphabet", "é"], "cannot be a symbol"),
        (["--k", "3"], "an even --k"),
        (["--layers", "many"], "--layers takes a whole number"),
    ],
)
def test_what_cannot_be_run_gets_a_sentence(capsys, tmp_path, words, sentence):
    assert sentence in refused(capsys, "run", *SMALL, *words, "--out", str(tmp_path / "none"))
    assert not (tmp_path / "none").exists()


def test_the_list_shows_expressions_and_sizes(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    iclgd("list")
    shown = capsys.readouterr().out
    assert re.search(r"report-1 +a\*bc\* +abc +3 +78", shown)
    assert re.search(r"report-2 +\(\(a\|b\)c\)\* +abc +3 +127", shown)
    assert re.search(r"report-3 +\(abc\?\)\* +abc +4 +48", shown)


def words_of(capsys, *given):
    iclgd("sample", *given, "--json")
    section, *_ = json.loads(capsys.readouterr().out)["sections"]
    return [row[0] for row in section["table"]["rows"]]


def test_sample_shows_words(capsys):
    words = words_of(capsys, "--language", "a*bc*", "--length", "5", "--count", "30")
    assert len(words) == 30
    assert all(re.fullmatch("a*bc*", word) and len(word) == 5 for word in words)
    outside = words_of(capsys, "--language", "a*bc*", "--length", "5", "--complement")
    assert len(outside) == 10
    assert not any(re.fullmatch("a*bc*", word) for word in outside)
    assert "no words of length 3" in refused(capsys, "sample", "--language", "((a|b)c)*", "--length", "3")
    iclgd("sample", "--length", "2", "--count", "2")
    assert "2 words of length 2 over abc; 2 draws" in capsys.readouterr().out


def test_sample_shows_what_a_random_automaton_emits(capsys):
    given = ["--language", "random", "--length", "6", "--count", "20", "--seed", "3"]
    words = words_of(capsys, *given)
    assert len(words) == 20
    assert not set(words) & set(words_of(capsys, *given, "--complement"))
    assert "cannot be a symbol" in refused(capsys, "sample", "--language", "random", "--alphabet", "a$")


@pytest.mark.slow
def test_the_whole_study_runs_and_leaves_its_figures(tmp_path, capsys):
    iclgd("all", "--seeds", "2", "--shrink", "400", "--jobs", "2", "--out", str(tmp_path / "set"))
    shown = capsys.readouterr().out
    assert "Fixed labels: is anything learned in context?" in shown
    assert "Sign or language drawn: which gradient descent?" in shown
    names = {path.stem for path in (tmp_path / "set").glob("*.svg")}
    assert {"summary", "fixed-training", "fixed-autoencoder", "fixed-weights-1", "sign-weights-3"} <= names
