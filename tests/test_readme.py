"""What the README and the documentation show is what the package does."""

import json
import re
from pathlib import Path

import pytest

import iclgd
from iclgd.tasks.episodes import read_episode
from iclgd.tasks.sources import load_examples
from iclgd.tasks.text import all_tasks, read_task
from said import run

ROOT = Path(__file__).parents[1]


def block(path: str, language: str, number: int = 0) -> str:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / path).read_text(encoding="utf-8"), re.DOTALL)[number]


def test_the_readmes_python_runs(smollm2, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr("iclgd.models.load.load_subject", lambda *_: smollm2)
    monkeypatch.setenv("ICLGD_STORE", str(tmp_path))
    exec(compile(block("README.md", "python"), "README.md", "exec"), {})
    out = capsys.readouterr().out
    assert "With 1 seed nothing is decided" in out
    assert re.search(r"^gd 0\.001 +\.\d\d", out, re.MULTILINE)
    assert re.search(r"^learner +layer", out, re.MULTILINE)


def test_the_readmes_map_has_every_room_and_no_other():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    lines = re.search(r"src/iclgd/\n(.*?)```", text, re.DOTALL)[1].splitlines()
    rooms = {room for line in lines for room in line.strip().split("   ")[0].split()}
    there = {f"{path.name}/" if path.is_dir() else path.name for path in Path(iclgd.__file__).parent.iterdir()}
    assert rooms == there - {"__init__.py", "__pycache__/", "py.typed"}


def test_reading_changes_nothing_in_the_first_layer_of_a_rotary_model(smollm2, monkeypatch):
    monkeypatch.setattr("iclgd.models.load.load_subject", lambda *_: smollm2)
    names: dict = {}
    exec(compile(block("docs/strong.md", "python"), "docs/strong.md", "exec"), names)
    size = names["size"].mean((0, 2, 3))
    assert size[0] < 1e-5
    assert (size[1:] > 0.05).all()


def test_the_learner_in_the_documentation_is_the_one_of_the_examples():
    assert block("docs/strong.md", "python", 1) in (ROOT / "examples/learner.py").read_text(encoding="utf-8")


def test_the_task_in_the_documentation_is_a_task(tmp_path):
    (tmp_path / "mine.yaml").write_text(block("docs/tasks.md", "yaml"))
    (tmp_path / "mine.csv").write_text(
        block("docs/tasks.md", "csv") + "Fine.,good\nPoor.,bad\nOkay.,good\nAwful.,bad\n"
    )
    found = load_examples(read_task(tmp_path / "mine.yaml"), tmp_path)
    assert len(found.train) + len(found.queries) == 6


def test_the_episode_in_the_documentation_is_an_episode(tmp_path):
    (tmp_path / "e.json").write_text(block("docs/tasks.md", "json"))
    assert len(read_episode(tmp_path / "e.json").demos) == 1
    whole = json.loads(block("docs/tasks.md", "json"))
    for key in whole:
        (tmp_path / "e.json").write_text(json.dumps({k: v for k, v in whole.items() if k != key}))
        with pytest.raises(iclgd.Refusal):
            read_episode(tmp_path / "e.json")


@pytest.mark.slow
def test_the_commands_of_the_page_on_studies_run_as_they_are_written(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ICLGD_STORE", raising=False)
    (tmp_path / "widths.yaml").write_text(block("docs/studies.md", "yaml"))
    text = (ROOT / "docs/studies.md").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.startswith("iclgd ")]
    assert len(lines) == 13
    said = {}
    for line in lines:
        code, said[line], err = run(capsys, *line.split()[1:])
        assert code == 0, f"{line}: {err}"
    assert "2 cells equal to the bit" in said["iclgd study verify widths.yaml --sample 2"]
    assert "9 cells equal to the bit" in said["iclgd study compare runs/widths runs/cells"]
    assert (tmp_path / "loss.csv").read_text().startswith("k,dx,learner,mean,low,high")


def test_the_documentation_names_every_tasks_splits():
    text = (ROOT / "docs/tasks.md").read_text(encoding="utf-8")
    for task in all_tasks():
        if task.examples is None:
            row = next(line for line in text.splitlines() if line.startswith("|") and f"`{task.name}`" in line)
            assert f"`{task.splits.train}` | `{task.splits.queries}`" in row
