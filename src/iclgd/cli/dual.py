"""`iclgd dual`: softmax attention as one gradient step on a kernel model."""

import math
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

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
    refuse_drawing,
)
from iclgd.errors import Refusal

if TYPE_CHECKING:
    from iclgd.dual.small import Source
    from iclgd.languages.prepare import Data

EXAMPLES = """\b
Examples:
  iclgd dual check --task sentiment --k 8            every head as zero-shot part + one gradient step
  iclgd dual bound --task sentiment --k 24           theorem 3.2 against the number of demonstrations
  iclgd dual modify --with negative:k=3,beta=0.1     modified attention in a pretrained model
  iclgd dual train                                   modified attention trained on three regressions
  iclgd dual train --language 'a*bc*'                the same on membership in a regular language
"""
TASK = (
    click.option("--task", default="sentiment", show_default=True, help="Task name, task .yaml or episode .json."),
    click.option("--seed", default=0, show_default=True, type=SEED, help="Which demonstrations."),
)
OUT = (
    click.option(
        "--out", type=click.Path(path_type=Path), default=None, help="Folder for the report.  [default: runs/dual-KEY]"
    ),
    *OUTPUT,
)

FLOAT64 = click.option(
    "--dtype", default="float64", show_default=True, type=click.Choice(["float32", "float64"]), help="Of the model."
)
MODIFIED = (
    "regularised:alpha=0.1",
    "regularised:alpha=-0.1",
    "regularised-slide:alpha=0.1",
    "regularised-slide:alpha=-0.1",
    "negative:k=1,beta=0.1",
    "negative:k=3,beta=0.1",
    "augmented:c=0.1",
)


