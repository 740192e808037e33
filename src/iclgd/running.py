"""Running a study: which cells are missing, where they are kept, and the folder that shows them."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from iclgd.engine.engines import Engine
from iclgd.engine.quarantine import lift
from iclgd.engine.work import Job
from iclgd.errors import Refusal, Stopped
from iclgd.files import check_output, check_writable, held, sweep
from iclgd.lab import LABS, Cell, LabSpec
from iclgd.registry import source_hash
from iclgd.report.numbers import counted
from iclgd.report.pace import Guess
from iclgd.report.terminal import CellProgress
from iclgd.store.cells import Store
from iclgd.study import Results, Study, read_record, repeat_line, study_key
from iclgd.tools import Tools

if TYPE_CHECKING:
    from iclgd.models.subject import Subject

SERIAL = Engine()
NAMED = 3  # damaged cells that are named; the rest are counted
Guesses = Callable[[Sequence[Job]], Mapping[str, Guess]]  # how long cells take, before they are run


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
    engine: Engine = SERIAL,
    progress: CellProgress | None = None,
    subjects: "Mapping[str, Subject] | None" = None,
) -> Study:
    """Run the cells that the store does not have yet, and show them all; ``where.overwrite`` runs every one anew."""
    where.check(lab, spec)
    progress = progress or CellProgress()
    with held(where.folder) if where.folder is not None else nullcontext():
        tools = Tools(getattr(spec, "data", None), progress.doing, subjects)
        plan = planned(lab, spec, tools)
        fresh = run_missing(plan, where, tools, engine, progress)
        progress.ends("drawing figures")
        return shown(lab, spec, plan, where, fresh)


def planned(lab: str, spec: LabSpec, tools: Tools) -> list[Job]:
    """Every cell of a study with its key."""
    plan = [_job(cell, tools) for cell in spec.cells()]
    tools.forget()
    return plan


def run_missing(
    plan: Sequence[Job],
    where: Where,
    tools: Tools,
    engine: Engine,
    progress: CellProgress,
    guesses: Guesses = lambda _jobs: {},
) -> int:
    """Run the cells of a plan that the store does not have, or all of them anew; gives how many."""
    store = Store(where.store)
    unique = list({job.key: job for job in plan}.values())
    missing = [job for job in unique if where.overwrite or not store.has(job.key)]
    if missing:  # what would keep the study from being finished is said before the work
        check_writable(store.folder, store.folder.absolute())
        _check_kept(store, unique, missing)
    if where.overwrite:  # what is there stays until what replaces it is
        missing = [replace(job, old=store.stamp(job.key)) for job in missing]
        for job in missing:
            lift(store, job.key)
    _run(missing, unique, store, tools, engine, progress, guesses)
    return len(missing)


def _check_kept(store: Store, unique: Sequence[Job], missing: Sequence[Job]) -> None:
    """Refuse, before the work, cells that are kept but cannot be read; of many the first are named."""
    to_run, damaged = {job.key for job in missing}, dict[str, Refusal]()
    for key in (job.key for job in unique if job.key not in to_run):
        try:
            store.check(key)
        except Refusal as refusal:
            damaged[store.path(key).name] = refusal
    if len(damaged) == 1:
        raise next(iter(damaged.values()))
    if damaged:
        more = f" and {len(damaged) - NAMED} more" if len(damaged) > NAMED else ""
        raise Refusal(
            f"{len(damaged)} cells in {store.folder} cannot be read: {', '.join(islice(damaged, NAMED))}{more}; remove "
            "those folders and run again, or see `iclgd store check` for what is wrong with each."
        )


def shown(lab: str, spec: LabSpec, plan: Sequence[Job], where: Where, fresh: int) -> Study:
    """The study of a plan whose cells are all there, written to its folder if it has one."""
    cells, keys = [job.cell for job in plan], [job.key for job in plan]
    repeat = repeat_line(lab, spec, where.folder)
    study = Study(lab, spec, cells, keys, Results(Store(where.store), keys), repeat, fresh)
    if where.folder is not None:
        sweep(where.folder.absolute().parent)
        study.write(where.folder, where.store)
    return study


def _job(cell: Cell, tools: Tools) -> Job:
    lab = LABS[cell.lab]
    identity = dict(lab.identity(cell, tools))
    if source := source_hash(lab):  # a stranger's lab: its file may change without its version
        identity["source"] = source
    return Job(cell.key(identity, lab.version), cell, identity)


def _run(
    missing: Sequence[Job],
    unique: Sequence[Job],
    store: Store,
    tools: Tools,
    engine: Engine,
    progress: CellProgress,
    guesses: Guesses,
) -> None:
    """Run what is missing; whoever stops it is told what is kept."""
    sweep(store.folder)
    done = {job.key for job in unique} - {job.key for job in missing}
    known = guesses(missing) if missing else {}
    progress.start(len(missing), None if known else expected(store, done, len(missing)), known)
    try:
        engine.run(missing, store, tools, progress)
    except KeyboardInterrupt:
        sweep(store.folder)
        raise Stopped(_stopped(missing, unique, store)) from None


def _stopped(missing: Sequence[Job], unique: Sequence[Job], store: Store) -> str:
    """What is kept of a study that was stopped."""
    old = {job.key for job in missing if job.old and not job.done(store)}
    kept = sum(store.has(job.key) for job in unique) - len(old)
    cells = f"{kept} of {counted(len(unique), 'cell')} {'is' if kept == 1 else 'are'}"
    if old:
        return (
            f"stopped; {cells} new in {store.folder}, the others are as they were: the same command begins again,"
            " without `overwrite` it takes them as they are."
        )
    if not kept:
        return "stopped before a cell was finished: the same command begins again."
    return f"stopped; {cells} kept in {store.folder}: the same command goes on from there."


def expected(store: Store, done: Collection[str], missing: int) -> float | None:
    """Seconds that missing cells take one after another, if they are like those of the study that are done."""
    took = list[float]()
    for key in islice(done, 100):
        with suppress(Refusal, KeyError):  # a cell that cannot be read is refused by whoever needs its numbers
            took.append(store.record(key)["provenance"]["seconds"])
    return missing * sum(took) / len(took) if took else None
