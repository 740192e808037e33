"""Ray: the same groups on a workstation or a cluster. Workers come and go with its nodes; the driver keeps the board.

Workers that see the driver's store write to it themselves; the others return what they found and the driver writes.
"""

import logging
import os
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from iclgd.engine.board import Board, Part
from iclgd.engine.processes import STILLBORN, Told, worker_tools
from iclgd.engine.work import Event, Job, work
from iclgd.errors import Refusal
from iclgd.files import building
from iclgd.registry import PLUGINS
from iclgd.store.cells import Store
from iclgd.tools import Tools

CORES = 4  # of a worker; fewer where a node has fewer
Doing = tuple[str, int]  # what is being done within a cell, and how much of it since that was said
HEARD = 1.0  # seconds after which the driver looks up: nodes may have come


def run(board: Board, tools: Tools, workers: int | None, address: str | None, gpus: int | None) -> None:
    """Groups are handed out in order, each to the first worker that is ready; one whose worker is lost comes back.

    ``gpus`` of a worker: 0, 1, or None for all that a node has.
    """
    with _connected(address) as ray, _probe(board.store.folder) as probe:
        needs = _needs(ray.nodes(), gpus)
        setting = (probe, board.store.folder.resolve(), tools.data, tuple(PLUGINS), needs["num_cpus"])
        crew, stillborn = _Crew(ray, needs, setting), 0
        try:
            while board.waiting or crew.at_work:
                crew.hire(min(workers or _room(ray.nodes(), needs), len(board.waiting) + crew.at_work))
                for worker in crew.heard():
                    try:
                        crew.hear(worker, board, tools.progress)
                        stillborn = 0
                    except _Lost as lost:
                        stillborn += not worker.ready
                        if stillborn == STILLBORN:
                            raise Refusal(f"workers end before they begin: {_why(lost)}") from None
                        if worker.part is not None:
                            board.died(worker.part, _why(lost), str(lost))
        finally:
            crew.dismiss()


class _Lost(Exception):
    """A worker is gone."""


class _Hired:
    """A worker as the driver sees it."""

    def __init__(self, actor: Any):
        self.actor, self.ready = actor, False
        self.part: Part | None = None
        self.awaited = actor.ready.remote()  # an answer, or a stream of events


class _Crew:
    """The workers of a study, wherever Ray has put them; one that waits for a place on a node has no group."""

    def __init__(self, ray: Any, needs: dict[str, int], setting: Sequence[Any]):
        self._ray, self._setting = ray, setting
        self._class = ray.remote(max_restarts=0, **needs)(Worker)
        self._all: list[_Hired] = []

    @property
    def at_work(self) -> int:
        return sum(worker.part is not None for worker in self._all)

    def hire(self, many: int) -> None:
        while len(self._all) < many:
            self._all.append(_Hired(self._class.remote(*self._setting)))

    def heard(self) -> list[_Hired]:
        """Those that have something to say, after a moment at most."""
        awaited = {worker.awaited: worker for worker in self._all if worker.awaited is not None}
        return [awaited[one] for one in self._ray.wait(list(awaited), num_returns=1, timeout=HEARD)[0]]

    def hear(self, worker: _Hired, board: Board, doing: Callable[[str, int], None]) -> None:
        """Take down what a worker tells, and give it a group when it has none; a lost one is struck off."""
        try:
            if worker.part is None:
                self._ray.get(worker.awaited)
                worker.ready = True
            else:
                told = self._ray.get(next(worker.awaited))
                if isinstance(told, tuple):
                    doing(*told)
                else:
                    board.saw(worker.part, told)
                return
        except StopIteration:  # the group is done
            worker.part = None
        except self._ray.exceptions.RayTaskError:
            raise
        except self._ray.exceptions.RayError as error:  # its process, its node, or what was on its way from there
            self._fire(worker)
            raise _Lost(str(error)) from None
        worker.part = board.take()
        if worker.part is None:  # a group may yet come back
            self._fire(worker)
        else:
            given = (worker.part.left, worker.part.alone, worker.part.budget)
            worker.awaited = worker.actor.run.options(num_returns="streaming").remote(*given)

    def _fire(self, worker: _Hired) -> None:
        self._all.remove(worker)
        self._ray.kill(worker.actor)

    def dismiss(self) -> None:
        for worker in list(self._all):
            self._fire(worker)


