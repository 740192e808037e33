"""One page over all runs: every study with its answer and a link; nobody else's page is touched."""

import json
import os
from pathlib import Path

import pytest

from charted import charted
from iclgd.cli import main
from iclgd.overview import overview
from iclgd.study import open_study

WORDS = ("languages", "sample", "--language", "a*b")


def test_a_run_among_the_runs_is_listed_with_its_answer(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    main([*WORDS, "--out", "runs/mine"])
    text = Path("runs/index.html").read_text(encoding="utf-8")
    assert '<a href="mine/index.html">mine</a>' in text
    (row,) = overview(Path("runs")).table("Studies").rows
    assert row[2] == "languages sample"
    assert row[1] in capsys.readouterr().out.replace("\n", " ")


def test_of_a_long_answer_the_first_sentence_is_listed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    main([*WORDS, "--out", "runs/mine"])
    record = json.loads(Path("runs/mine/study.json").read_text())
    record["answer"] = "The first is .5 [.4 .6]. The second is another."
    Path("runs/mine/study.json").write_text(json.dumps(record))
    (row,) = overview(Path("runs")).table("Studies").rows
    assert row[1] == "The first is .5 [.4 .6]."


def test_a_run_elsewhere_and_somebody_elses_page_are_left_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    main([*WORDS, "--out", "here"])
    assert not Path("index.html").exists()
    Path("runs").mkdir(exist_ok=True)  # holds the cells
    Path("runs/index.html").write_text("mine")
    main([*WORDS, "--out", "runs/other"])
    assert Path("runs/index.html").read_text() == "mine"


def test_run_against_run_has_what_was_asked_and_the_numbers_of_both(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, dx in (("two", "2"), ("three", "3")):
        main(["linear", "optimum", "--dx", dx, "--steps", "1", "--out", f"runs/{name}"])
    widget = overview(Path("runs")).sections[1].widget
    runs = {run["name"]: run for run in widget.data["runs"]}
    assert {name: run["spec"]["dx"] for name, run in runs.items()} == {"two": 2, "three": 3}
    assert runs["two"]["lab"] == "linear optimum"
    (title, numbers), *_ = runs["two"]["tables"].items()
    table = open_study(Path("runs/two")).table(title)
    kept = {
        (row[0], column): entry.value
        for row in table.rows
        for column, entry in zip(table.header, row, strict=True)
        if hasattr(entry, "value")
    }
    assert {(row, column): number["value"] for row, column, number in numbers} == kept


def test_one_study_has_nothing_to_be_held_against(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    main([*WORDS, "--out", "runs/mine"])
    assert [section.title for section in overview(Path("runs")).sections] == ["Studies"]


def test_the_page_begins_with_what_the_newest_study_says_and_a_number_of_every_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, dx in (("two", "2"), ("three", "3")):
        main(["linear", "optimum", "--dx", dx, "--steps", "1", "--out", f"runs/{name}"])
    os.utime("runs/two/study.json", (1, 1))
    page = overview(Path("runs"))
    newest = open_study(Path("runs/three")).answer
    assert page.answer == f"The newest of 2 studies, three: {newest}"
    assert page.picture is not None
    number = page.picture.data["names"]["number"][0]
    shown = charted(page.picture, "name", number=number)
    assert set(shown) == {("two",), ("three",)}
    row, column = number.split(" · ")
    for name in ("two", "three"):
        (entry,) = [one for one in open_study(Path("runs") / name).table().rows if one[0] == row]
        value = entry[list(open_study(Path("runs") / name).table().header).index(column)].value
        assert shown[name,] == [pytest.approx(value, rel=1e-4)]
