"""A little study: a tiny model in a folder and a task of a user's own, as anybody would have them."""

from pathlib import Path

import numpy as np
import torch

from iclgd.lab import Cell
from iclgd.labs.compare.run import run
from iclgd.labs.compare.spec import CompareCell, CompareSpec
from iclgd.models.subject import Subject
from iclgd.results import Result
from iclgd.spec import EpisodeSpec, ModelSpec, PromptSpec
from iclgd.tools import Tools
from tiny import tiny_model, tiny_tokenizer


def little_model(folder: Path, architecture: str = "llama", dtype: torch.dtype = torch.float32) -> Path:
    tiny_model(architecture, dtype=dtype).save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    return folder


def little_task(folder: Path, name: str = "mine", words: tuple[str, str] = ("Negative", "Positive")) -> Path:
    """One YAML beside one CSV."""
    (folder / f"{name}.yaml").write_text(
        f"name: {name}\nversion: 1\ntitle: my own\nsource: me\ntemplate: 'Sentence: {{text}} Label:'\n"
        f"labels: [{', '.join(words)}]\nexamples: {name}.csv\n"
    )
    kinds = ["red", "blue", "green", "cat", "rose", "car"]  # words of the tiny tokenizer; one to three of them a row
    rows = []
    for i in range(60):
        words_of_it = [kinds[int(digit)] for digit in np.base_repr(i, 6)]
        rows.append(f"{'good' if i % 2 else 'bad'} {' '.join(words_of_it)},{i % 2}")
    (folder / f"{name}.csv").write_text("text,label\n" + "\n".join(rows) + "\n")
    return folder / f"{name}.yaml"


NULLS = ("random", "uniform", "other-query")
METRICS = CompareSpec().metrics


def little_cell(task: Path | str, learner: str | None = None, **changes: object) -> Cell:
    """One cell on a model in memory without the costly parts, unless they are asked for."""
    given = {
        "model": ModelSpec(name="memory:tiny", device="cpu"),
        "task": str(task),
        "episode": EpisodeSpec(k=3, queries=5),
        "prompt": PromptSpec(),
        "learner": learner,
        "metrics": METRICS,
        "nulls": NULLS if learner else (),
    }
    return Cell("compare", CompareCell.of(given | changes))


def little_tools(subject: Subject) -> Tools:
    return Tools(subjects={"memory:tiny": subject})


def little_result(subject: Subject, cell: Cell) -> Result:
    return run(cell, little_tools(subject))
