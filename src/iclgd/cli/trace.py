"""`iclgd trace`: zero-shot and in-context traces of one episode."""

import shlex
import sys
from pathlib import Path
from typing import Any

import click

from iclgd.cli.options import (
    EPISODE,
    MODEL,
    OUTPUT,
    PROMPT,
    SEED,
    episode_spec,
    model_spec,
    options,
    prompt_spec,
    refuse_drawing,
)

EXAMPLES = """\b
Examples:
  iclgd trace                                        the embedded model on an embedded task
  iclgd trace --task kinds --model gemma3-270m --k 48
  iclgd trace --task sst2 --data DIR --k 32 --queries 100 --out runs/sst2
  iclgd trace --task episode.json                    exactly the episode in a file
"""


@click.command(epilog=EXAMPLES)
@options(MODEL)
@click.option("--task", default="sentiment", show_default=True, help="Task name, task .yaml or episode .json.")
@options(EPISODE)
@click.option("--seed", default=0, show_default=True, type=SEED, help="Which demonstrations.")
@options(PROMPT)
@click.option("--out", type=click.Path(path_type=Path), default=None, help="Folder for arrays, record and report.")
@options(OUTPUT)
@click.pass_context
def command(context: click.Context, out: Path | None, overwrite: bool, **given: Any) -> None:
    """What reading demonstrations changes inside a language model.

    Asks every query twice, without and with the demonstrations in front of it, and shows accuracy, label
    probabilities and, layer by layer, how far the attention output moves.
    """
    from iclgd.files import check_output, output_folder
    from iclgd.prompts import build_prompts
    from iclgd.report.terminal import progress, say, working
    from iclgd.tasks.episodes import load_episode

    from_file = given["task"].endswith(".json")
    if from_file:
        refuse_drawing(context)
    if out is not None:
        check_output(out, overwrite)
    model, drawn, asked = model_spec(given), episode_spec(given, given["seed"]), prompt_spec(given)
    with working("starting") as note:
        episode = load_episode(given["task"], drawn, given["data"])

        from iclgd.learners.prompted import InContext, ZeroShot
        from iclgd.models.load import load_subject
        from iclgd.report.trace import TraceReport

        subject = load_subject(model, note)
    prompts = build_prompts(subject.tokenizer, episode, asked, subject.room)
    with progress("tracing", 2 * len(prompts.queries)) as done:
        with ZeroShot().learn(subject, prompts) as predictor:
            zero = predictor.trace(prompts, progress=done)
        with InContext().learn(subject, prompts) as predictor:
            icl = predictor.trace(prompts, progress=done)
    dropped = f" ({len(prompts.dropped)} dropped to fit)" if prompts.dropped else ""
    title = (
        f"{subject.name} · {episode.task.name} · k = {len(prompts.demos)}{dropped} · "
        f"{'' if from_file else f'seed {drawn.seed} · '}{len(prompts.queries)} queries · {model.dtype}"
    )
    spec = {
        "task": given["task"],
        "model": model.model_dump(mode="json"),
        "episode": None if from_file else drawn.model_dump(mode="json"),
        "prompt": asked.model_dump(mode="json"),
    }
    report = TraceReport(title, episode, prompts, zero, icl, spec, _repeat())
    say(report.text())
    if out is not None:
        with output_folder(out, overwrite) as folder:
            report.write(folder)
        say(f"\nreport   {out / 'index.html'}")
    say(f"{'' if out else chr(10)}repeat   {_repeat()}")


def _repeat() -> str:
    """The command as it was typed."""
    return shlex.join(["iclgd", *sys.argv[1:]])
