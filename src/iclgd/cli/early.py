"""What files and folders alone show to be wrong with a command, said before anything heavy is imported.

Whoever uses them checks them again: this only makes the refusal come at once.
"""

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from iclgd.files import check_output, check_writable
from iclgd.lab import LabSpec
from iclgd.options import EpisodeOptions, ModelOptions, absolute, refuse_drawing, task_names
from iclgd.spec import EpisodeSpec, ModelSpec


def check_places(out: str | None, store: str | None) -> None:
    """Refuse a folder that is none, and a store that cannot be made; whether one that is there has to be written, and
    whose study a folder holds, is known later."""
    if out:
        check_output(Path(out), overwrite=True)
    if store and not Path(store).is_dir():
        check_writable(Path(store), Path(store).absolute())


def check_files(kind: type[LabSpec], given: Mapping[str, Any]) -> None:
    """Refuse a model that is none, and tasks that have not what is asked of them."""
    if issubclass(kind, ModelOptions):
        check_weights(ModelOptions.of(_fields(ModelOptions, kind, given)).model_spec())
    if issubclass(kind, EpisodeOptions) and isinstance(tasks := task_names(_task(kind, given)), tuple):
        refuse_drawing(tasks, dict(given), kind)
        asked = EpisodeOptions.of(_fields(EpisodeOptions, kind, given))
        for task in tasks:
            _check_task(str(task), asked)


def check_weights(spec: ModelSpec) -> None:
    """Refuse files that hold no weights that may be read, and places where none can be put; whether terms were
    accepted matters when weights are."""
    from iclgd.models.gguf import refuse_other_files
    from iclgd.models.identity import check_model
    from iclgd.models.places import check_where

    check_model(spec)
    check_where(spec)
    if Path(spec.name).suffix == ".gguf":
        refuse_other_files(Path(spec.name))


def _check_task(name: str, asked: EpisodeOptions) -> None:
    from iclgd.tasks.episodes import draw, read_episode
    from iclgd.tasks.sources import load_examples
    from iclgd.tasks.text import find_task

    if name.endswith(".json"):
        read_episode(Path(name))
        return
    task, beside = find_task(name)
    if task.hub is None or find_spec("datasets") is None:  # else it may be a download, which a run says that it does
        draw(task, load_examples(task, beside, asked.data), asked.part(EpisodeSpec))


def _task(kind: type[LabSpec], given: Mapping[str, Any]) -> Any:
    found = given.get("task", kind.model_fields["task"].default)
    return (absolute(found),) if kind.model_fields["task"].annotation is str else found  # one, whatever is in its name


def _fields(part: type[Any], kind: type[LabSpec], given: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a part as they are given, or else as the lab has them by itself."""
    return {name: given.get(name, kind.model_fields[name].default) for name in part.model_fields}
