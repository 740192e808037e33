"""Fields that labs on language models share: which model, which task and episode, how it becomes tokens."""

from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, model_validator

from iclgd.errors import Refusal
from iclgd.registry import absolute_name
from iclgd.spec import Dtype, EpisodeSpec, Init, ModelSpec, Names, PromptSpec, Seed, Seeds, Spec, Start, option, unique
from iclgd.tasks.text import TASKS, task_known
from iclgd.tools import MEMORY


def absolute(given: Any) -> Any:
    """A path that is there, from the root: a spec has to mean the same in any folder."""
    return (
        str(Path(given).resolve()) if isinstance(given, str | Path) and str(given) and Path(given).exists() else given
    )


def task_name(given: Any) -> Any:
    """A task's name, if there is one, stays; the path of a task or episode file, or of `mine.py:TASK`, is whole."""
    if str(given).endswith((".yaml", ".yml", ".json")):
        return absolute(given)
    name = absolute_name(str(given))
    return task_known(name)


def task_names(given: Any) -> Any:
    """Several tasks; what is no list is left to whoever checks it."""
    names = unique(given)
    return tuple(map(task_name, names)) if isinstance(names, tuple) else names


Tasks = Annotated[Names, BeforeValidator(task_names), TASKS]
OtherTask = Annotated[str | None, BeforeValidator(lambda given: task_name(given) if given else given), TASKS]


def unescaped(given: Any) -> Any:
    r"""`\n` as it is typed in a shell."""
    return given.replace(r"\n", "\n").replace(r"\t", "\t") if isinstance(given, str) else given


def untrained_seed(task: str, seed: int) -> int:
    """Every task and draw has untrained weights of its own: shared ones would make tasks agree by chance."""
    return int.from_bytes(sha256(f"{task} {seed}".encode()).digest()[:4], "big")


class ModelOptions(Spec):
    """Which weights, in which arithmetic."""

    model: str = option("smollm2-135m", "Embedded name, folder, .gguf file or hub name.", keyed=False)
    revision: str | None = option(None, "Revision of a hub model.", keyed=False)
    dtype: Dtype = option("float32", "Arithmetic of the model; tf32: float32 whose products a GPU rounds to ten bits.")
    device: str = option("auto", "cpu, cuda, cuda:1, …; auto takes a GPU where there is one.", keyed=False)
    device_map: str | None = option(
        None, "Spread a large model over devices: auto, balanced, or JSON with a device for each part.", keyed=False
    )
    allow_pickle: bool = option(
        False, "Read pickled weights too. They can run code: only if you trust them.", keyed=False
    )
    trust_remote_code: bool = option(False, "Run code that comes with a hub model. Off for good reason.", keyed=False)

    @model_validator(mode="before")
    @classmethod
    def _check_model(cls, given: Any) -> Any:
        """A wrong name is refused before anything heavy is imported."""
        from iclgd.models.identity import check_model_name

        if isinstance(given, dict) and isinstance(name := given.get("model"), str) and not name.startswith(MEMORY):
            check_model_name(given["model"])
            if Path(given["model"]).is_dir() or given["model"].endswith(".gguf"):
                given = {**given, "model": absolute(given["model"])}
        return given

    def model_spec(self, init: Init = "trained", init_seed: int = 0) -> ModelSpec:
        return self.part(ModelSpec, name=self.model, init=init, init_seed=init_seed)

    @property
    def model_title(self) -> str:
        return Path(self.model).name if self.model.startswith("/") else self.model.removeprefix(MEMORY)


class EpisodeOptions(Spec):
    """Which demonstrations and which queries."""

    data: Annotated[Path | None, BeforeValidator(absolute)] = option(
        None, "Folder with <task>/<split> files (or ICLGD_DATA).", keyed=False
    )
    k: int = option(32, "Number of demonstrations.", ge=1)
    queries: int = option(100, "Number of queries, or all there are.", ge=1)
    query_seed: Seed = option(1, "Which queries.")
    balanced: bool = option(False, "Draw equally many demonstrations of each class.")

    def episode_spec(self, seed: int) -> EpisodeSpec:
        return self.part(EpisodeSpec, seed=seed)


class OneEpisode(EpisodeOptions):
    """One task and one draw of demonstrations."""

    task: Annotated[str, BeforeValidator(task_name), TASKS] = option(
        "sentiment", "Task name, task .yaml or episode .json.", keyed=False
    )
    seed: Seed = option(0, "Which demonstrations.")

    @model_validator(mode="before")
    @classmethod
    def _check_file(cls, given: Any) -> Any:
        refuse_drawing([given.get("task")], given, cls) if isinstance(given, dict) else None
        return given


class SomeEpisodes(EpisodeOptions):
    """Some tasks, and some draws of demonstrations of each."""

    task: Tasks = option(("sentiment",), "Tasks, separated by commas: names, task .yaml or episode .json files.")
    seeds: Seeds = option((0,), "How many draws of demonstrations, or which: 2,3,4.  [default: 1]")

    @model_validator(mode="before")
    @classmethod
    def _check_files(cls, given: Any) -> Any:
        if isinstance(given, dict) and "task" in given:
            refuse_drawing(unique(given["task"]) or (), given, cls)
        return given

    @property
    def task_titles(self) -> dict[str, str]:
        """What tables call each task: a file's name without its folder."""
        return {task: Path(task).stem if "/" in task else task for task in self.task}

    def title(self) -> str:
        return Path(self.task[0]).stem if len(self.task) == 1 else "tasks"

    @property
    def interval_note(self) -> str:
        """What the intervals of a mean are over."""
        if len(self.task) > 1:
            return "Means over tasks, with 95% intervals over them."
        return self.draws_note

    @property
    def one_draw(self) -> str:
        """What an answer says of its intervals where they are of one draw of one task, which decides nothing."""
        return "One draw: intervals are over queries alone." if len(self.seeds) == len(self.task) == 1 else ""

    @property
    def draws_note(self) -> str:
        """The same for one task."""
        if len(self.seeds) == 1:
            return "Means with 95% intervals over queries; 1 seed: no interval over draws."
        return "Means with 95% intervals over draws of demonstrations and queries."


class PromptOptions(Spec):
    """How an episode becomes tokens."""

    separator: Annotated[str, BeforeValidator(unescaped)] = option(
        "\n\n", 'Between demonstrations; "eos" is the end-of-text token.'
    )
    truncate: bool = option(False, "Drop the last demonstrations that do not fit the context.")
    start: Start = option(
        "bos", "First token of every prompt: the tokenizer's bos (nothing where it has none), eos, or separator."
    )

    def prompt_spec(self) -> PromptSpec:
        return self.part(PromptSpec)


DRAWING = ("k", "queries", "query_seed", "balanced", "seed", "seeds")


def refuse_drawing(tasks: Any, given: dict[str, Any], kind: type[Spec]) -> None:
    """An episode file says which demonstrations and queries there are: fields that would draw them are refused.

    Those at the default of ``kind`` pass: a study's own file has them all.
    """
    if isinstance(tasks, list | tuple) and any(str(task).endswith(".json") for task in tasks):
        for name in DRAWING:
            value, default = given.get(name), kind.model_fields[name].default if name in kind.model_fields else None
            value = tuple(value) if isinstance(value, list) else value
            if value is not None and str(value) != str(default):
                raise Refusal(f"an episode file holds its own demonstrations and queries: leave out `{name}`.")


def refuse_same(other: str | None, tasks: Names) -> None:
    """A null's task has to be another one."""
    if other is not None and other in tasks:
        raise Refusal(f'`other` has to be another task than those asked for, and "{other}" is one of them.')
