"""How long is left, from when cells were done: steady also where many are done at once, as those trained together."""

MOMENT = 1.0  # cells are done at once that are so within a second,
SHARE = 0.05  # or within a twentieth of the time so far


class Pace:
    """Seconds a cell, judged between bursts: while cells come in, what was said before them is counted down.

    A burst ends by itself after a while, so cells that come one by one, however fast, are judged too.
    """

    def __init__(self, begun: float):
        self._begun, self._count = begun, 0
        self._first = self._last = begun  # of the burst that is not over yet
        self._before = 0  # cells that were done before it
        self._judged: tuple[float, int, int] | None = None  # the end of the last burst, cells done by then, those in it

    def done(self, now: float) -> None:
        self._judge(now)
        if self._count == self._before:
            self._first = now
        self._last = now
        self._count += 1

    def left(self, now: float, total: int) -> float | None:
        """Seconds until all of so many are done; None before the first burst is over."""
        self._judge(now)
        if self._judged is None:
            return None
        end, count, burst = self._judged
        pace = (end - self._begun) / count
        least = pace * max(0, total - self._count - burst)  # a burst that is late is about to be over
        return max(pace * (total - count) - (now - end), least)

    def _judge(self, now: float) -> None:
        over = now - self._first > max(MOMENT, SHARE * (self._first - self._begun))
        if over and self._count > self._before:
            self._judged = (self._last, self._count, self._count - self._before)
            self._before = self._count
