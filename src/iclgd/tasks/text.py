"""A text task: a template, its label words, and where its examples are. One YAML file each."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field, ValidationError, field_validator, model_validator

from iclgd.complaints import complaint, in_a_file, main_error
from iclgd.errors import Refusal
from iclgd.lines import Lines
from iclgd.registry import Registry
from iclgd.spec import Spec

LIBRARY = Path(__file__).parent / "library"
SUFFIXES = (".jsonl", ".jsonl.gz", ".csv", ".parquet")  # of files of examples
FIELD = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")


class Splits(Spec):
    """Which split demonstrations come from, and which queries."""

    train: str = "train"
    queries: str = "validation"


class HubSource(Spec):
    """The same examples on the Hugging Face hub; ``columns`` renames the hub's columns to the template's fields."""

    path: str
    config: str | None = None
    splits: Splits = Splits()
    columns: dict[str, str] = Field(default_factory=dict)


class TextTask(Spec):
    """Classification of short texts by completing a template with a label word.

    The prompt is the template with its fields filled in; the completion is ``join + labels[i]``. ``version`` rises
    whenever either changes, so that results of different wordings are never taken for the same thing.
    """

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9_-]*$")
    version: int = Field(ge=1)
    title: str
    source: str
    template: str
    labels: tuple[str, ...] = Field(min_length=2)
    join: str = " "
    label_names: tuple[str, ...] | None = None  # spellings of the labels in the file, where they are words
    splits: Splits = Splits()
    examples: str | None = None  # one file beside the YAML that holds all splits
    hub: HubSource | None = None

    @field_validator("labels")
    @classmethod
    def _labels_differ(cls, labels: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(labels)) < len(labels) or not all(labels):
            raise ValueError("are label words, which must differ and not be empty")
        return labels

    @field_validator("template")
    @classmethod
    def _template_has_fields(cls, template: str) -> str:
        if not FIELD.search(template):
            raise ValueError("names no field; write one as {text}")
        if "label" in FIELD.findall(template):
            raise ValueError("must not hold {label}: the label word follows it")
        if template != template.rstrip():
            raise ValueError("ends in white space, which belongs to `join`: leave it out")
        return template

    @field_validator("examples")
    @classmethod
    def _examples_is_a_plain_name(cls, examples: str | None) -> str | None:
        if examples is not None and Path(examples).name != examples:
            raise ValueError("must be the name of a file beside the YAML, without folders")
        return examples

    @model_validator(mode="after")
    def _names_match_labels(self) -> "TextTask":
        if self.label_names is not None and len(self.label_names) != len(self.labels):
            raise ValueError("label_names and labels differ in length: give as many of each")
        return self

    @property
    def fields(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(FIELD.findall(self.template)))

    def prompt(self, fields: Mapping[str, str]) -> str:
        """The template filled in, in one pass: braces inside the texts stay what they are."""
        return FIELD.sub(lambda match: fields[match[1]], self.template)

    def completion(self, label: int) -> str:
        return self.join + self.labels[label]


@dataclass(frozen=True)
class Example:
    """The fields of the template and the index of the right label."""

    fields: Mapping[str, str]
    label: int


def read_task(path: Path) -> TextTask:
    """A task from its YAML file; what does not fit is refused with its line."""
    lines = Lines.read(path)
    try:
        return TextTask.model_validate(lines.mapping("task"))
    except ValidationError as error:
        raise lines.refusal(main_error(error)["loc"], in_a_file(complaint(error, TextTask))) from None


TASKS: Registry[Path] = Registry("task", "iclgd tasks", "iclgd.tasks")
"""Tasks by name: the path of each one's YAML file."""
for _path in sorted(LIBRARY.glob("*.yaml")):
    TASKS.add(_path.stem, _path)


def find_task(name: str) -> tuple[TextTask, Path]:
    """A task by name, or by the path of its YAML file; with the folder its own examples may lie in."""
    path = Path(name) if name.endswith((".yaml", ".yml")) else Path(TASKS[task_known(name)])
    return read_task(path), path.parent


def task_known(name: str) -> str:
    """A task's name; a file of examples is refused with what it lacks."""
    if name not in TASKS and name.endswith(SUFFIXES) and Path(name).is_file():
        raise Refusal(
            f"{name} holds examples without a template and label words: name a task .yaml that has "
            f"`examples: {Path(name).name}`; docs/tasks.md shows one."
        )
    TASKS.check(name)
    return name


def all_tasks() -> Iterator[TextTask]:
    return (find_task(name)[0] for name in TASKS)