@click.group(epilog=EXAMPLES, invoke_without_command=True)
@click.pass_context
def command(context: click.Context) -> None:
    """Softmax attention is one gradient step on a kernel model (Ren and Liu)."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


@command.command()
@options(MODEL[:2], (FLOAT64,), MODEL[3:], TASK, episode_options(8, 4), PROMPT, OUT)
@click.pass_context
def check(context: click.Context, out: Path | None, overwrite: bool, **given: Any) -> None:
    """Every head of a pretrained model as zero-shot part + one gradient step.

    Builds the dual of each layer and head at the prompt's last token, takes the step by autograd, prints the residual,
    and shows how much of the head is the step, its rank and direction, and which demonstration gave what.
    """
    from iclgd.dual.heads import SIZES, analyse
    from iclgd.report.dual_check import CheckReport
    from iclgd.report.terminal import progress

    spec, out, episode, subject, prompts, title = _ready("check", context, out, overwrite, given)
    with progress("reading heads", len(prompts.queries)) as done:
        analyses = []
        for query in prompts.queries:
            analyses.append(analyse(subject, prompts, query))
            done(1)
    _finish(CheckReport(title, episode, analyses, SIZES, spec, _repeat()), out, overwrite)


@command.command()
@options(MODEL[:2], (FLOAT64,), MODEL[3:], TASK, episode_options(24, 2))
@click.option(
    "--held", default=8, show_default=True, type=click.IntRange(1), help="The last of them, which are not trained on."
)
@options(PROMPT, OUT)
@click.pass_context
def bound(context: click.Context, held: int, out: Path | None, overwrite: bool, **given: Any) -> None:
    """The generalisation bound of theorem 3.2 on real heads, beside the measured gap.

    Of K demonstrations the last ones are held out and measure the gap; the bound is for the first 1, 2, 4, … of the
    others.
    """
    from iclgd.dual.bound import sweep
    from iclgd.report.dual_bound import BoundReport
    from iclgd.report.terminal import progress

    spec, out, _, subject, prompts, title = _ready("bound", context, out, overwrite, {**given, "held": held})
    left = len(prompts.demos) - held
    if left < 1:
        raise Refusal(f"of {len(prompts.demos)} demonstrations none is left when {held} are held out: lower --held.")
    counts = sorted({*(2**i for i in range(left.bit_length())), left})
    with progress("reading heads", len(prompts.queries)) as done:
        sweeps = []
        for query in prompts.queries:
            sweeps.append(sweep(subject, prompts, query, counts, held))
            done(1)
    _finish(BoundReport(f"{title} · {held} held out", sweeps, spec, _repeat()), out, overwrite)


@command.command()
@click.option(
    "--with",
    "changes",
    multiple=True,
    default=MODIFIED,
    help="plain, regularised:alpha=, regularised-slide:alpha=, augmented:c= (untrained adapters) or negative:k=,beta=. "
    "May be repeated.  [default: a few of each]",
)
@options(MODEL, TASK, episode_options(16, 100), PROMPT, OUT)
@click.pass_context
def modify(context: click.Context, changes: tuple[str, ...], out: Path | None, overwrite: bool, **given: Any) -> None:
    """Modified attention inside a pretrained model: accuracy beside the unmodified one."""
    from iclgd.dual.modified import Negative, parse
    from iclgd.dual.pretrained import ModifiedInContext, with_adapters
    from iclgd.report.dual_modify import ModifyReport
    from iclgd.report.terminal import progress

    made = {name: parse(name) for name in ("plain", *changes)}
    spec, out, _, subject, prompts, title = _ready("modify", context, out, overwrite, {**given, "changes": list(made)})
    for name, change in made.items():
        if isinstance(change, Negative) and change.k > len(prompts.demos):
            raise Refusal(
                f"{name} needs {change.k} demonstrations to choose from, not {len(prompts.demos)}: raise --k."
            )
    traces = {}
    with progress("tracing", len(made) * len(prompts.queries)) as done:
        for name, change in made.items():
            with ModifiedInContext(with_adapters(change, subject)).learn(subject, prompts) as predictor:
                traces[name] = predictor.trace(prompts, progress=done)
    _finish(ModifyReport(title, traces, spec, _repeat()), out, overwrite)


@command.command()
@click.option(
    "--task",
    "tasks",
    multiple=True,
    help="linear, trigonometric, exponential (all three unless given), "
    "or gaussian, skewed, sparse, quadratic, relu, tree, or with --dx 1 sine, sine-one-key. May be repeated.",
)
@click.option(
    "--language",
    "languages",
    multiple=True,
    help="Membership in a regular language instead: a built-in name or an expression, its labels' sign drawn for each "
    "episode; random for another language in each. May be repeated.",
)
@click.option("--dx", default=10, show_default=True, type=click.IntRange(1), help="Inputs.")
@click.option("--demos", type=click.IntRange(1), help="Demonstrations in an episode.  [default: 15; of words, 20]")
@click.option("--alphabet", default="", help="More symbols than the expression of --language has.")
@click.option("--max-length", type=click.IntRange(1), help="Of words.  [default: 12; 8 for random languages]")
@click.option("--seeds", default=8, show_default=True, type=click.IntRange(1, 1000))
@click.option("--jobs", default=2, show_default=True, type=click.IntRange(1), help="Curves to train at a time.")
@click.option("--epochs", default=100, show_default=True, type=click.IntRange(1))
@click.option("--steps", default=20, show_default=True, type=click.IntRange(1), help="Steps in an epoch.")
@click.option("--batch", default=128, show_default=True, type=click.IntRange(1), help="Episodes in a step.")
@click.option("--rate", default=1e-2, show_default=True, type=click.FloatRange(0, min_open=True), help="Adam's rate.")
@options(OUT)
def train(
    tasks: tuple[str, ...],
    languages: tuple[str, ...],
    dx: int,
    demos: int | None,
    alphabet: str,
    max_length: int | None,
    seeds: int,
    jobs: int,
    out: Path | None,
    overwrite: bool,
    **recipe: Any,
) -> None:
    """Train modified attention on regressions, the slides' three panels, or on regular languages."""
    from iclgd.dual.modified import Negative
    from iclgd.dual.small import ARMS, LINKS, Recipe, Source, find_task
    from iclgd.report.dual_panels import train_panels
    from iclgd.report.terminal import progress, working

    if not math.isfinite(recipe["rate"]):
        raise Refusal(f"a learning rate is a finite number, not {recipe['rate']}.")
    if tasks and languages:
        raise Refusal("regressions and languages are trained apart; give --task or --language.")
    if not languages and (alphabet or max_length):
        raise Refusal("--alphabet and --max-length are about words; give --language with them.")
    demos = demos or (20 if languages else 15)
    most = max(arm.base.k for arm in ARMS if isinstance(arm.base, Negative))
    if demos < most:
        raise Refusal(f"{most} negative samples need as many demonstrations, not {demos}: raise --demos.")
    made = Recipe(**recipe)
    names = list(dict.fromkeys(languages or tasks or LINKS))
    spec = {"command": "train", "tasks": names, "dx": dx, "demos": demos, "seeds": seeds, **recipe}
    if languages:
        from iclgd.languages.prepare import Data

        given: dict[str, Any] = {"alphabet": alphabet, "dims": dx, "demos": demos, "seeds": seeds}
        words = [Data(language=n, max_length=max_length or (8 if n == "random" else 12), **given) for n in names]
        spec |= {"alphabet": alphabet, "lengths": [data.max_length for data in words]}
        out = _out(out, overwrite, spec)
        with working("training autoencoders"):
            sources = {data.language: _words(data) for data in words}
    else:
        found = {name: find_task(name, dx, demos) for name in names}
        out = _out(out, overwrite, spec)
        sources = {name: [Source(task, task)] * seeds for name, task in found.items()}
    with progress("training", len(names) * (1 + len(ARMS))) as done:
        report = train_panels(sources, made, spec, _repeat(), jobs, done)
    _finish(report, out, overwrite)


