"""`iclgd tasks`: which tasks there are, and how one of them asks."""

import click

from iclgd.errors import Refusal
from iclgd.report.page import Table
from iclgd.report.terminal import say, window
from iclgd.tasks.text import TASKS, find_task

EXAMPLES = """\b
Examples:
  iclgd tasks             all tasks
  iclgd tasks sst2        the wording of one
  iclgd tasks mine.yaml   check a task file of your own
"""


@click.command(epilog=EXAMPLES)
@click.argument("name", required=False)
def command(name: str | None) -> None:
    """List the tasks, or show one."""
    if name is None:
        rows = [[name, *_told(name)] for name in TASKS]
        say(Table(["task", "classes", "examples", "what it asks"], rows).text(window()))
        say("\nA task of your own is one YAML file beside one JSONL, CSV or Parquet file: see docs/tasks.md.")
        return
    task, _ = find_task(name)
    say(f"{task.name} · version {task.version} · {task.title}\n")
    say(f"template   {task.template}{task.join}<label>")
    say(f"labels     {' / '.join(task.labels)}")
    say(f"splits     demonstrations from {task.splits.train}, queries from {task.splits.queries}")
    say(f"source     {task.source}")


def _told(name: str) -> list[str]:
    """Classes, where its examples are, what it asks; of a task that cannot be read, why."""
    try:
        task, _ = find_task(name)
    except Refusal as refusal:
        return ["", "", str(refusal)]
    return [str(len(task.labels)), "here" if task.examples else "--data", task.title]
