"""`iclgd implicit` as a user meets it."""

import json
from pathlib import Path

import pytest

from iclgd.cli import main
from iclgd.labs.implicit.spec import ImplicitSpec
from little import little_model, little_task
from said import refused, run


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_study_says_what_was_found_and_is_shown_again_without_running_a_cell(tmp_path, capsys):
    model, task = little_model(tmp_path / "model", "gemma3"), little_task(tmp_path)
    other = little_task(tmp_path, "theirs", ("Group", "Word"))
    given = ["--model", model, "--task", task, "--other", other, "--k", "3", "--queries", "4", "--calibration", "1,3"]
    few = ["--ranks", "1", "--rates", "0.1", "--tokens", "2", "--init", "trained", "--out", "here"]
    code, out, _ = run(capsys, "implicit", *given, *few)
    assert code == 0
    assert "For one query a patch is exact (largest residual of a block" in " ".join(out.split())
    assert "trained, float64, D" in out
    assert {path.name for path in Path("here").iterdir()} >= {"index.html", "curve.svg", "layers.svg", "spec.yaml"}
    cells = sorted(path.stat().st_mtime_ns for path in Path("runs/cells").iterdir())
    assert run(capsys, "implicit", "--spec", "here/spec.yaml")[1].split("page ")[0] == out.split("page ")[0]
    assert sorted(path.stat().st_mtime_ns for path in Path("runs/cells").iterdir()) == cells
    main(["implicit", "--spec", "here/spec.yaml", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert [section["title"] for section in found["sections"]][:3] == [
        "In short", "The patch against training", "Fitted on more queries",
    ]  # fmt: skip


@pytest.mark.slow
def test_several_tasks_and_draws_run_in_processes_and_coarse_arithmetic_says_so(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    model, tasks = little_model(tmp_path / "model"), [little_task(tmp_path, name) for name in ("one", "two")]
    other = little_task(tmp_path, "theirs", ("Group", "Word"))
    given = ["--model", model, "--task", ",".join(map(str, tasks)), "--other", other, "--k", "2", "--queries", "3"]
    few = ["--calibration", "2", "--ranks", "1", "--rates", "0.1", "--tokens", "1", "--init", "trained"]
    more = ["--seeds", "2", "--jobs", "2", "--precisions", "float32,bfloat16", "--out", "here", "--json"]
    main(["implicit", *map(str, [*given, *few, *more])])
    found = json.loads(capsys.readouterr().out)
    assert "2 seeds × 3 held-out queries" in found["what"]
    table = next(section["table"] for section in found["sections"] if section["title"] == "For one query")
    left = {row[0]: row[1]["value"] for row in table["rows"]}
    for form in "ABC":
        assert 1e-8 < left[f"trained, float32, {form}"] < 1e-4 < left[f"trained, bfloat16, {form}"] < 0.2


@pytest.mark.parametrize(
    "args, says",
    [
        (["--task", "sentiment", "--other", "sentiment"], "--other has to be another task"),
        (["--calibration", "0,4"], "--calibration"),
        (["--rates", ""], "--rates needs at least 1 value"),
        (["--exact", "1"], "--exact must be at least 2"),
        (["--precisions", "float16"], "--precisions takes float64, float32, bfloat16"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_sentence(args, says, tmp_path, capsys):
    assert says in refused(capsys, tmp_path, "implicit", *args)


def test_an_episode_file_is_refused_because_it_spares_no_query(tmp_path, capsys):
    example = {"fields": {"text": "a"}, "label": 0}
    episode = {"format": "iclgd-episode-1", "task": "mine", "version": 1, "template": "{text}:", "join": " "}
    episode |= {"labels": ["no", "yes"], "demonstrations": [example], "queries": [example]}
    (tmp_path / "mine.json").write_text(json.dumps(episode))
    assert "no queries to spare for calibration" in refused(capsys, tmp_path, "implicit", "--task", "mine.json")


def test_untrained_weights_differ_from_task_to_task_and_seed_to_seed():
    cells = ImplicitSpec(task=("sentiment", "continents"), seeds=(0, 1), rates=(0.1,)).cells()
    found = {
        (cell.labels["task"], cell.labels["seed"]): cell.spec.model.init_seed
        for cell in cells
        if cell.labels["init"] == "random" and cell.labels["part"] == "static"
    }
    assert len(set(found.values())) == len(found) == 4


def test_the_other_task_is_never_the_one_that_is_asked():
    cells = ImplicitSpec(task=("sentiment", "kinds")).cells()
    assert {(cell.spec.task, cell.spec.other) for cell in cells} == {("sentiment", "kinds"), ("kinds", "sentiment")}


def test_counts_are_sorted_and_taken_once():
    assert ImplicitSpec.of({"calibration": "16,4,4", "ranks": "8,1"}).calibration == (4, 16)


def test_more_seeds_change_no_cell_that_is_there():
    one, two = (ImplicitSpec(seeds=seeds).cells() for seeds in ((0,), (0, 1)))
    assert {cell.spec.key() for cell in one} <= {cell.spec.key() for cell in two}
