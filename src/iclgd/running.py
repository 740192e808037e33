"""Running a study: which cells are missing, where they are kept, and the folder that shows them."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from iclgd.errors import Refusal
from iclgd.files import check_output, held, sweep
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
            sweep(self.folder.parent)


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
    with held(where.folder) if where.folder is not None else nullcontext():
        tools = Tools(getattr(spec, "data", None), subjects=subjects)
        plan = planned(lab, spec, tools)
        fresh = run_missing(plan, where, tools, progress, jobs)
        return shown(lab, spec, plan, where, fresh)


def planned(lab: str, spec: LabSpec, tools: Tools) -> "list[Job]":
    """Every cell of a study with its key."""
    plan = [_job(cell, tools) for cell in spec.cells()]
    tools.forget()
    return plan


def run_missing(
    plan: "Sequence[Job]", where: Where, tools: Tools, progress: "CellProgress | None" = None, jobs: int = 1
) -> int:
    """Run the cells of a plan that the store does not have, or all of them anew; gives how many."""
    store = Store(where.store)
    sweep(store.folder)
    every = {job.key: job for job in plan}
    missing = [job for job in every.values() if where.overwrite or not store.has(job.key)]
    if missing:
        for key in every.keys() - {job.key for job in missing}:
            store.check(key)  # a damaged cell is said before the work, not after it
    if progress is not None:
        tools.progress = progress.doing
        progress.start(len(missing))
    if where.overwrite:
        for job in missing:
            store.remove(job.key)
    _run(missing, store, tools, progress, jobs)
    return len(missing)


def shown(lab: str, spec: LabSpec, plan: "Sequence[Job]", where: Where, fresh: int) -> Study:
    """The study of a plan whose cells are all there, written to its folder if it has one."""
    cells, keys = [job.cell for job in plan], [job.key for job in plan]
    repeat = repeat_line(lab, spec, where.folder)
    study = Study(lab, spec, cells, keys, Results(Store(where.store), keys), repeat, fresh)
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
