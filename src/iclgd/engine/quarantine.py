"""Cells that ended their process again and again: set aside with what their process said last, and left out."""

import json
from collections.abc import Sequence
from pathlib import Path

from iclgd.engine.work import Job
from iclgd.files import aside
from iclgd.store.cells import Store

DEATHS = 3  # of its worker, before a cell is set aside


def file_of(store: Store, key: str) -> Path:
    return store.folder / "quarantine" / f"{store.path(key).name}.json"


def put(store: Store, job: Job, how: Sequence[str], log: str) -> Path:
    """Set a cell aside: what it is, how its worker ended each time, and the last lines of its log."""
    path = file_of(store, job.key)
    record = {
        "key": job.key,
        "lab": job.cell.lab,
        "spec": job.cell.spec.model_dump(mode="json"),
        "labels": dict(job.cell.labels),
        "ended": list(how),
        "log": log.splitlines()[-40:],
    }
    lift(store, job.key)
    with aside(path) as part:
        part.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def lift(store: Store, key: str) -> None:
    """Let the cell be tried again."""
    file_of(store, key).unlink(missing_ok=True)
