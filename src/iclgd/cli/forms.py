"""What every command that finds something can be told: to print it as JSON, or as little of it as there is."""

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import click

from iclgd.errors import visible
from iclgd.report.terminal import say
from iclgd.spec import finite

JSON = click.Option(["--json", "as_json"], is_flag=True, help="Print all of it as JSON.")
QUIET = click.Option(["--quiet", "-q"], is_flag=True, help="Print only the answer, and no progress.")


@dataclass(frozen=True)
class Form:
    """How the result of a command is printed."""

    as_json: bool = False
    quiet: bool = False

    def tell(self, data: Any, text: Callable[[], str], brief: str = "") -> None:
        """As JSON, as the one line (or the names) that matter to a script, or as a person reads it."""
        if self.as_json:
            say(json.dumps(finite(data), ensure_ascii=False, allow_nan=False))
        elif not self.quiet:
            say(text())
        elif brief:
            say(brief)


def remark(text: str) -> None:
    """A sentence beside what was asked for, on the error stream."""
    print(f"iclgd: {visible(text)}", file=sys.stderr)


def rows_as_data(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[dict[str, Any]]:
    """Rows of a table as mappings of its column names."""
    return [dict(zip(names, row, strict=True)) for row in rows]


def forms(command: Any) -> Any:
    """A command with --json and --quiet, which it is given as its ``form``."""
    own = command.callback

    def call(*args: Any, as_json: bool, quiet: bool, **given: Any) -> Any:
        return own(*args, form=Form(as_json, quiet), **given)

    command.callback = call
    command.params += [JSON, QUIET]
    return command
