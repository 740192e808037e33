"""Several processes on one machine: each takes a group of cells at a time and writes what it found itself.

A worker that ends (killed, out of memory, a crash in a library) is replaced, and its group goes on in another.
"""

import math
import os
import signal
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from pathlib import Path

from iclgd.engine.board import Board, Part
from iclgd.engine.work import work
from iclgd.errors import Refusal
from iclgd.registry import PLUGINS, load_plugin
from iclgd.store.cells import Store
from iclgd.tools import Tools

TOLD_EVERY = 0.5  # seconds between words of a worker on what it does within a cell
STILLBORN = 3  # workers in a row that end before they could begin: something is wrong with all of them


@dataclass(frozen=True)
class Setting:
    """What a worker is started with."""

    store: Path
    data: Path | None
    plugins: tuple[str, ...]
    threads: int
    gpu: str | None  # the only one it sees; None: whatever there is
    share: float = 1.0  # of that GPU's memory


def run(board: Board, tools: Tools, workers: int, gpus: Sequence[str]) -> None:
    """Groups are handed out in order, each to the first worker that is free."""
    workers = min(workers, len(board.waiting))
    threads = max(1, (os.cpu_count() or 1) // max(1, workers))
    base = (board.store.folder.resolve(), tools.data, tuple(PLUGINS), threads)
    share = 1 / math.ceil(workers / len(gpus)) if gpus else 1.0
    places = deque(Setting(*base, gpus[i % len(gpus)] if gpus else None, share) for i in range(workers))
    crew: list[_Worker] = []
    stillborn = 0
    try:
        while board.waiting or any(worker.part for worker in crew):
            while places and len(crew) < len(board.waiting) + sum(worker.part is not None for worker in crew):
                crew.append(_Worker(places.popleft()))
            for pipe in wait([worker.pipe for worker in crew]):
                worker = next(worker for worker in crew if worker.pipe is pipe)
                try:
                    _hear(worker, board, tools)
                    stillborn = 0
                except (EOFError, ConnectionError):  # it is gone, with whatever it was about to say
                    crew.remove(worker)
                    places.append(worker.setting)
                    how, log = worker.ended()
                    stillborn += not worker.ready
                    if stillborn == STILLBORN:
                        raise Refusal(f"workers end before they begin ({how}): {_last(log)}") from None
                    if worker.part is not None:
                        board.died(worker.part, how, log)
            for worker in crew:
                if worker.ready and worker.part is None and (part := board.take()):
                    worker.give(part)
    finally:
        for worker in crew:
            worker.kill()


def _hear(worker: "_Worker", board: Board, tools: Tools) -> None:
    kind, told = worker.pipe.recv()
    worker.ready = True
    if kind == "doing":
        tools.progress(*told)
    elif kind == "event" and worker.part is not None:
        board.saw(worker.part, told)
    else:
        worker.part = None


class _Worker:
    """A process as the driver sees it: where it is spoken to, what it has, and where it writes what it says."""

    def __init__(self, setting: Setting):
        self.setting, self.part, self.ready = setting, None, False
        context = get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  without a name: nothing is left of it
        log = Connection(os.dup(self._log.fileno()), readable=False)
        self._process = context.Process(target=_serve, args=(theirs, log, setting), daemon=True)
        self._process.start()
        theirs.close()
        log.close()

    part: Part | None

    def give(self, part: Part) -> None:
        self.part = part
        with suppress(ConnectionError):  # it has just ended, which is heard next
            self.pipe.send((part.left, part.alone, part.budget))

    def ended(self) -> tuple[str, str]:
        """How it ended, and the end of its log."""
        self._process.join()
        code = self._process.exitcode or 0
        size = os.fstat(self._log.fileno()).st_size
        log = os.pread(self._log.fileno(), 8192, max(0, size - 8192)).decode(errors="replace")
        self._close()
        return (signal.Signals(-code).name if code < 0 else f"exit {code}"), log

    def kill(self) -> None:
        self._process.kill()
        self._process.join()
        self._close()

    def _close(self) -> None:
        self.pipe.close()
        self._log.close()


def _last(log: str) -> str:
    """The last line of a log. A worker without one did not come as far as to have it: it imports the script first."""
    if log.strip():
        return log.strip().splitlines()[-1][:300]
    return 'each of them imports your script first, so put what it does below `if __name__ == "__main__":`.'


# in the worker


def _serve(pipe: Connection, log: Connection, setting: Setting) -> None:
    """Run groups until the driver is gone."""
    import faulthandler

    for stream in (1, 2):
        os.dup2(log.fileno(), stream)
    sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False, buffering=1)  # noqa: SIM115  for good
    faulthandler.enable()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the driver's, which ends this process
    threading.Thread(target=_end_with_the_driver, daemon=True).start()
    if setting.gpu is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = setting.gpu
        os.environ["ICLGD_GPU_SHARE"] = str(setting.share)  # models/budget.py reads it
    tools = worker_tools(setting.data, setting.plugins, setting.threads)
    tools.progress = Told(lambda *told: pipe.send(("doing", told)))
    pipe.send(("ready", None))
    store = Store(setting.store)
    while True:
        try:
            jobs, alone, tools.budget = pipe.recv()
        except EOFError:
            return
        for event in work(jobs, tools, store, alone):
            pipe.send(("event", event))
        tools.budget = 1.0
        pipe.send(("idle", None))


def worker_tools(data: Path | None, plugins: Sequence[str], threads: int) -> Tools:
    """What a worker of any engine lends its cells; the last model stays loaded from group to group."""
    os.environ["OMP_NUM_THREADS"] = str(threads)  # for torch, which is not imported until it is used
    if torch := sys.modules.get("torch"):  # by the user's script
        torch.set_num_threads(threads)
    for file in plugins:
        load_plugin(file)
    return Tools(data)


def _end_with_the_driver() -> None:
    driver = parent_process()
    assert driver is not None
    wait([driver.sentinel])
    os._exit(1)


class Told:
    """Says now and then what is being done, with all that was finished since."""

    def __init__(self, say: Callable[[str, int], None]):
        self._say, self._what, self._count, self._last = say, "", 0, 0.0

    def __call__(self, what: str, count: int) -> None:
        self._count = self._count + count if what == self._what else count
        changed, self._what = what != self._what, what
        if changed or time.monotonic() - self._last >= TOLD_EVERY:
            self._say(self._what, self._count)
            self._last, self._count = time.monotonic(), 0
