"""`iclgd dual` as a user meets it."""

import json
from pathlib import Path

import pytest

from iclgd.cli import main
from little import little_model, little_task
from said import refused, run

SMALL = ["--dx", "4", "--k", "6", "--epochs", "2", "--steps", "2", "--batch", "8", "--episodes", "32"]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_without_a_command_the_four_labs_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "dual")
    assert [name for name in ("check", "bound", "modify", "train") if f"  {name} " in out] == [
        "check", "bound", "modify", "train",
    ]  # fmt: skip


def test_a_study_is_shown_again_from_its_folder_without_running_a_cell(capsys: pytest.CaptureFixture[str]) -> None:
    args = ["dual", "train", "--tasks", "linear", "--arms", "centred", "--seeds", "2", *SMALL, "--out", "here"]
    first = run(capsys, *args)
    assert first[0] == 0
    assert "minus plain, same seeds" in first[1]
    cells = sorted(path.stat().st_mtime_ns for path in Path("runs/cells").iterdir())
    again = run(capsys, "dual", "train", "--spec", "here/spec.yaml")
    assert again[1].split("page ")[0] == first[1].split("page ")[0]
    assert sorted(path.stat().st_mtime_ns for path in Path("runs/cells").iterdir()) == cells
    assert {path.name for path in Path("here").iterdir()} >= {"index.html", "panels.svg", "panels.png", "spec.yaml"}


def test_modify_is_read_by_other_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, task = little_model(tmp_path / "model"), little_task(tmp_path)
    given = ["--model", model, "--task", task, "--k", "3", "--queries", "4", "--modifications", "centred,negative:k=1"]
    main(["dual", "modify", *map(str, given), "--json"])
    found = json.loads(capsys.readouterr().out)
    assert [row[0] for row in found["sections"][0]["table"]["rows"]] == ["plain", "centred", "negative k=1"]


@pytest.mark.parametrize(
    "args, says",
    [
        (["check", "--k", "0"], "--k must be at least 1"),
        (["bound", "--k", "4", "--held", "4"], "lower --held"),
        (["modify", "--k", "2", "--modifications", "negative:k=3"], "raise --k"),
        (["modify", "--modifications", "negative:k=1:k=2"], "give it once"),
        (["train", "--languages", "a*bc*", "--tasks", "linear"], "give --tasks or --languages"),
        (["train", "--max-length", "3"], "give --languages"),
        (["chek"], "Did you mean check"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_sentence(
    args: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert says in refused(capsys, tmp_path, "dual", *args)
