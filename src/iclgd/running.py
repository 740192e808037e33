"""Running a study: which cells are missing, where they are kept, and the folder that shows them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from iclgd.errors import Refusal
from iclgd.files import check_output
from iclgd.lab import LABS, Cell, LabSpec
from iclgd.registry import source_hash
from iclgd.store.cells import Store
from iclgd.study import Results, Study, read_record, repeat_line, study_key
from iclgd.tools import Tools

if TYPE_CHECKING:
    from iclgd.engine.serial import Job
    from iclgd.models.subject import Subject
    from iclgd.report.terminal import CellProgress


@dataclass(frozen=True)
class Where:
    """Where a study's cells are kept and its page goes; no folder: the page is only shown."""

    store: Path
    folder: Path | None = None
    overwrite: bool = False

    def check(self, lab: str, spec: LabSpec) -> None:
        """Refuse before any work a folder that is somebody else's, or another study's."""
        if self.folder is not None:
            same = read_record(self.folder).get("key") == study_key(lab, spec)
            check_output(self.folder, self.overwrite or same)


def run_study(
    lab: str,
    spec: LabSpec,
    where: Where,
    jobs: int = 1,
    progress: "CellProgress | None" = None,
    subjects: "Mapping[str, Subject] | None" = None,
) -> Study:
    """Run the cells that the store does not have yet, and show them all; ``where.overwrite`` runs every one anew."""
    where.check(lab, spec)
    tools = Tools(getattr(spec, "data", None), subjects=subjects)
    if progress is not None:
        tools.progress = progress.doing
    store, cells = Store(where.store), spec.cells()
    plan = [_job(cell, tools) for cell in cells]
    tools.forget()
    missing = [job for job in {job.key: job for job in plan}.values() if where.overwrite or not store.has(job.key)]
    if progress is not None:
        progress.start(len(missing))
    if where.overwrite:
        for job in missing:
            store.remove(job.key)
    _run(missing, store, tools, progress, jobs)
    keys = [job.key for job in plan]
    study = Study(lab, spec, cells, keys, Results(store, keys), repeat_line(lab, spec, where.folder), len(missing))
    if where.folder is not None:
        study.write(where.folder, where.store)
    return study


def _job(cell: Cell, tools: Tools) -> "Job":
    from iclgd.engine.serial import Job

    lab = LABS[cell.lab]
    identity = dict(lab.identity(cell, tools))
    if source := source_hash(lab):  # a stranger's lab: its file may change without its version
        identity["source"] = source
    return Job(cell.key(identity, lab.version), cell, identity)


def _run(missing: "Sequence[Job]", store: Store, tools: Tools, progress: "CellProgress | None", jobs: int) -> None:
    from iclgd.engine import processes, serial

    done = progress.done if progress is not None else lambda _cell: None
    if jobs == 1 or len(missing) < 2:
        serial.run_jobs(missing, store, tools, done)
    elif tools.subjects:
        raise Refusal("a model in memory stays in its process: leave out `jobs`.")
    else:
        processes.run_jobs(missing, store, tools, done, jobs)
