"""`iclgd compare`: the main job. Does a model change when it reads demonstrations as it would if finetuned on them?"""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import yaml

from iclgd.cli.options import (
    MODEL,
    OUTPUT,
    PROMPT,
    SEED,
    episode_options,
    episode_spec,
    model_spec,
    options,
    prompt_spec,
)
from iclgd.errors import Refusal
from iclgd.spec import LearnerSpec, StudySpec

if TYPE_CHECKING:
    from iclgd.report.comparison import Comparison

EXAMPLES = """\b
Examples:
  iclgd compare                                     embedded model and task, a few minutes
  iclgd compare --task sst2 --data DIR --seeds 3
  iclgd compare --lr 1e-4,1e-3,1e-2                 likeness against step size
  iclgd compare --task sst2,sst5,mr,subj,agnews,cb --data DIR --k 32 --seeds 3 --queries 200 \\
      --learners gd,lcgd --init trained,random,embeddings   Tables 1 and 2 of Deutch 2023
"""
LEARNERS = ("gd", "lcgd", "lcgd-paper")
INITS = ("trained", "random", "embeddings")
FINETUNING = (
    click.option("--learners", default="gd,lcgd", show_default=True, help="Of gd, lcgd, lcgd-paper."),
    click.option("--lr", default="1e-3", show_default=True, help="Learning rates, separated by commas."),
    click.option("--trains", default="kv", show_default=True, type=click.Choice(["kv", "qkv", "attention", "all"])),
    click.option("--epochs", default=1, show_default=True, type=click.IntRange(1)),
    click.option(
        "--clip", default=None, type=click.FloatRange(0, min_open=True), help="Clip gradients to this global norm."
    ),
    click.option(
        "--target", default="all", show_default=True, type=click.Choice(["all", "label"]), help="Tokens of the loss."
    ),
    click.option("--order", default=None, type=SEED, help="Finetune in another order, by seed (papers' code)."),
    click.option("--dropped-too", is_flag=True, help="Finetune also on demonstrations that --truncate dropped."),
)


@click.command(epilog=EXAMPLES)
@options(MODEL)
@click.option("--init", default="trained,random", show_default=True, help="Of trained, random, embeddings.")
@click.option("--task", default="sentiment", show_default=True, help="Tasks, separated by commas.")
@options(episode_options(k=8, queries=40))
@click.option("--seeds", default="1", show_default=True, help="How many draws of demonstrations, or which: 2,3,4.")
@options(FINETUNING, PROMPT)
@click.option(
    "--position", default="prompt", show_default=True, type=click.Choice(["prompt", "label"]), help="For the terminal."
)
@click.option("--spec", type=click.Path(path_type=Path), default=None, help="Repeat a study from its spec.yaml.")
@click.option("--out", type=click.Path(path_type=Path), default=None, help="Folder.  [default: runs/<task>-<key>]")
@options(OUTPUT)
def command(out: Path | None, overwrite: bool, spec: Path | None, position: str, **given: Any) -> None:
    """Whether a model changes, when it reads demonstrations, as it would if it were finetuned on them.

    Compares in-context learning with gradient descent and layer-causal gradient descent on the same demonstrations:
    likeness of what happens inside, agreement of what is predicted, each with its nulls, untrained baselines and
    noise floor. A study that was cut short goes on where it stopped when the same command is given again.
    """
    study = read_study(spec) if spec is not None else study_from(given)
    folder = (
        out or Path("runs") / f"{Path(study.tasks[0]).stem if len(study.tasks) == 1 else 'tasks'}-{study.key()[:8]}"
    )
    comparison = run_study(study, folder, overwrite, given["data"])

    from iclgd.report.compare import WHERE, Tables
    from iclgd.report.study import write_study
    from iclgd.report.terminal import say

    title = f"{title_of(comparison)}"
    repeat = shlex.join(["iclgd", "compare", "--spec", str(folder / "spec.yaml"), *_data_option(given["data"])])
    write_study(folder, comparison, title, repeat)
    say(f"{title} · {WHERE[position]}\n\n{Tables(comparison, position).text()}\n")
    say(f"report   {folder / 'index.html'}\nrepeat   {repeat}")


