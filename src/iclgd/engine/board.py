"""What the driver knows while a study runs: groups that wait, cells that are kept, failed, or ended their worker."""

from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from iclgd.engine.quarantine import DEATHS, file_of, put
from iclgd.engine.work import Begun, Event, Failed, Found, Job, groups
from iclgd.errors import Refusal, Unfinished
from iclgd.report.numbers import counted
from iclgd.store.cells import Store

if TYPE_CHECKING:
    from iclgd.report.terminal import CellProgress

SHOWN = 5  # failures that are spelled out; the rest are counted


@dataclass
class Part:
    """A group of cells on its way: those that are left, the one at work, and how they are to be run."""

    left: list[Job]
    at: str = ""
    alone: bool = False
    budget: float = 1.0


class Board:
    """Hands out groups, takes down what became of every cell, and says in the end what is missing and why."""

    def __init__(self, jobs: Sequence[Job], store: Store, progress: "CellProgress"):
        self.store, self.progress, self.total, self.kept = store, progress, len(jobs), 0
        self.failures: list[tuple[Job, Failed]] = []
        self._deaths: dict[str, list[str]] = defaultdict(list)
        for job in jobs:
            if file_of(store, job.key).is_file():
                self._fail(job, Failed(job.key, _in_quarantine(file_of(store, job.key))))
        aside = {job.key for job, _ in self.failures}
        self.waiting = deque(Part(group) for group in groups([job for job in jobs if job.key not in aside]))

    def take(self) -> Part | None:
        """The next group to run, without what another command on the same store has done in the meantime."""
        while self.waiting:
            part = self.waiting.popleft()
            self._acknowledge(part)
            if part.left:
                return part
        return None

    def saw(self, part: Part, event: Event) -> None:
        """A worker told something of a cell of its group."""
        job = next(job for job in part.left if job.key == event.key)
        if isinstance(event, Begun):
            part.at = event.key
            self.progress.begun(event.key, job.cell.called)
            return
        part.left.remove(job)
        if isinstance(event, Failed):
            self._fail(job, event)
            if event.fatal:
                raise self._ends(event.sentence)
            return
        if isinstance(event, Found):
            try:
                job.keep(self.store, event.result, event.provenance)
            except Refusal as refusal:
                raise self._ends(str(refusal)) from None
        self._keep(job)

    def died(self, part: Part, how: str, log: str) -> None:
        """The worker of a group ended: the cell at work is tried again alone, with the rest of its group, or set aside.

        From its second death on, it is tried in half of the memory: that may be what it died of.
        """
        self._acknowledge(part)  # what it kept and could not tell any more
        if not part.left:
            return
        job = next((job for job in part.left if job.key == part.at), part.left[0])
        deaths = self._deaths[job.key]
        deaths.append(how)
        self.progress.lost(job.key)
        if len(deaths) >= DEATHS:
            path = put(self.store, job, deaths, log)
            self._fail(
                job,
                Failed(job.key, f"its process ended {len(deaths)} times ({how.rstrip('.')}): {_in_quarantine(path)}"),
            )
            part.left.remove(job)
        if part.left:
            smaller = 0.5 if 1 < len(deaths) < DEATHS else 1.0
            self.waiting.appendleft(Part(part.left, alone=True, budget=smaller))

    def _acknowledge(self, part: Part) -> None:
        for job in [job for job in part.left if job.done(self.store)]:
            part.left.remove(job)
            self._keep(job)

    def _keep(self, job: Job) -> None:
        self.kept += 1
        self.progress.done(job.key)

    def _fail(self, job: Job, failed: Failed) -> None:
        self.failures.append((job, failed))
        self.progress.failed(job.key)

    def _ends(self, sentence: str) -> Refusal:
        """Nothing more can be kept."""
        if not self.kept:
            return Refusal(sentence)
        return Unfinished(f"{sentence} {self.kept} of {counted(self.total, 'cell')} {self._kept()}.")

    def verdict(self) -> None:
        """Raise what is to be said where a cell is missing.

        Where nothing could be done and everything failed alike, that error itself.
        """
        if not self.failures:
            return
        sentences = dict.fromkeys(failed.sentence for _, failed in self.failures)
        first = self.failures[0][1]
        if not self.kept and len(sentences) == 1 and (first.error or first.refused):
            raise first.error or Refusal(first.sentence)
        told = [f"{self._which(sentence)}: {sentence}" for sentence in list(sentences)[:SHOWN]]
        if len(sentences) > SHOWN:
            told.append(f"and {len(sentences) - SHOWN} more.")
        traces = tuple(dict.fromkeys(failed.trace for _, failed in self.failures if failed.trace))[:SHOWN]
        raise Unfinished(f"{self._what_is_kept()}. {' '.join(told)}", traces) from first.error

    def _what_is_kept(self) -> str:
        lost = len(self.failures)
        return f"{lost} of {counted(self.total, 'cell')} failed, {self.kept} {self._kept()}"

    def _kept(self) -> str:
        return f"{'is' if self.kept == 1 else 'are'} kept in {self.store.folder}"

    def _which(self, sentence: str) -> str:
        """The cells that failed with a sentence, by their labels."""
        jobs = [job for job, failed in self.failures if failed.sentence == sentence]
        return jobs[0].cell.called + (f" and {len(jobs) - 1} more" if len(jobs) > 1 else "")


def _in_quarantine(path: object) -> str:
    return f"it is set aside, with its log, in {path}; remove that file to try it again."
