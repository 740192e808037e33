"""`iclgd claims`: sentences of the papers, listed, shown and run."""

import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from iclgd.claims.claim import CLAIMS, TIERS, Claim
from iclgd.claims.kept import changed, keep, kept
from iclgd.claims.shown import WIDTH, Line, drawn_by, in_full, listing, of_kept, plain, scorecard, summed
from iclgd.cli.completion import claim_names, completed, model_names, paper_names
from iclgd.cli.examples import epilog
from iclgd.cli.forms import Form, forms
from iclgd.cli.values import Named, Whole
from iclgd.errors import Refusal, Stopped
from iclgd.registry import suggest
from iclgd.report.terminal import window

if TYPE_CHECKING:
    from iclgd.claims.ledger import Asked, Row
    from iclgd.engine.engines import Engine

EXAMPLES = """\
  iclgd claims                                            all of them, as last measured
  iclgd claims run --tier seconds                         run those that take seconds
  iclgd claims run deutch2023.noise-quarter               run one
  iclgd claims run --paper ren2024 --jobs 2               run a paper's
  iclgd claims run --model mine/ --tier minutes           what of this holds for a model of yours
  iclgd claims show ren2024.thm31                         one in full
  iclgd claims page --out claims.html                     all of them as a page
"""
WHICH = (
    click.option(
        "--paper", default="", shell_complete=completed(paper_names), help="Of one paper, for instance ren2024."
    ),
    click.option(
        "--tier", default="", metavar="TIER", help="Those that take seconds, minutes or hours; several with commas."
    ),
    click.option("--stands", default="", help="Those that hold, fail, depend or are open, as the ledger says."),
    click.option("--match", default="", help="Those whose name, sentence or note has this in it."),
    click.option("--json", "as_json", is_flag=True, help="Print all of it as JSON."),
    click.option("--quiet", "-q", is_flag=True, help="Print only the sum, and no progress."),
)


def which(command: Any) -> Any:
    """The options that choose claims."""
    for option in reversed(WHICH):
        command = option(command)
    return command


def named(name: str) -> Claim:
    """A claim by its name; who names a paper is told the option that takes it."""
    if name not in CLAIMS and name in paper_names():
        raise Refusal(f'"{name}" is a paper, not a claim: `iclgd claims --paper {name}` lists what it says.')
    return CLAIMS[name]


def chosen_names(names: tuple[str, ...], paper: str, tier: str, stands: str, match: str) -> list[str]:
    """Claims by name, or those that have everything that is asked for."""
    for one in filter(None, tier.split(",")):
        if one not in TIERS:
            raise Refusal(f'`tier` takes {", ".join(TIERS)}; "{one}" is none of them.')
    papers = paper_names()
    if paper and paper not in papers:
        raise Refusal(f'no paper "{paper}". {suggest(paper, papers)}`iclgd claims` lists all.')
    for name in names:
        named(name)  # a wrong name is refused before anything is run
    found = []
    for name in dict.fromkeys(names) or CLAIMS:
        try:
            claim = CLAIMS[name]
        except Refusal:  # a stranger's that cannot be loaded: the list says so
            continue
        wanted = (
            not paper or claim.paper == paper,
            not tier or claim.tier in tier.split(","),
            claim.stands.startswith(stands),
            match.lower() in f"{name} {claim.says} {claim.note}".lower(),
        )
        if all(wanted):
            found.append(name)
    if not found:
        raise Refusal("no claim has all of that; `iclgd claims` lists them.")
    return found


@click.group(invoke_without_command=True, epilog=epilog(EXAMPLES))
@which
@click.pass_context
def command(context: click.Context, paper: str, tier: str, stands: str, match: str, as_json: bool, quiet: bool) -> None:
    """Sentences of the papers, made executable: list them with what was last measured, show one, or run them.

    A line has what the ledger says of a sentence (holds, fails, depends, open) and whether a run confirmed it (✓), did
    not (✗) or was not done (·); of an open one (○) there is nothing to confirm. A sentence that fails, and is said to
    fail, is as it should be.
    """
    if context.invoked_subcommand is not None:
        return
    lines = [of_kept(CLAIMS[name]) for name in chosen_names((), paper, tier, stands, match)]
    width, lost = min(window() or WIDTH, WIDTH), [f"! {name}  {why}" for name, why in unloadable()]
    data = [plain(line) for line in lines]
    Form(as_json, quiet).tell(data, lambda: "\n".join([listing(lines, width), *lost]), summed(lines))


def unloadable() -> list[tuple[str, str]]:
    """Claims of other packages that cannot be loaded, and why."""
    found = []
    for name in CLAIMS:
        try:
            CLAIMS[name]
        except Refusal as refusal:
            found.append((name, str(refusal)))
    return found


@forms
@command.command("show")
@click.argument("name", metavar="ID", shell_complete=completed(claim_names))
def show_command(name: str, form: Form) -> None:
    """One claim in full: sentence, source, evidence, cells, the command that repeats it, BibTeX."""
    claim = named(name)
    width = min(window() or WIDTH, WIDTH)
    form.tell(plain(of_kept(claim)), lambda: in_full(claim, width, drawn_by(claim)), claim.stands)


