"""The terminal: what is said on it, and progress on the error stream."""

import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

from iclgd.errors import visible
from iclgd.report.numbers import counted
from iclgd.report.pace import Guess, Paces

EVERY = 5.0  # seconds between lines of progress where there is no terminal; more after minutes, a minute after hours
BAR = 24  # characters


def say(text: str = "") -> None:
    """A line of output, with control characters that a data set or a file name might bring made visible."""
    print(visible(text))


def window() -> int | None:
    """Columns of the terminal, or what COLUMNS says; none in a pipe, where a row stays a line."""
    if not sys.stdout.isatty() and not os.environ.get("COLUMNS"):
        return None
    return shutil.get_terminal_size((100, 24)).columns


@contextmanager
def shown(line: Callable[[], str]) -> Iterator[None]:
    """What a function says, again and again while something runs: one line that changes on a terminal, a line every
    few seconds elsewhere. On the error stream."""
    ended, begun = threading.Event(), time.monotonic()

    def lines() -> None:
        while not ended.wait(min(60.0, max(EVERY, (time.monotonic() - begun) / 20))):
            print(visible(line()), file=stream, flush=True)

    def redrawn() -> None:
        while not ended.wait(0.1):
            status.update(escape(visible(line())))

    stream = sys.stderr  # whatever it is for others while a noisy library is kept quiet
    if not stream.isatty():
        thread = threading.Thread(target=lines, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
        return
    from rich.console import Console
    from rich.markup import escape

    with Console(file=stream, highlight=False).status(escape(visible(line()))) as status:
        thread = threading.Thread(target=redrawn, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


@contextmanager
def working(what: str, quiet: bool = False) -> Iterator[Callable[[str], None]]:
    """Says what is being done while something of unknown length runs; gives a function that changes what it says."""
    said = [what]
    if quiet:
        yield lambda _now: None
        return
    with shown(lambda: said[0]):
        yield lambda now: said.__setitem__(0, now)


class CellProgress:
    """How far a study is: cells that are done, at work, failed and left, how long it will take, what is done now."""

    def __init__(self, bar: bool = False, tell: Callable[[str], None] = lambda _line: None):
        self._tell, self._bar = tell, bar
        self._total = self._done = 0
        self._running: dict[str, str] = {}
        self._failed: dict[str, None] = {}
        self._follow: Callable[[list[str], list[str]], None] = lambda _running, _failed: None
        self._what, self._count, self._known = "starting", 0, ""
        self._paces = Paces(time.monotonic())

    def start(
        self, total: int, expected: float | None = None, guesses: Mapping[str, Guess] = MappingProxyType({})
    ) -> None:
        """So many cells are to be run, and take so many seconds if somebody knows; more of them after others.

        What is known of single cells, by their keys, tells how long is left of unlike ones.
        """
        over = self._done + len(self._failed)
        self._total = over + total
        if not over:
            self._paces = Paces(time.monotonic())
        self._paces.expect(total, expected, guesses)
        if (expected or 0.0) + sum(guess.seconds or 0.0 for guess in guesses.values()) > EVERY:
            self._tell(self.line())

    def follow(self, told: Callable[[list[str], list[str]], None]) -> None:
        """Tell the keys of cells at work and of those that failed, now and whenever that changes."""
        self._follow = told
        self._changed()

    def _changed(self) -> None:
        self._follow(list(self._running), list(self._failed))

    @property
    def failures(self) -> tuple[str, ...]:
        """Keys of the cells that failed."""
        return tuple(self._failed)

    def begun(self, key: str, what: str) -> None:
        self._paces.begun(time.monotonic(), key, self._running)
        self._running[key] = what
        self.doing(what, 0)
        self._changed()

    def done(self, key: str) -> None:
        self._ended(key)
        self._done += 1
        self._changed()

    def failed(self, key: str) -> None:
        self._ended(key)
        self._failed[key] = None
        self._changed()

    def _ended(self, key: str) -> None:
        self._paces.done(time.monotonic(), key, self._running)
        self._running.pop(key, None)

    def lost(self, key: str) -> None:
        """The cell's process ended; the cell may be tried again."""
        self._running.pop(key, None)
        self._changed()

    def doing(self, what: str, count: int) -> None:
        """What is being done, and how many queries or steps of it were just finished."""
        self._count = self._count + count if what == self._what else count
        self._what = what

    def so_far(self, known: str) -> None:
        """What is known of the cells that are done, in a few words."""
        self._known = known

    @property
    def total(self) -> int:
        """How many cells are to be run, those that are done included; 0 before that is known."""
        return self._total

    def ends(self, what: str) -> None:
        """All cells are run; what is done after that."""
        self._what, self._count, self._running = what, 0, {}
        self._changed()

    def line(self) -> str:
        many = f" ({self._count})" if self._count else ""
        now = f"{self._what}{many}"
        if not self._total:
            return now
        parts = [f"{self._done} of {counted(self._total, 'cell')}"]
        if self._running:
            parts.append(f"{len(self._running)} running")
        if self._failed:
            parts.append(f"{len(self._failed)} failed")
        if self._known:
            parts.append(self._known)
        if left := self._left():
            parts.append(left)
        filled = BAR * (self._done + len(self._failed)) // self._total
        bar = f"{'█' * filled}{'░' * (BAR - filled)} " if self._bar else ""
        return bar + " · ".join([*parts, now])

    def _left(self) -> str:
        """`about 3 min left`; `more than 3 min left` where nothing is known of some of the cells."""
        if self._done + len(self._failed) >= self._total:
            return ""
        seconds, whole = self._paces.left(time.monotonic(), self._running)
        if seconds is None or seconds < 1:
            return ""
        return f"{'about' if whole else 'more than'} {duration(seconds)} left"


def duration(seconds: float) -> str:
    """`40 s`, `3 min`, `2 h 10 min`."""
    minutes = round(seconds / 60)
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


@contextmanager
def cell_progress(quiet: bool = False) -> Iterator[CellProgress]:
    """The progress of a study, shown unless somebody wants it quiet."""
    if quiet:
        yield CellProgress()
        return
    stream = sys.stderr
    if stream.isatty():
        progress = CellProgress(bar=True)
    else:
        progress = CellProgress(tell=lambda line: print(visible(line), file=stream, flush=True))
    with shown(progress.line):
        yield progress
