"""Episodes: k ordered demonstrations and the queries asked about them, drawn by seed or read from a file."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import Field, ValidationError

from iclgd.complaints import complaint, in_a_file
from iclgd.errors import Refusal
from iclgd.files import content
from iclgd.spec import EpisodeSpec, Spec, canonical
from iclgd.tasks.sources import Examples, load_examples
from iclgd.tasks.text import Example, TextTask, find_task


@dataclass(frozen=True)
class Episode:
    """One task's demonstrations, in order, and its queries."""

    task: TextTask
    demos: tuple[Example, ...]
    queries: tuple[Example, ...]
    origin: str
    redraw: "Callable[[int], Episode] | None" = field(default=None, repr=False, compare=False)  # by another seed

    def sha256(self) -> str:
        """Names the exact content: template, label words, demonstrations in order, queries in order."""
        return hashlib.sha256(canonical(_as_file(self).model_dump(mode="json")).encode()).hexdigest()

    def permuted(self, seed: int) -> "Episode":
        """The same demonstrations in another order."""
        order = np.random.RandomState(seed).permutation(len(self.demos))
        return replace(self, demos=tuple(self.demos[i] for i in order))

    def with_shuffled_labels(self, seed: int) -> "Episode":
        """The same demonstrations with their labels permuted among them (a null: what is said, not what is right)."""
        order = np.random.RandomState(seed).permutation(len(self.demos))
        labels = [self.demos[i].label for i in order]
        return replace(self, demos=tuple(Example(d.fields, y) for d, y in zip(self.demos, labels, strict=True)))

    def with_wrong_labels(self, seed: int) -> "Episode":
        """Every label replaced by a wrong one: the classes take each other's places, none its own (by seed)."""
        classes, random = len(self.task.labels), np.random.RandomState(seed)
        other = random.permutation(classes)
        while (other == np.arange(classes)).any():
            other = random.permutation(classes)
        return replace(self, demos=tuple(Example(d.fields, int(other[d.label])) for d in self.demos))


def draw(task: TextTask, examples: Examples, spec: EpisodeSpec) -> Episode:
    """An episode by seed: demonstrations from the training split, queries from the other by a seed of their own.

    ``np.random.RandomState`` is used because its streams are frozen: the same seed gives the same episode in every
    version. ``balanced`` draws k / classes demonstrations of each class (the first classes of a random order get
    the remainder); plain drawing takes them as they come, as the papers did. A task with fewer queries than are asked
    for gives all it has.
    """
    if spec.k > len(examples.train):
        raise Refusal(
            f"{spec.k} demonstrations were asked for, but the training split of {task.name} has {len(examples.train)}: "
            "lower `k`."
        )
    random = np.random.RandomState(spec.seed)
    order = random.permutation(len(examples.train))
    chosen = _balanced(task, examples, spec.k, order, random) if spec.balanced else order[: spec.k]
    asked = np.random.RandomState(spec.query_seed).permutation(len(examples.queries))[: spec.queries]
    demos = tuple(examples.train[i] for i in chosen)
    queries = tuple(examples.queries[i] for i in asked)

    def redraw(seed: int) -> Episode:
        return draw(task, examples, spec.model_copy(update={"seed": seed}))

    return Episode(task, demos, queries, examples.origin, redraw)


def _balanced(
    task: TextTask, examples: Examples, k: int, order: np.ndarray, random: np.random.RandomState
) -> np.ndarray:
    labels = np.array([examples.train[i].label for i in order])
    classes = len(task.labels)
    quota = np.full(classes, k // classes)
    quota[random.permutation(classes)[: k % classes]] += 1
    chosen = [order[labels == label][:n] for label, n in enumerate(quota)]
    for label, (got, n) in enumerate(zip(chosen, quota, strict=True)):
        if len(got) < n:
            raise Refusal(
                f'a balanced draw needs {n} examples of "{task.labels[label]}", but {task.name} has {len(got)}: '
                "lower `k`."
            )
    return random.permutation(np.concatenate(chosen))


class EpisodeFileExample(Spec):
    fields: dict[str, str]
    label: int = Field(ge=0)


class EpisodeFile(Spec):
    """The file form of an episode: everything another program needs to ask exactly the same thing."""

    format: Literal["iclgd-episode-1"]
    task: str
    version: int
    template: str
    join: str
    labels: tuple[str, ...]
    demonstrations: tuple[EpisodeFileExample, ...]
    queries: tuple[EpisodeFileExample, ...] = Field(min_length=1)


def _as_file(episode: Episode) -> EpisodeFile:
    def plain(examples: tuple[Example, ...]) -> tuple[EpisodeFileExample, ...]:
        return tuple(EpisodeFileExample(fields=dict(e.fields), label=e.label) for e in examples)

    task = episode.task
    return EpisodeFile(
        format="iclgd-episode-1",
        task=task.name,
        version=task.version,
        template=task.template,
        join=task.join,
        labels=task.labels,
        demonstrations=plain(episode.demos),
        queries=plain(episode.queries),
    )


def episode_text(episode: Episode) -> str:
    """The content of an episode's file."""
    return json.dumps(_as_file(episode).model_dump(mode="json"), indent=1, ensure_ascii=False) + "\n"


def read_episode(path: Path) -> Episode:
    """An episode from its file, whoever wrote it."""
    try:
        file = EpisodeFile.model_validate(_json(path))
        task = TextTask(
            name=file.task,
            version=file.version,
            title=f"episode file {path.name}",
            source=path.name,
            template=file.template,
            join=file.join,
            labels=file.labels,
        )
    except ValidationError as error:
        kind = EpisodeFile if error.title == EpisodeFile.__name__ else TextTask
        raise Refusal(f"{path} is not an episode file: {in_a_file(complaint(error, kind))}") from None
    for example in (*file.demonstrations, *file.queries):
        missing = [name for name in task.fields if name not in example.fields]
        if missing or example.label >= len(task.labels):
            field, most = f'an example needs the field "{missing[0]}"' if missing else "", len(task.labels)
            problem = field or f"a label must be below {most}, which {example.label} is not"
            raise Refusal(f"{path} is not an episode file: {problem}.")
    demos, queries = (tuple(Example(e.fields, e.label) for e in part) for part in (file.demonstrations, file.queries))
    return Episode(task, demos, queries, str(path))


def _json(path: Path) -> Any:
    raw = content(path)
    try:
        return json.loads(raw)
    except json.JSONDecodeError as error:
        wrong = f"line {error.lineno} is not JSON ({error.msg})"
        raise Refusal(f"{path} is not an episode file: {wrong}; correct it.") from None
    except (ValueError, RecursionError):
        raise Refusal(f"{path} is not an episode file: it must be JSON in UTF-8.") from None


def load_episode(task: str, spec: EpisodeSpec, data: Path | None = None) -> Episode:
    """An episode of a named task, of a task in a YAML file, or from an episode file (``.json``)."""
    if task.endswith(".json"):
        return read_episode(Path(task))
    found, beside = find_task(task)
    return draw(found, load_examples(found, beside, data), spec)