@command.command("page")
@which
@click.option(
    "--out", type=click.Path(path_type=Path), default=Path("claims.html"), help="The file.", show_default=True
)
def page_command(paper: str, tier: str, stands: str, match: str, as_json: bool, quiet: bool, out: Path) -> None:
    """Write the ledger as one HTML file, to filter and to open to the evidence."""
    from iclgd.claims.html import page
    from iclgd.files import named_file, write_over

    place = out if as_json else named_file(out)
    made = page([CLAIMS[name] for name in chosen_names((), paper, tier, stands, match)])
    if not as_json:
        write_over(place, made.html())
    Form(as_json, quiet).tell(made.plain(), lambda: f"{made.answer}\n\npage     {out}", str(out))


@command.command("run")
@click.argument("names", nargs=-1, metavar="[ID]...", shell_complete=completed(claim_names))
@which
@click.option(
    "--model",
    default="",
    shell_complete=completed(model_names, files=True),
    help="Ask this model what is asked of a model, and print its scorecard.",
)
@click.option(
    "--data", type=click.Path(path_type=Path), default=None, help="Folder with <task>/<split> files (or ICLGD_DATA)."
)
@click.option("--jobs", type=Whole(), metavar="N", help="Workers; more than one are processes.  [default: 1]")
@click.option(
    "--engine", type=Named(), metavar="NAME", help="Where cells run: serial, processes, or ray (all of a cluster)."
)
@click.option(
    "--address", type=Named(), metavar="TEXT", help="Of a running Ray cluster.  [default: Ray on this machine]"
)
@click.option(
    "--store", type=Named(), metavar="DIR", help="Where cells are kept.  [default: ICLGD_STORE, or runs/cells]"
)
@click.option(
    "--keep", "keeping", is_flag=True, help="Keep the verdicts in this package, for the list and the documents."
)
@click.option("--verify", is_flag=True, help="Run every cell anew and compare numbers, too, with the verdicts kept.")
def run_command(
    names: tuple[str, ...],
    paper: str,
    tier: str,
    stands: str,
    match: str,
    as_json: bool,
    quiet: bool,
    model: str,
    data: Path | None,
    jobs: int | None,
    engine: str | None,
    address: str | None,
    store: str | None,
    keeping: bool,
    verify: bool,
) -> None:
    """Run claims, by name or by what they have in common; without any, those that take seconds.

    Cells are kept in the store and never run twice. The exit status is 1 where a claim is not as the ledger says, errs,
    or has another verdict than the one kept.
    """
    from iclgd.claims.ledger import Asked
    from iclgd.engine.engines import Engine
    from iclgd.store.cells import default_store

    where = Engine(engine, jobs, address)
    if not any((names, paper, tier, stands, match, model)):
        tier = "seconds"
    wanted = chosen_names(names, paper, tier, stands, match)
    if model:
        wanted = [name for name in wanted if "model" in CLAIMS[name].needs]
    asked = Asked(model, data.resolve() if data else None)
    _check(asked, Path(store) if store else default_store())
    with tempfile.TemporaryDirectory() as fresh:
        place = Path(fresh) if verify else Path(store) if store else default_store()
        try:
            rows = _ran(wanted, place, asked, where, quiet)
        except KeyboardInterrupt:
            if not verify:
                raise
            raise Stopped("stopped; nothing is kept of what is run anew: the same command begins again.") from None
    about = Path(model).name if Path(model).exists() and model else model  # a folder by its name
    lines = [_line(row, about, verify) for row in rows]
    if keeping:
        keep(rows, about)
    found = [plain(line) for line in lines]
    Form(as_json, quiet).tell(found, lambda: _told(lines, about if model else ""), summed(lines))
    if any(line.red for line in lines if not model or line.state == "error"):
        sys.exit(1)


def _check(asked: "Asked", store: Path) -> None:
    """Refuse what no claim could be run with."""
    from iclgd.files import check_writable
    from iclgd.models.identity import check_model_name

    if asked.model:
        check_model_name(asked.model)
    if asked.data is not None and not asked.data.is_dir():
        raise Refusal(f"the data folder {asked.data} is no folder: name one that holds folders of tasks with `data`.")
    check_writable(store, store.absolute())


def _told(lines: list[Line], model: str) -> str:
    """The claims with what was measured; of one model, its scorecard."""
    return scorecard(lines, model) if model else listing(lines, min(window() or WIDTH, WIDTH))


def _ran(names: list[str], store: Path, asked: "Asked", engine: "Engine", quiet: bool) -> "list[Row]":
    from iclgd.claims.ledger import run_claims
    from iclgd.report.terminal import cell_progress
    from iclgd.running import Where

    with cell_progress(quiet) as progress:
        return run_claims(names, Where(store), asked, engine=engine, progress=progress)


def _line(row: "Row", model: str, verify: bool) -> Line:
    """A row as it is shown; one whose verdict is not the one kept is red."""
    line = Line(row.claim, row.state, row.judgement, row.reason, row.seconds)
    if why := changed(row, kept(row.claim, model), verify):
        return replace(line, state="not as we say", reason=why)
    return line
