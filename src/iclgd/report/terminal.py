"""The terminal: what is said on it, and progress on the error stream."""

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from iclgd.errors import visible
from iclgd.report.numbers import counted

EVERY = 15.0  # seconds between lines of progress where there is no terminal


def say(text: str = "") -> None:
    """A line of output, with control characters that a data set or a file name might bring made visible."""
    print(visible(text))


def window() -> int | None:
    """Columns of the terminal, or what COLUMNS says; none in a pipe, where a row stays a line."""
    if not sys.stdout.isatty() and not os.environ.get("COLUMNS"):
        return None
    return shutil.get_terminal_size((100, 24)).columns


@contextmanager
def working(what: str) -> Iterator[Callable[[str], None]]:
    """A spinner while something of unknown length runs; nothing where that is not a terminal.

    Gives a function that changes what the spinner says.
    """
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.markup import escape

    with Console(file=sys.stderr, highlight=False).status(what) as status:
        yield lambda now: status.update(escape(now))


class CellProgress:
    """How far a study is: the cells that are done, and what is being done in the one at work."""

    def __init__(self, show: Callable[[str], None], every: float):
        self._show, self._every, self._last = show, every, time.monotonic()
        self._cells, self._total, self._count = 0, 0, 0
        self._what = "starting"

    def start(self, total: int) -> None:
        self._total = total

    def done(self, _cell: object) -> None:
        self._cells += 1
        self._told()

    def doing(self, what: str, count: int) -> None:
        """What is being done, and how many queries or steps of it were just finished."""
        self._count = self._count + count if what == self._what else count
        self._what = what
        self._told()

    def _told(self) -> None:
        if time.monotonic() - self._last >= self._every:
            self._last = time.monotonic()
            many = f" ({self._count})" if self._count else ""
            self._show(visible(f"{self._cells} of {counted(self._total, 'cell')} · {self._what}{many}"))


@contextmanager
def cell_progress() -> Iterator[CellProgress]:
    """One line that changes on a terminal; a line now and then elsewhere. On the error stream."""
    if not sys.stderr.isatty():
        yield CellProgress(lambda line: print(line, file=sys.stderr, flush=True), EVERY)
        return
    from rich.console import Console
    from rich.markup import escape

    with Console(file=sys.stderr, highlight=False).status("starting") as status:
        yield CellProgress(lambda line: status.update(escape(line)), 0.1)
