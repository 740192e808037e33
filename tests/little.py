"""A little study: a tiny model in a folder and a task of a user's own, as anybody would have them."""

from pathlib import Path

import numpy as np
import torch

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


def little_cell(model: Path, task: Path, *learners: "LearnerSpec", **changes: object) -> "CellSpec":
    """One cell without the costly parts, unless they are asked for."""
    from iclgd.spec import CellSpec, EpisodeSpec, LearnerSpec, ModelSpec, PromptSpec

    return CellSpec(
        model=ModelSpec(name=str(model), device="cpu"),
        task=str(task),
        episode=EpisodeSpec(k=3, queries=5),
        prompt=PromptSpec(),
        learners=learners or (LearnerSpec(kind="gd", rate=0.01),),
        other_task=str(task),
        trained_nulls=False,
        floor=False,
    ).model_copy(update=changes)
