"""Options that commands share, and the specs they make."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from iclgd.errors import Refusal
from iclgd.spec import EpisodeSpec, Init, ModelSpec, PromptSpec

Command = TypeVar("Command", bound=Callable[..., Any])
SEED = click.IntRange(0, 2**32 - 1)

MODEL = (
    click.option(
        "--model", default="smollm2-135m", show_default=True, help="Embedded name, folder, .gguf file or hub name."
    ),
    click.option("--revision", default=None, help="Revision of a hub model."),
    click.option(
        "--dtype",
        default="float32",
        show_default=True,
        type=click.Choice(["float32", "float64", "bfloat16", "float16"]),
    ),
    click.option(
        "--device", default="auto", show_default=True, help="cpu, cuda, cuda:1, …; auto takes a GPU where there is one."
    ),
    click.option("--device-map", default=None, help='Spread a large model over devices, for instance "auto".'),
    click.option(
        "--allow-pickle", is_flag=True, help="Read pickled weights too. They can run code: only if you trust them."
    ),
    click.option(
        "--trust-remote-code", is_flag=True, help="Run code that comes with a hub model. Off for good reason."
    ),
)
EPISODE = (
    click.option(
        "--data",
        type=click.Path(path_type=Path),
        default=None,
        help="Folder with <task>/<split> files (or ICLGD_DATA).",
    ),
    click.option("--k", default=32, show_default=True, type=click.IntRange(0), help="Number of demonstrations."),
    click.option(
        "--queries", default=100, show_default=True, type=click.IntRange(1), help="Number of queries, or all there are."
    ),
    click.option("--query-seed", default=1, show_default=True, type=SEED, help="Which queries."),
    click.option("--balanced", is_flag=True, help="Draw equally many demonstrations of each class."),
)
PROMPT = (
    click.option(
        "--separator",
        default=r"\n\n",
        show_default=True,
        help='Between demonstrations; "eos" is the end-of-text token.',
    ),
    click.option("--truncate", is_flag=True, help="Drop the last demonstrations that do not fit the context."),
)
OUTPUT = (click.option("--overwrite", is_flag=True, help="Replace the output folder if it exists."),)


def options(*groups: tuple[Callable[[Any], Any], ...]) -> Callable[[Command], Command]:
    """Put groups of options on a command, in reading order."""

    def put(command: Command) -> Command:
        for option in reversed([option for group in groups for option in group]):
            command = option(command)
        return command

    return put


def model_spec(given: dict[str, Any], init: Init = "trained", init_seed: int = 0) -> ModelSpec:
    names = ("revision", "dtype", "device", "device_map", "allow_pickle", "trust_remote_code")
    return ModelSpec(name=given["model"], init=init, init_seed=init_seed, **{name: given[name] for name in names})


def refuse_drawing(context: click.Context) -> None:
    """An episode file says which demonstrations and queries there are: options that would draw them are refused."""
    for name in ("data", "k", "queries", "query_seed", "balanced", "seed", "seeds"):
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            option = name.replace("_", "-")
            raise Refusal(f"an episode file holds its own demonstrations and queries: leave out --{option}.")


def episode_spec(given: dict[str, Any], seed: int) -> EpisodeSpec:
    return EpisodeSpec(seed=seed, **{name: given[name] for name in ("k", "queries", "query_seed", "balanced")})


def prompt_spec(given: dict[str, Any]) -> PromptSpec:
    separator = given["separator"].replace(r"\n", "\n").replace(r"\t", "\t")
    return PromptSpec(separator=separator, truncate=given["truncate"])
