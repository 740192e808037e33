"""What the README and the documentation show is what the package does."""

import json
import re
from pathlib import Path

import pytest

import iclgd
from iclgd.tasks.episodes import read_episode
from iclgd.tasks.sources import load_examples
from iclgd.tasks.text import all_tasks, read_task

ROOT = Path(__file__).parents[1]


def block(path: str, language: str) -> str:
    return re.search(rf"```{language}\n(.*?)```", (ROOT / path).read_text(encoding="utf-8"), re.DOTALL)[1]


def test_the_readmes_python_runs(smollm2, monkeypatch, capsys):
    monkeypatch.setattr(iclgd, "load_subject", lambda spec: smollm2, raising=False)
    exec(compile(block("README.md", "python"), "README.md", "exec"), {})
    out = capsys.readouterr().out
    assert re.match(r"accuracy 0\.\d\d → 0\.\d\d by reading, 0\.\d\d by training\nlikeness by layer tensor", out)


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


def test_the_documentation_names_every_tasks_splits():
    text = (ROOT / "docs/tasks.md").read_text(encoding="utf-8")
    for task in all_tasks():
        if task.examples is None:
            row = next(line for line in text.splitlines() if line.startswith("|") and f"`{task.name}`" in line)
            assert f"`{task.splits.train}` | `{task.splits.queries}`" in row
