"""`iclgd models`: the embedded models, and fetching them ahead of time."""

import sys

import click

from iclgd.models.embedded import (
    EMBEDDED,
    Embedded,
    accept_terms,
    cache_folder,
    gguf_path,
    is_cached,
    terms_accepted,
)
from iclgd.report.page import Table
from iclgd.report.terminal import say, window, working

EXAMPLES = """\b
Examples:
  iclgd models
  iclgd models fetch smollm2-135m
  iclgd models fetch gemma3-270m --accept-terms
"""


@click.group(invoke_without_command=True, epilog=EXAMPLES)
@click.pass_context
def command(context: click.Context) -> None:
    """List the embedded models, or fetch one."""
    if context.invoked_subcommand is not None:
        return
    rows = [[name, _where(model), model.licence, model.about] for name, model in EMBEDDED.items()]
    say(Table(["model", "download", "licence", "what it is"], rows).text(window()))
    say(f"\ncache   {cache_folder()}")


def _where(model: Embedded) -> str:
    if not gguf_path(model).is_file():
        return f"{model.size / 1e6:.0f} MB"
    return "in cache" if is_cached(model) else "damaged: fetch"


@command.command("fetch")
@click.argument("name")
@click.option("--accept-terms", "accept", is_flag=True, help="You have read the model's terms and accept them.")
def fetch_command(name: str, accept: bool) -> None:
    """Download an embedded model, check it, and unpack it once; what is in the cache is read again, and repaired."""
    model = EMBEDDED[name]
    if not terms_accepted(model) and not accept and sys.stdin.isatty():
        accept = click.confirm(f"{model.name} is under the {model.licence} ({model.terms}). Do you accept them?")
    if accept:
        accept_terms(model)
    with working("starting") as note:
        from iclgd.models.load import embedded_folder, recheck
        from iclgd.spec import ModelSpec

        note("reading every file again")
        recheck(ModelSpec(name=name))  # what changed under its stamp is fetched or unpacked anew
        folder = embedded_folder(name, note)
    say(f"{name}   {folder}")