def _words(data: "Data") -> "list[Source]":
    """Membership in a language, by seed; it is tested on words that neither its autoencoder nor its layer was shown."""
    from iclgd.dual.small import Source
    from iclgd.languages.prepare import prepare

    return [Source(*pair) for pair in prepare(data).tasks(data.demos, data.language != "random")]


def _ready(
    name: str, context: click.Context, out: Path | None, overwrite: bool, given: dict[str, Any]
) -> tuple[Any, ...]:
    """What the commands on pretrained models share: spec, output folder, episode, subject, prompts and title."""
    from iclgd.prompts import build_prompts
    from iclgd.report.terminal import working
    from iclgd.tasks.episodes import load_episode

    from_file = given["task"].endswith(".json")
    if from_file:
        refuse_drawing(context)
    model, drawn, asked = model_spec(given), episode_spec(given, given["seed"]), prompt_spec(given)
    spec: dict[str, Any] = {
        "command": name,
        "model": model.model_dump(mode="json"),
        "episode": None if from_file else drawn.model_dump(mode="json"),
        "prompt": asked.model_dump(mode="json"),
        **{key: given[key] for key in ("task", "held", "changes") if key in given},
    }
    out = _out(out, overwrite, spec)
    with working("starting") as note:
        episode = load_episode(given["task"], drawn, given["data"])

        from iclgd.models.load import load_subject

        subject = load_subject(model, note)
    prompts = build_prompts(subject.tokenizer, episode, asked, subject.room)
    title = (
        f"{subject.name} · {episode.task.name} · k = {len(prompts.demos)} · "
        f"{'' if from_file else f'seed {drawn.seed} · '}{len(prompts.queries)} queries · {model.dtype}"
    )
    return spec, out, episode, subject, prompts, title


def _out(out: Path | None, overwrite: bool, spec: dict[str, Any]) -> Path:
    from iclgd.files import check_output
    from iclgd.spec import key

    out = out or Path("runs") / f"dual-{key(spec)[:8]}"
    check_output(out, overwrite)
    return out


def _finish(report: Any, out: Path, overwrite: bool) -> None:
    from iclgd.files import output_folder
    from iclgd.report.terminal import say

    with output_folder(out, overwrite) as folder:
        report.write(folder)
    say(report.text())
    say(f"\nreport   {out / 'index.html'}\nrepeat   {_repeat()}")


def _repeat() -> str:
    """The command as it was typed."""
    return shlex.join(["iclgd", *sys.argv[1:]])
