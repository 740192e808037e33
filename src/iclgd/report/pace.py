"""How long is left, from when cells were done: steady also where many are done at once, as those trained together."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import NamedTuple

MOMENT = 1.0  # cells are done at once that are so within a second,
SHARE = 0.05  # or within a twentieth of the time so far


class Pace:
    """Seconds a cell, judged between bursts: while cells come in, what was said before them is counted down.

    The clock begins at 0. Of cells that were expected to take so many seconds: seconds for each of these. A burst ends
    by itself after a while, so cells that come one by one, however fast, are judged too.
    """

    def __init__(self) -> None:
        self._count = 0.0
        self._first = self._last = 0.0  # of the burst that is not over yet
        self._before = 0.0  # cells that were done before it
        self._judged: tuple[float, float, float] | None = None  # the end of the last burst, cells by then, those in it

    def done(self, now: float, weight: float = 1.0) -> None:
        self._judge(now)
        if self._count == self._before:
            self._first = now
        self._last = now
        self._count += weight

    def left(self, now: float, total: float) -> float | None:
        """Seconds until all of so many are done; None before the first burst is over."""
        self._judge(now)
        if self._judged is None:
            return None
        end, count, burst = self._judged
        pace = end / count
        least = pace * max(0.0, total - self._count - burst)  # a burst that is late is about to be over
        return max(pace * (total - count) - (now - end), least)

    def _judge(self, now: float) -> None:
        over = now - self._first > max(MOMENT, SHARE * self._first)
        if over and self._count > self._before:
            self._judged = (self._last, self._count, self._count - self._before)
            self._before = self._count


class Guess(NamedTuple):
    """What is known of a cell before it is run: which cells it is ``like``, and its seconds, if anybody knows them."""

    like: str
    seconds: float | None

    @property
    def kind(self) -> str:
        return self.like if self.seconds is None else f"{self.like}, expected"

    @property
    def weight(self) -> float:
        return 1.0 if self.seconds is None else max(self.seconds, LEAST)


LEAST = 0.01  # seconds that a cell is expected to take
NOTHING = Guess("", None)


class _Kind:
    """Cells that are like each other. Their clock goes on while such cells are at work."""

    def __init__(self) -> None:
        self.pace, self.clock, self.took = Pace(), 0.0, 0.0  # ``took``: what the clock said when one was last done
        self.total = self.over = 0.0  # cells, by their weights
        self.expected: float | None = None  # seconds of all

    def done(self, weight: float) -> None:
        self.over += weight
        self.took = self.clock
        self.pace.done(self.clock, weight)

    def left(self, passed: float, scale: float) -> float | None:
        """Seconds: by their own pace, or before it is known as long as was expected, times a scale."""
        seconds = self.pace.left(self.clock + passed, self.total) if self.over < self.total else 0.0
        if seconds is None and self.expected is not None:
            return max(0.0, scale * self.expected - self.clock - passed)
        return seconds


class Paces:
    """How long is left of unlike cells: kind by kind. Cells that run at the same time share the time that passes."""

    def __init__(self, now: float):
        self._last, self._latest = now, ""
        self._kinds: defaultdict[str, _Kind] = defaultdict(_Kind)
        self._guesses: dict[str, Guess] = {}

    def expect(self, cells: int, seconds: float | None, guesses: Mapping[str, Guess]) -> None:
        """So many cells more; of some, by their keys, something is known, and the others take so many seconds."""
        self._guesses.update(guesses)
        for guess in guesses.values():
            self._expect(guess.kind, guess.weight, None if guess.seconds is None else guess.weight)
        if cells > len(guesses):
            self._expect("", cells - len(guesses), seconds)

    def _expect(self, name: str, weight: float, seconds: float | None) -> None:
        kind = self._kinds[name]
        kind.total += weight
        if seconds is not None:
            kind.expected = (kind.expected or 0.0) + seconds

    def begun(self, now: float, key: str, running: Collection[str]) -> None:
        """A cell begins beside those that were running until now."""
        self._passed(now, running)
        self._latest = self._guesses.get(key, NOTHING).kind

    def done(self, now: float, key: str, running: Collection[str]) -> None:
        """A cell ends; it is still among those that were running."""
        self._passed(now, running)
        guess = self._guesses.get(key, NOTHING)
        self._latest = guess.kind
        self._kinds[guess.kind].done(guess.weight)

    def left(self, now: float, running: Collection[str]) -> tuple[float | None, bool]:
        """Seconds, and whether that is of all cells; None where nothing is known of any that is left."""
        shares, scale = self._shares(running), self._scale()
        each = [
            kind.left(shares.get(name, 0.0) * (now - self._last), scale)
            for name, kind in list(self._kinds.items())  # asked by the thread that shows it
            if kind.over < kind.total
        ]
        known = [seconds for seconds in each if seconds is not None]
        return (sum(known) if known else None), len(known) == len(each)

    def _scale(self) -> float:
        """How what was expected compares with what it took; of little that is done, little is said of much that is not.

        So what was not begun counts among it, as long as it was expected.
        """
        kinds = [kind for kind in list(self._kinds.values()) if kind.expected is not None]
        ahead = sum(kind.total for kind in kinds if not kind.over)
        done, took = sum(kind.over for kind in kinds), sum(kind.took for kind in kinds if kind.over)
        return (took + ahead) / (done + ahead) if done + ahead else 1.0

    def _passed(self, now: float, running: Collection[str]) -> None:
        for name, share in self._shares(running).items():
            self._kinds[name].clock += share * (now - self._last)
        self._last = now

    def _shares(self, running: Collection[str]) -> dict[str, float]:
        names = [self._guesses.get(key, NOTHING).kind for key in list(running)] or [self._latest]
        return {name: names.count(name) / len(names) for name in set(names)}