class Worker:
    """What runs on a node. The last model stays loaded from group to group."""

    def __init__(self, probe: Path, store: Path, data: Path | None, plugins: Sequence[str], cores: int):
        self._store = Store(store) if probe.is_dir() and os.access(store, os.W_OK) else None
        self._tools = worker_tools(data, plugins, cores)

    def ready(self) -> None:
        """Answered once the worker is there."""

    def run(self, jobs: Sequence[Job], alone: bool, budget: float) -> Iterator[Event | Doing]:
        """Events of cells and, between them, what is being done: the work is another thread's, which tells both."""
        told: SimpleQueue[Event | Doing | BaseException | None] = SimpleQueue()
        self._tools.budget, self._tools.progress = budget, Told(lambda *doing: told.put(doing))

        def tell() -> None:
            try:
                for event in work(jobs, self._tools, self._store, alone):
                    told.put(event)
                told.put(None)
            except BaseException as error:
                told.put(error)

        threading.Thread(target=tell, daemon=True).start()
        while (one := told.get()) is not None:
            if isinstance(one, BaseException):
                raise one
            yield one


@contextmanager
def _connected(address: str | None) -> Iterator[Any]:
    """Ray, at an address (or RAY_ADDRESS) or started here; one that the caller started is used and left running."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"  # nothing is reported to anybody
    try:
        import ray
    except ImportError:
        raise Refusal('Ray is not installed: `pip install "iclgd[cluster]"`.') from None
    if ray.is_initialized():
        yield ray
        return
    _answers(address)
    quiet: Any = {"include_dashboard": False, "log_to_driver": False, "logging_level": logging.CRITICAL}
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):  # where Ray prints that workers died
        try:
            ray.init(address=address, **quiet)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise Refusal(f"no Ray cluster can be had{f' at {address}' if address else ''}: {_why(error)}") from None
        try:
            yield ray
        finally:
            ray.shutdown()


def _answers(address: str | None) -> None:
    """Refuse an address where nobody listens; Ray would try for minutes."""
    host, _, port = (address or "").removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        try:
            socket.create_connection((host, int(port)), timeout=10).close()
        except OSError as error:
            why = error.strerror or "no answer"
            raise Refusal(f"no Ray cluster answers at {address} ({why}): start one with `ray start --head`.") from None


@contextmanager
def _probe(folder: Path) -> Iterator[Path]:
    """A thing in the store: a worker that sees it has the same folder. It goes as all that is being built there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        made = tempfile.TemporaryDirectory(prefix=building(), dir=folder.resolve())
    except OSError as error:
        raise Refusal(f"cannot write to {folder}: {error.strerror}; name another `store`.") from None
    with made as path:
        yield Path(path)


def _needs(nodes: Sequence[dict[str, Any]], gpus: int | None) -> dict[str, int]:
    """What a worker asks of a node."""
    cores = [int(_has(node, "CPU")) for node in nodes if _has(node, "CPU") >= 1]
    if not cores:
        raise Refusal("no node of the Ray cluster has a core to spare.")
    most = int(max(_has(node, "GPU") for node in nodes))
    return {"num_cpus": min(CORES, *cores), "num_gpus": most if gpus is None else min(gpus, most)}


def _room(nodes: Sequence[dict[str, Any]], needs: dict[str, int]) -> int:
    """How many workers the nodes hold that are there now."""
    return sum(
        int(
            min(
                _has(node, kind) // needs[name]
                for kind, name in (("CPU", "num_cpus"), ("GPU", "num_gpus"))
                if needs[name]
            )
        )
        for node in nodes
    )


def _has(node: dict[str, Any], kind: str) -> float:
    return float(node["Resources"].get(kind, 0)) if node["Alive"] else 0.0


def _why(error: Exception) -> str:
    """The sentence of a long explanation that says what happened."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    told = [line for line in lines if line.startswith("The actor")] or lines
    return told[-1].split(". ")[0][:300].rstrip(".") + "."
