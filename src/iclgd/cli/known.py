"""`iclgd known`: what can be named, with its options."""

from typing import Any

import click

from iclgd.choices import default_of, option_fields
from iclgd.cli.examples import epilog
from iclgd.cli.forms import Form, forms, rows_as_data
from iclgd.errors import Refusal
from iclgd.lab import LABS
from iclgd.registry import REGISTRIES, Registry
from iclgd.report.page import Table
from iclgd.report.terminal import window

EXAMPLES = """\
  iclgd known
  iclgd compare --learners gd:rate=0.01:trains=all     an option is written behind the name
"""


@forms
@click.command(epilog=epilog(EXAMPLES))
def command(form: Form) -> None:
    """List the learners, metrics, nulls, … that can be named, with their options."""
    for lab in LABS:
        _options(LABS, lab)  # a lab's spec imports the registries that its fields choose from
    found = {
        _kind(registry): [_row(registry, name) for name in registry]
        for registry in list(REGISTRIES.values())  # what is loaded on the way may bring a registry of its own
        if list(registry)
    }
    data = {kind: rows_as_data(("name", "about", "options"), rows) for kind, rows in found.items()}
    brief = "\n".join(f"{kind} {row[0]}" for kind, rows in found.items() for row in rows)
    form.tell(data, lambda: "\n\n".join(_table(kind, rows) for kind, rows in found.items()), brief)


def _row(registry: Registry[Any], name: str) -> list[str]:
    options = _options(registry, name)  # first: a thing that is loaded tells more of itself
    return [name, registry.summary(name), options]


def _table(kind: str, rows: list[list[str]]) -> str:
    """Without the columns in which nothing stands."""
    header = [kind, "what it is", "options"]
    shown = [i for i in range(len(header)) if any(row[i] for row in rows)]
    return Table([header[i] for i in shown], [[row[i] for i in shown] for row in rows]).text(window())


def _options(registry: Registry[Any], name: str) -> str:
    """`rate=0.001 trains=kv`; of a thing that cannot be loaded, why: it does not keep the others from being shown."""
    try:
        fields = option_fields(registry[name])
    except Refusal as refusal:
        return str(refusal)
    return " ".join(
        field.name if default_of(field) is ... else f"{field.name}={_spelled(default_of(field))}" for field in fields
    )


def _spelled(value: Any) -> str:
    """As it is typed."""
    return "none" if value is None else str(value)


def _kind(registry: Registry[Any]) -> str:
    """What the things are; where there are two such kinds, the command that takes these."""
    alone = sum(other.kind == registry.kind for other in REGISTRIES.values()) == 1
    where = registry.listing.removesuffix(" --help")
    return registry.kind if alone or where == registry.listing else f"{registry.kind} of {where}"
