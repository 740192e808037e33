"""`iclgd claims`: run sentences of the papers."""

import click

from iclgd.report.page import Table

EXAMPLES = """\b
Examples:
  iclgd claims                                        run them all
  iclgd claims deutch2023.noise-scores-a-quarter      run one
"""


@click.command(epilog=EXAMPLES)
@click.argument("name", required=False)
@click.option(
    "--seed", default=0, show_default=True, type=click.IntRange(0, 2**32 - 1), help="For what is drawn at random."
)
def command(name: str | None, seed: int) -> None:
    """Sentences of the papers, run: expected, measured, verdict."""
    import iclgd.claims.deutch2023  # noqa: F401  (declares its claims)
    from iclgd.claims.claim import CLAIMS
    from iclgd.report.numbers import number
    from iclgd.report.terminal import say, working

    chosen = [CLAIMS[name]] if name is not None else [claim for _, claim in CLAIMS.items()]
    rows = []
    for claim in chosen:
        with working(f"running {claim.name}"):
            measured = claim.run(seed)
        verdict = "holds" if claim.expect.holds(measured) else "fails"
        rows.append([claim.name, claim.source, str(claim.expect), number(measured, 4), verdict, claim.says])
    say(Table(["claim", "source", "expected", "measured", "verdict", "what the paper says"], rows).text())
