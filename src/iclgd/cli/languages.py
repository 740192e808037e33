"""`iclgd languages`: membership of strings in a regular language, learned in context."""

import shlex
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from iclgd.cli.options import OUTPUT, options

if TYPE_CHECKING:
    from iclgd.labs.languages.run import Experiment

EXAMPLES = """\b
Examples:
  iclgd languages run                                      the document's first language, as the document has it
  iclgd languages run --language '((a|b)c)*' --labels sign --encoder pca
  iclgd languages run --language random --labels language  another language in every episode
  iclgd languages sample 'a*bc*' --length 5 --count 10
  iclgd languages all                                      the whole set
"""
OUT = (
    click.option(
        "--out",
        type=click.Path(path_type=Path),
        default=None,
        help="Folder for the report.  [default: runs/languages-KEY]",
    ),
    *OUTPUT,
)


@click.group(epilog=EXAMPLES)
def command() -> None:
    """Membership of strings in a regular language, learned in context."""


@command.command("list")
@click.option("--max-length", default=12, show_default=True, type=click.IntRange(1, 40))
def list_(max_length: int) -> None:
    """The built-in languages, their automata and how many words they have."""
    from iclgd.report.terminal import say, table
    from iclgd.small.languages.expressions import BUILT_IN, language

    rows = []
    for name, expression in BUILT_IN.items():
        found = language(name)
        words = sum(found.count(length) for length in range(max_length + 1))
        rows.append([name, expression, found.alphabet, str(len(found.table)), str(words)])
    say(table(["name", "expression", "alphabet", "states", f"words up to length {max_length}"], rows))


