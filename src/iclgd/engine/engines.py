"""Which engine runs the cells that a store lacks, and with how many workers."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from iclgd.engine.board import Board
from iclgd.engine.work import Job
from iclgd.errors import Refusal
from iclgd.registry import suggest
from iclgd.store.cells import Store
from iclgd.tools import Tools

if TYPE_CHECKING:
    from iclgd.report.terminal import CellProgress

ENGINES = ("serial", "processes", "ray")
CORES = 4  # of a worker, where nobody says how many workers there are to be


@dataclass(frozen=True)
class Engine:
    """``name`` is serial (this process), processes, or ray; without one, more than one of ``jobs`` are processes.

    ``jobs`` is how many workers there are at most: of processes one for each GPU or four cores, of Ray as many as the
    cluster has room for. ``address`` is that of a running Ray cluster; without one Ray is started on this machine.
    """

    name: str | None = None
    jobs: int | None = None
    address: str | None = None

    def __post_init__(self) -> None:
        if self.name is not None and self.name not in ENGINES:
            known = ", ".join(ENGINES)
            raise Refusal(f'`engine` takes {known}; "{self.name}" is none of them. {suggest(self.name, ENGINES)}')
        if self.jobs is not None and self.jobs < 1:
            raise Refusal(f"`jobs` must be at least 1, not {self.jobs}.")
        if self.name == "serial" and (self.jobs or 1) > 1:
            raise Refusal("`engine` serial is one process: leave out `jobs`.")
        if self.address is not None and self.name != "ray":
            raise Refusal("`address` is that of a Ray cluster: give `engine` ray too.")

    @property
    def serial(self) -> bool:
        return self.name == "serial" or (self.name is None and (self.jobs or 1) == 1)

    def run(self, jobs: Sequence[Job], store: Store, tools: Tools, progress: "CellProgress") -> None:
        """Run cells and keep what they find; what failed is said when everything else is done."""
        board = Board(jobs, store, progress)
        if tools.subjects and not self.serial:
            raise Refusal("a model in memory stays in its process: leave out `jobs` and `engine`.")
        if board.waiting:
            self._run(board, tools, [job for part in board.waiting for job in part.left])
        board.verdict()

    def _run(self, board: Board, tools: Tools, jobs: Sequence[Job]) -> None:
        if self.serial:
            from iclgd.engine import serial

            serial.run(board, tools)
        elif self.name == "ray":
            from iclgd.engine import ray

            ray.run(board, tools, self.jobs, self.address, gpus_wanted(jobs))
        else:
            from iclgd.engine import processes

            gpus = visible_gpus() if gpus_wanted(jobs) else []
            processes.run(board, tools, self.jobs or len(gpus) or max(1, (os.cpu_count() or 1) // CORES), gpus)


def gpus_wanted(jobs: Sequence[Job]) -> int | None:
    """GPUs of a worker: one where a device is auto or cuda, none where it is cpu.

    None stands for all that a machine has, where a cell names one of them or spreads its model over several.
    """
    models = [getattr(job.cell.spec, "model", job.cell.spec) for job in jobs]
    devices = {str(getattr(model, "device", "cpu")) for model in models}
    if any(getattr(model, "device_map", None) for model in models) or any(d.startswith("cuda:") for d in devices):
        return None
    return int(bool(devices & {"auto", "cuda"}))


def visible_gpus() -> list[str]:
    """The GPUs of this machine, as CUDA_VISIBLE_DEVICES names them."""
    import torch

    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if not torch.cuda.is_available():
        return []
    return named.split(",") if named else [str(i) for i in range(torch.cuda.device_count())]
