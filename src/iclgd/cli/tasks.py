"""`iclgd tasks`: which tasks there are, how one of them asks, and what examples it has."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import click

from iclgd.cli.completion import completed, task_names
from iclgd.cli.examples import epilog
from iclgd.cli.forms import Form, forms, rows_as_data
from iclgd.errors import Refusal
from iclgd.report.page import Table
from iclgd.report.terminal import window
from iclgd.tasks.text import TASKS, Example, TextTask, find_task

if TYPE_CHECKING:
    from iclgd.tasks.sources import Examples

EXAMPLES = """\
  iclgd tasks             all tasks
  iclgd tasks sst2        the wording of one
  iclgd tasks mine.yaml   check a task file of your own: its examples, classes and a prompt
"""
SCORED = "a label word of several tokens by the mean of their log-probabilities (`iclgd doctor` lists such words)"


@forms
@click.command(epilog=epilog(EXAMPLES))
@click.argument("name", required=False, shell_complete=completed(task_names, files=True))
@click.option("--data", metavar="DIR", help="Folder with <task>/<split> files (or ICLGD_DATA).")
def command(name: str | None, data: str | None, form: Form) -> None:
    """List the tasks, or show one: its wording, how many examples it has of each class, and a prompt."""
    if name is None:
        rows = [[name, *_told(name)] for name in TASKS]
        form.tell(rows_as_data(("task", "classes", "examples", "title"), rows), lambda: _list(rows), "\n".join(TASKS))
        return
    task, beside = find_task(name)
    found, lacking = _examples(task, beside, Path(data) if data else None, own=name not in TASKS)
    brief = f"{len(found.train)} demonstrations, {len(found.queries)} queries" if found else lacking
    form.tell(_plain(task, found), lambda: _shown(task, found, lacking), brief)


def _shown(task: TextTask, found: "Examples | None", lacking: str) -> str:
    told = [
        ["template", f"{task.template}{task.join}<label>"],
        ["labels", " / ".join(task.labels)],
        ["splits", f"demonstrations from {task.splits.train}, queries from {task.splits.queries}"],
        ["source", task.source],
        ["scored", SCORED],
    ]
    title = prose(f"{task.name} · version {task.version} · {task.title}")
    head = f"{title}\n\n{Table(['', ''], told).text(window())}\n\n"
    if found is None:
        return head + prose(lacking)
    rows = [[word, *(str(count[word]) for count in _balance(task, found).values())] for word in task.labels]
    rows.append(["all", str(len(found.train)), str(len(found.queries))])
    counts = Table(["class", "demonstrations", "queries"], rows).text(window())
    return f"{head}{counts}\n\nA demonstration, and a query as it is asked:\n\n{sample(task, found)}"


def prose(text: str) -> str:
    """In the window's width; whole in a pipe, where a sentence stays a line."""
    width = window()
    return text if width is None else fill(text, width)


def sample(task: TextTask, found: "Examples") -> str:
    """The first demonstration and the first query as a model reads them."""
    shown, asked = found.train[0], found.queries[0]
    return f"{task.prompt(shown.fields)}{task.completion(shown.label)}\n\n{task.prompt(asked.fields)}"


def _examples(task: TextTask, beside: Path, data: Path | None, own: bool) -> "tuple[Examples | None, str]":
    """The examples, or why a task of the library has none here; a task of the user's has to have them."""
    from iclgd.cli import flagged
    from iclgd.tasks.sources import load_examples

    if not own and task.examples is None and data is None:
        task = task.model_copy(update={"hub": None})  # showing a wording downloads nothing
    try:
        return load_examples(task, beside, data), ""
    except Refusal as refusal:
        if own or data is not None:
            raise
        return None, f"no examples: {flagged(str(refusal))}"


def _balance(task: TextTask, found: "Examples") -> dict[str, Counter[str]]:
    """How many examples of each class the splits have."""

    def count(examples: Sequence[Example]) -> Counter[str]:
        return Counter(task.labels[one.label] for one in examples)

    return {"demonstrations": count(found.train), "queries": count(found.queries)}


def _plain(task: TextTask, found: "Examples | None") -> dict[str, Any]:
    shown = task.model_dump(mode="json")
    if found is None:
        return shown
    return {
        **shown,
        "counts": {split: dict(n) for split, n in _balance(task, found).items()},
        "prompt": sample(task, found),
    }


def _list(rows: Sequence[Sequence[str]]) -> str:
    return (
        Table(["task", "classes", "examples", "what it asks"], rows).text(window())
        + "\n\n"
        + prose("A task of your own is one YAML file beside one JSONL, CSV or Parquet file: see docs/tasks.md.")
    )


def _told(name: str) -> list[str]:
    """Classes, where its examples are, what it asks; of a task that cannot be read, why."""
    try:
        task, _ = find_task(name)
    except Refusal as refusal:
        return ["", "", str(refusal)]
    return [str(len(task.labels)), "here" if task.examples else "--data", task.title]