@command.command()
@click.argument("language")
@click.option("--length", default=8, show_default=True, type=click.IntRange(1, 40))
@click.option("--count", default=10, show_default=True, type=click.IntRange(1, 1_000_000))
@click.option("--alphabet", default="", help="More symbols than the expression has.")
@click.option("--complement", is_flag=True, help="Words that are not in the language.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0))
def sample(language: str, length: int, count: int, alphabet: str, complement: bool, seed: int) -> None:
    """Words of one length, one a line.

    Those of a language are exactly uniform; `random` is a random automaton, and its words are as likely as it emits
    them.
    """
    import numpy as np

    from iclgd.report.terminal import say
    from iclgd.small.languages.automaton import decode
    from iclgd.small.languages.expressions import check_alphabet
    from iclgd.small.languages.expressions import language as parsed
    from iclgd.small.languages.prepare import LETTERS
    from iclgd.small.languages.regbench import random_chain

    random = np.random.default_rng(seed)
    if language == "random":
        chain = random_chain(check_alphabet(alphabet or LETTERS), random)
        words = chain.language("random").complement() if complement else chain
        letters = chain.alphabet
    else:
        found = parsed(language, alphabet)
        words, letters = found.complement() if complement else found, found.alphabet
    say("\n".join(decode(words.sample(count, length, random), letters)))


@command.command()
@click.option(
    "--language", default="a*bc*", show_default=True, help="Built-in name or expression; random for automata."
)
@click.option("--labels", default="fixed", show_default=True, help="fixed, sign (random) or language (drawn).")
@click.option("--negatives", default="complement", show_default=True, help="random, edits or complement.")
@click.option("--encoder", default="autoencoder", show_default=True, help="autoencoder, pca or end-to-end (an MLP).")
@click.option("--alphabet", default="", help="More symbols than the expression has.")
@click.option("--min-length", default=1, show_default=True, help="Shortest word.")
@click.option("--max-length", default=12, show_default=True, help="Longest word.")
@click.option("--dims", default=10, show_default=True, help="Dimensions of a code.")
@click.option("--languages", default=1000, show_default=True, help="Random languages, a fifth of them held out.")
@click.option("--demos", default=20, show_default=True, help="Demonstrations in an episode.")
@click.option("--layers", default=1, show_default=True, help="LSA layers.")
@click.option("--start", default="random", show_default=True, help="random, or gd: near a small step of plain GD.")
@click.option("--seed", default=0, show_default=True, help="The first seed.")
@click.option("--seeds", default=5, show_default=True, help="Seeds, trained together.")
@click.option("--steps", default=2000, show_default=True, help="Training steps of the layers.")
@click.option("--encoder-steps", default=1000, show_default=True, help="Training steps of the autoencoder.")
@click.option("--batch", default=128, show_default=True, help="Episodes in a step, for each seed.")
@click.option(
    "--queries", type=int, help="Queries of a training episode.  [default: 32; 1 with fixed labels or end-to-end]"
)
@click.option("--rate", type=float, help="Adam's learning rate.  [default: 0.03; 0.003 end-to-end]")
@click.option("--episodes", default=2000, show_default=True, help="Episodes to judge on.")
@options(OUT)
def run(out: Path | None, overwrite: bool, **given: Any) -> None:
    """Train on one language, compare, and leave a page, figures and a record."""
    from iclgd.files import check_output, output_folder
    from iclgd.labs.languages.run import Experiment, usual
    from iclgd.labs.languages.run import run as run_experiment
    from iclgd.report.languages import text, write
    from iclgd.report.terminal import say, working
    from iclgd.spec import key

    said = {name: value for name, value in given.items() if value is not None}
    experiment = Experiment(**usual(given["labels"], given["encoder"]) | said)
    out = out or Path("runs") / f"languages-{key(asdict(experiment))[:6]}"
    check_output(out, overwrite)
    with working(f"training {experiment.seeds} seeds together"):
        result = run_experiment(experiment)
    say(text(result))
    with output_folder(out, overwrite) as folder:
        write(result, folder, repeat(experiment))
    say(f"\nreport   {out / 'index.html'}\nrepeat   {repeat(experiment)}")


@command.command("all")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="The first seed.")
@click.option("--seeds", default=5, show_default=True, type=click.IntRange(2), help="Seeds, trained together.")
@click.option("--jobs", default=2, show_default=True, type=click.IntRange(1), help="Cells to run at a time.")
@click.option(
    "--shrink",
    default=1,
    show_default=True,
    type=click.IntRange(1),
    help="Divide steps and languages, for a trial run.",
)
@options(OUT)
def all_(out: Path | None, overwrite: bool, seed: int, seeds: int, jobs: int, shrink: int) -> None:
    """The whole set: every kind of label, negative and code on the document's languages, and random languages."""
    from iclgd.files import check_output, output_folder
    from iclgd.labs.languages.suite import experiments, run_all
    from iclgd.report.languages_set import text_of_all, write_all
    from iclgd.report.terminal import progress, say
    from iclgd.spec import key

    cells = experiments(seeds, seed, shrink)
    out = out or Path("runs") / f"languages-{key([asdict(cell) for cell in cells])[:6]}"
    check_output(out, overwrite)
    with progress("cells", len(cells)) as done:
        results = run_all(cells, jobs, done)
    say(text_of_all(results))
    words = f"iclgd languages all --seed {seed} --seeds {seeds}" + (f" --shrink {shrink}" if shrink > 1 else "")
    with output_folder(out, overwrite) as folder:
        write_all(results, folder, words)
    say(f"\nreport   {out / 'index.html'}\nrepeat   {words}")


def repeat(experiment: "Experiment") -> str:
    """The command that gives these numbers again: every option that is not at its default."""
    from iclgd.labs.languages.run import usual

    defaults = {option.name: option.default for option in run.params} | usual(experiment.labels, experiment.encoder)
    words = ["iclgd", "languages", "run"]
    for field in fields(experiment):
        value = getattr(experiment, field.name)
        if value != defaults[field.name]:
            words += [f"--{field.name.replace('_', '-')}", str(value)]
    return shlex.join(words)
