"""The terminal: numbers as people read them, tables, and progress that shows itself only to a person."""

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from iclgd.errors import visible


def number(value: float, digits: int = 3) -> str:
    """`.149`, `1.204`, `-.02`; `n/a` for what is undefined."""
    if not math.isfinite(value):
        return "n/a"
    text = f"{value:.{digits}f}"
    if float(text) == 0:
        text = text.lstrip("-")
    return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text


def with_interval(value: float, low: float, high: float, digits: int = 3) -> str:
    """`.149 [.141 .157]`."""
    if not math.isfinite(low):
        return number(value, digits)
    return f"{number(value, digits)} [{number(low, digits)} {number(high, digits)}]"


def table(header: Sequence[str], rows: Sequence[Sequence[str]], indent: str = "") -> str:
    """Columns two spaces apart, as wide as they need to be: a number is never cut to fit a window."""
    lines = [list(header), *map(list, rows)] if any(header) else [list(row) for row in rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    return "\n".join(
        indent + "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def say(text: str = "") -> None:
    """A line of output, with control characters that a data set or a file name might bring made visible."""
    print(visible(text))


@contextmanager
def progress(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar on the error stream while something long runs; nothing where that is not a terminal."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=_console(), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.update(task, advance=done)


@contextmanager
def working(what: str) -> Iterator[Callable[[str], None]]:
    """A spinner while something of unknown length runs; nothing where that is not a terminal.

    Gives a function that changes what the spinner says.
    """
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    with _console().status(what) as status:
        yield lambda now: status.update(now)


def _console() -> Console:
    """On the error stream as it is now: a spinner goes on while a noisy library's own output is turned away."""
    return Console(file=sys.stderr, highlight=False)


@contextmanager
def cell_progress(cells: int) -> Iterator[tuple[Callable[[str], None], Callable[[str, int], None]]]:
    """Two lines while a study runs: the cell, and what is being done in it; nothing where there is no terminal."""
    if not sys.stderr.isatty():
        yield (lambda _what: None), (lambda _what, _done: None)
        return
    with Progress(TextColumn("{task.description}"), TimeElapsedColumn(), console=_console(), transient=True) as bar:
        outer, inner = bar.add_task(f"{cells} cells"), bar.add_task("")
        answered: dict[str, int] = {}

        def announce(what: str) -> None:
            bar.update(outer, description=what)

        def report(what: str, done: int) -> None:
            answered[what] = answered.get(what, 0) + done
            bar.update(
                inner, description=f"  {what}: " + (f"{answered[what]} queries" if answered[what] else "learning")
            )
            if not done:
                answered[what] = 0

        yield announce, report
