"""`iclgd models`: the embedded models, and fetching them ahead of time."""

import sys

import click

from iclgd.cli.completion import completed, model_names
from iclgd.cli.examples import epilog
from iclgd.cli.forms import Form, forms, rows_as_data
from iclgd.models.embedded import (
    EMBEDDED,
    Embedded,
    accept_terms,
    cache_folder,
    gguf_path,
    is_cached,
    refuse_terms,
    terms_accepted,
)
from iclgd.report.page import Table
from iclgd.report.terminal import window, working

EXAMPLES = """\
  iclgd models
  iclgd models fetch smollm2-135m
  iclgd models fetch gemma3-270m --accept-terms
"""


@forms
@click.group(invoke_without_command=True, epilog=epilog(EXAMPLES))
@click.pass_context
def command(context: click.Context, form: Form) -> None:
    """List the embedded models, or fetch one."""
    if context.invoked_subcommand is not None:
        return
    rows = [[name, _where(model), model.licence, model.about] for name, model in EMBEDDED.items()]
    shown = Table(["model", "download", "licence", "what it is"], rows)
    data = {"cache": str(cache_folder()), "models": rows_as_data(("model", "download", "licence", "about"), rows)}
    form.tell(data, lambda: f"{shown.text(window())}\n\ncache   {cache_folder()}", "\n".join(EMBEDDED))


def _where(model: Embedded) -> str:
    if not gguf_path(model).is_file():
        return f"{model.size / 1e6:.0f} MB"
    return "in cache" if is_cached(model) else "damaged: fetch"


@forms
@command.command("fetch")
@click.argument("name", shell_complete=completed(model_names))
@click.option("--accept-terms", "accept", is_flag=True, help="You have read the model's terms and accept them.")
def fetch_command(name: str, accept: bool, form: Form) -> None:
    """Download an embedded model, check it, and unpack it once; what is in the cache is read again, and repaired."""
    model = EMBEDDED[name]
    if not terms_accepted(model) and not accept and sys.stdin.isatty():
        accept = click.confirm(f"{model.name} is under the {model.licence} ({model.terms}). Do you accept them?")
    if accept:
        accept_terms(model)
    refuse_terms(model)  # before anything heavy is imported
    with working("starting", form.quiet) as note:
        from iclgd.models.load import embedded_folder, recheck
        from iclgd.spec import ModelSpec

        note("reading every file again")
        recheck(ModelSpec(name=name))  # what changed under its stamp is fetched or unpacked anew
        folder = embedded_folder(name, note)
    form.tell({"model": name, "folder": str(folder)}, lambda: f"{name}   {folder}", str(folder))