def run_study(study: StudySpec, folder: Path, overwrite: bool, data: Path | None) -> "Comparison":
    """Run what is not done yet, into the folder; a folder of another study, or of other data, is refused."""
    from iclgd.files import check_output, output_folder
    from iclgd.learners import make_learner
    from iclgd.store.cells import Store

    marker = folder / "spec.yaml"
    resumes = not overwrite and marker.is_file() and read_study(marker) == study
    check_output(folder, overwrite or resumes)
    from iclgd.tasks.episodes import load_episode

    for task in study.tasks:  # refuse a missing task before any weight is loaded
        load_episode(task, study.episode, data)
    for spec in study.learners:
        make_learner(spec)
    from iclgd.engine.serial import run_cells
    from iclgd.report.comparison import Comparison
    from iclgd.report.terminal import cell_progress

    begun = resumes

    def begin() -> None:
        """The folder appears, whole, with the first finished cell: a refusal on the way there changes nothing."""
        nonlocal begun
        if not begun and (overwrite or not folder.exists()):
            with output_folder(folder, overwrite) as new:
                spec = yaml.safe_dump(study.model_dump(mode="json"), sort_keys=False, allow_unicode=True)
                (new / marker.name).write_text(spec, encoding="utf-8")
        begun = True

    store, cells = Store(folder / "cells", begin, fresh=not resumes), study.cells()
    for cell in filter(store.has, cells):
        found = load_episode(cell.task, cell.episode, data).sha256()
        if store.read(cell).facts["episode_sha256"] != found:
            raise Refusal(
                f"{folder} was begun with other examples of {cell.task}: give --data as it was then, or another --out."
            )
    with cell_progress(len(cells)) as (announce, report):
        run_cells(cells, store, data, announce, report)
    return Comparison(study, {cell.key(): store.read(cell) for cell in cells})


def study_from(given: dict[str, Any]) -> StudySpec:
    """The study that the options describe."""
    rates = _numbers(given["lr"], float, "--lr")
    kinds = _choices(given["learners"], LEARNERS, "--learners")
    names = ("trains", "epochs", "clip", "target", "order", "dropped_too")
    shared = {name: given[name] for name in names}
    tasks = tuple(dict.fromkeys(filter(None, given["task"].split(","))))
    if not tasks:
        raise Refusal("--task takes names of tasks separated by commas; `iclgd tasks` lists all.")
    if shared["clip"] is not None and not shared["clip"] < float("inf"):
        raise Refusal("--clip takes a number above 0.")
    return StudySpec(
        model=model_spec(given),
        tasks=tasks,
        seeds=_seeds(given["seeds"]),
        inits=_choices(given["init"], INITS, "--init"),  # type: ignore[arg-type]
        learners=tuple(LearnerSpec(kind=kind, rate=rate, **shared) for kind in kinds for rate in rates),  # type: ignore[arg-type]
        episode=episode_spec(given, 0),
        prompt=prompt_spec(given),
    )


def read_study(path: Path) -> StudySpec:
    from pydantic import ValidationError

    from iclgd.tasks.text import first_error

    try:
        return StudySpec.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise Refusal(f"cannot read {path}: {error.strerror}.") from None
    except (ValidationError, yaml.YAMLError) as error:
        raise Refusal(f"{path} is not the spec of a study: {first_error(error)}.") from None


def title_of(comparison: "Comparison") -> str:
    """What was run, in one line."""
    study = comparison.study
    facts = [comparison.results[cell.key()].facts for cell in study.cells()]
    shown = sorted({int(str(fact["demonstrations"])) for fact in facts})
    k = f"{shown[0]}" if len(shown) == 1 else f"{shown[0]} to {shown[-1]}"
    seeds = f"{len(study.seeds)} seed{'s' if len(study.seeds) > 1 else ''}"
    asked = sorted({int(str(fact["queries"])) for fact in facts})
    queries = f"{asked[0]}" if len(asked) == 1 else f"{asked[0]} to {asked[-1]}"
    return (
        f"{study.model.name} · {', '.join(study.tasks)} · k = {k} · {seeds} × {queries} queries · {study.model.dtype}"
    )


def _choices(text: str, known: tuple[str, ...], option: str) -> tuple[str, ...]:
    chosen = tuple(dict.fromkeys(filter(None, text.split(","))))
    unknown = [name for name in chosen if name not in known]
    if unknown or not chosen:
        raise Refusal(
            f'{option} takes {", ".join(known)}, separated by commas; "{(unknown or [""])[0]}" is none of them.'
        )
    return chosen


def _numbers(text: str, kind: type, option: str) -> tuple[Any, ...]:
    try:
        numbers = tuple(dict.fromkeys(kind(part) for part in text.split(",")))
    except ValueError:
        raise Refusal(f'{option} takes numbers separated by commas; "{text}" is not that.') from None
    if any(not 0 <= number < float("inf") for number in numbers):
        raise Refusal(f"{option} takes numbers of 0 and above.")
    if len({f"{number:g}" for number in numbers}) < len(numbers) and kind is float:
        raise Refusal(f'{option}: two of "{text}" are the same to six digits, which is how a table names them.')
    return numbers


def _seeds(text: str) -> tuple[int, ...]:
    """`3` is the seeds 0, 1, 2; `2,3,4` is just those, and `5,` is the seed 5 alone."""
    if "," in text:
        seeds = _numbers(text.rstrip(","), int, "--seeds")
        if max(seeds) >= 2**32:
            raise Refusal("--seeds takes seeds below 4294967296.")
        return seeds
    count = _numbers(text, int, "--seeds")[0]
    if count < 1:
        raise Refusal("--seeds takes at least one draw.")
    return tuple(range(count))


def _data_option(data: Path | None) -> list[str]:
    return ["--data", str(data)] if data is not None else []
