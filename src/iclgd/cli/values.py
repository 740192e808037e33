"""Values of options that are no field of a spec, refused in the words that fields are."""

from math import isfinite
from typing import Any

import click

from iclgd.errors import Refusal


def _flag(param: click.Parameter | None) -> str:
    return max(param.opts, key=len) if param else "it"


class Whole(click.ParamType[int]):
    """A whole number, at least so large."""

    name = "count"

    def __init__(self, least: int = 1):
        self.least = least

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            found = int(value)
        except ValueError:
            raise Refusal(f'{_flag(param)} takes a whole number, not "{value}".') from None
        if found < self.least:
            raise Refusal(f"{_flag(param)} must be at least {self.least}, not {found}.")
        return found


class Amount(click.ParamType[float]):
    """A finite number that is not negative."""

    name = "amount"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            found = float(value)
        except ValueError:
            found = float("nan")
        if not isfinite(found):
            raise Refusal(f'{_flag(param)} takes a finite number, not "{value}".')
        if found < 0:
            raise Refusal(f"{_flag(param)} must be at least 0, not {value}.")
        return found


class Named(click.ParamType[str]):
    """The name of something, which is not empty."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not str(value).strip():
            raise Refusal(f"{_flag(param)} needs a name: it is empty.")
        return str(value)
