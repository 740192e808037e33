"""`iclgd claims`: sentences of the papers, listed and run."""

import sys

import click

from iclgd.claims.claim import CLAIMS
from iclgd.errors import Refusal
from iclgd.report.numbers import number
from iclgd.report.page import Table
from iclgd.report.terminal import say, window, working

EXAMPLES = """\b
Examples:
  iclgd claims                                            list them
  iclgd claims run                                        run them all
  iclgd claims run deutch2023.noise-scores-a-quarter      run one
"""


@click.group(invoke_without_command=True, epilog=EXAMPLES)
@click.pass_context
def command(context: click.Context) -> None:
    """Sentences of the papers, made executable: list them, or run them."""
    if context.invoked_subcommand is None:
        rows = [[name, *_told(name)] for name in CLAIMS]
        say(Table(["claim", "source", "expected", "cost", "what it says"], rows).text(window()))


def _told(name: str) -> list[str]:
    """Source, number to expect, cost, sentence; of a claim that cannot be loaded, why."""
    try:
        claim = CLAIMS[name]
    except Refusal as refusal:
        return ["", "", "", str(refusal)]
    return [claim.source, str(claim.expect), claim.cost, claim.says]


@command.command("run")
@click.argument("names", nargs=-1, metavar="[ID]...")
@click.option(
    "--seed", default=0, show_default=True, type=click.IntRange(0, 2**32 - 1), help="For what is drawn at random."
)
def run_command(names: tuple[str, ...], seed: int) -> None:
    """Run claims, or all of them: expected, measured, verdict. The exit status is 1 when one fails or errs."""
    for name in names:
        CLAIMS[name]  # a wrong name is refused before anything is run
    rows = [[name, *_ran(name, seed)] for name in dict.fromkeys(names) or CLAIMS]
    say(Table(["claim", "source", "expected", "measured", "verdict", "what it says"], rows).text(window()))
    if any(verdict != "holds" for *_, verdict, _ in rows):
        sys.exit(1)


def _ran(name: str, seed: int) -> list[str]:
    """Source, number to expect, what was measured, whether that is what the sentence says, the sentence."""
    try:
        claim = CLAIMS[name]
    except Refusal as refusal:
        return ["", "", "", "errs", str(refusal)]
    with working(f"running {name}"):
        try:
            measured = claim.run(seed)
        except Exception as error:  # one claim that errs does not keep the others from being run
            return [claim.source, str(claim.expect), "", "errs", f"{type(error).__name__}: {error}"]
    verdict = "holds" if claim.expect.holds(measured) else "fails"
    return [claim.source, str(claim.expect), number(measured, 4), verdict, claim.says]
