"""`iclgd known`: what can be named, with its options."""

import click

from iclgd.choices import option_fields
from iclgd.labs.dual.modifications import MODIFICATIONS
from iclgd.learners import LEARNERS
from iclgd.metrics import METRICS
from iclgd.nulls import NULLS
from iclgd.registry import Registry
from iclgd.report.page import Table
from iclgd.report.terminal import say
from iclgd.small.languages.encoders import ENCODERS

KINDS: tuple[Registry, ...] = (LEARNERS, METRICS, NULLS, MODIFICATIONS, ENCODERS)


@click.command(epilog="An option is written behind the name: gd:rate=0.01:trains=all.")
def command() -> None:
    """List the learners, metrics, nulls, … that can be named, with their options."""
    for registry in KINDS:
        rows = []
        for name in registry:
            options = [f"{field.name}={field.default}" for field in option_fields(registry[name])]
            rows.append([name, registry.summary(name), " ".join(options)])
        say(Table([registry.kind, "what it is", "options"], rows).text() + "\n")
