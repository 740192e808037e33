"""One page over all runs: every study with its answer and a link; nobody else's page is touched."""

from pathlib import Path

from iclgd.cli import main
from iclgd.overview import overview

WORDS = ("languages", "sample", "--language", "a*b")


def test_a_run_among_the_runs_is_listed_with_its_answer(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    main([*WORDS, "--out", "runs/mine"])
    text = Path("runs/index.html").read_text(encoding="utf-8")
    assert '<a href="mine/index.html">mine</a>' in text
    (row,) = overview(Path("runs")).table("Studies").rows
    assert row[1] == "languages sample"
    assert row[3] in capsys.readouterr().out.replace("\n", " ")


def test_a_run_elsewhere_and_somebody_elses_page_are_left_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    main([*WORDS, "--out", "here"])
    assert not Path("index.html").exists()
    Path("runs").mkdir(exist_ok=True)  # holds the cells
    Path("runs/index.html").write_text("mine")
    main([*WORDS, "--out", "runs/other"])
    assert Path("runs/index.html").read_text() == "mine"
