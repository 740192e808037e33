"""Several processes on one machine: each takes a group of cells at a time and writes what it found itself."""

import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

from iclgd.engine.serial import Done, Job, groups, run_group
from iclgd.registry import PLUGINS, load_plugin
from iclgd.store.cells import Store
from iclgd.tools import Tools


def run_jobs(jobs: Sequence[Job], store: Store, tools: Tools, done: Done, workers: int) -> None:
    """The longest groups are expected first, so that no process waits for them at the end."""
    parts = groups(jobs)
    pool = ProcessPoolExecutor(min(workers, len(parts)), get_context("spawn"), _prepare, (workers, list(PLUGINS)))
    try:
        waiting = {pool.submit(_work, part, store.folder, tools.data): part for part in parts}
        for ended in as_completed(waiting):
            ended.result()
            for job in waiting[ended]:
                done(job.cell)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _prepare(workers: int, plugins: Sequence[str]) -> None:
    import torch

    torch.set_num_threads(max(1, (os.cpu_count() or 1) // workers))
    for file in plugins:
        load_plugin(file)


def _work(jobs: Sequence[Job], store: Path, data: Path | None) -> None:
    run_group(jobs, Store(store), Tools(data), lambda _cell: None)
