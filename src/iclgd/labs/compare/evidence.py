"""What a claim rests on: differences with their p-values, the part that labels make, how far training went."""

from collections.abc import Sequence

import numpy as np

from iclgd.labs.compare.absent import marked, short_of
from iclgd.labs.compare.family import family
from iclgd.labs.compare.far import ALIKE, SIZES, draws, how_far
from iclgd.labs.compare.spec import CONSTANT
from iclgd.labs.compare.spoken import spoken_of
from iclgd.labs.compare.tables import Tables
from iclgd.labs.compare.view import number
from iclgd.metrics import OWN
from iclgd.report.numbers import Number, Size
from iclgd.report.numbers import number as plain
from iclgd.report.page import Entry, Table


class Evidence(Tables):
    """More tables of a comparison at one position."""

    def short(self, tasks: Sequence[str]) -> Table:
        """What the answer rests on: accuracy, the first contrast, the first likeness; below each learner its nulls."""
        contrast = [name for name, m in self.comparison.metrics.items() if m.contrast and self.comparison.spec.contrast]
        return self._beside(tasks, [*list(self.accuracies)[:1], *contrast[:1], *self._first_likeness])

    def answers(self, tasks: Sequence[str]) -> Table:
        """What is answered beside reading's answers, and one answer for all queries, which tells none from another."""
        return self._beside(tasks, [*list(self.accuracies)[:1], *self.likeness_of_answers], CONSTANT)

    def _beside(self, tasks: Sequence[str], shown: Sequence[str], *more: str) -> Table:
        """Prompted learners, what else stands in their place, learners, and below each its nulls."""

        def row(title: str, **more: str) -> list[Entry]:
            labels = {"init": self.first, **more}
            digits = {name: 2 if self.comparison.metrics[name].by == "query" else 3 for name in shown}
            title += marked(self.comparison, tasks, shown, labels)
            return [title, *(self._over(tasks, {**labels, "metric": name}, digits[name], "") for name in shown)]

        rows = [row(name, learner=name) for name in ("zero-shot", "icl", *more)]
        gone = {c: sum(self.comparison.diverged(self.first, task, c.label) for task in tasks) for c in self.learners}
        spoken = spoken_of(self.comparison)
        for choice, lost in gone.items():
            if lost:
                of = len(self.comparison.spec.seeds) * len(tasks)
                rows.append([choice.label, f"diverged in {lost} of {of} draws", *[""] * (len(shown) - 1)])
                continue
            rows.append(row(choice.label, learner=choice.label))
            if choice in spoken:
                beside = [row(f"  {title}", learner=choice.label, null=null) for null, title in self.nulls.items()]
                for init in self.comparison.spec.init[1:]:
                    beside.append(row(f"  a model with {init} weights", learner=choice.label, init=init))
                rows += [one for one in beside if any(one[1:])]
        return Table(["", *(self.comparison.metrics[name].title for name in shown)], rows)

    @property
    def _first_likeness(self) -> list[str]:
        """The first of this package's, and all that are somebody's own."""
        ours = [name for name in self.likeness if name in {name for name, *_ in OWN}]
        return [name for name in self.likeness if name not in ours[1:]]

    def pairs(self, tasks: Sequence[str]) -> Table:
        """α: the likeness of two finetuned learners' changes of attention, at one rate."""
        rows: list[list[Entry]] = []
        for a, b in self.comparison.spec.pairs:
            labels = {"init": self.first, "learner": a.label, "versus": b.label, "metric": "alpha"}
            title = f"{a.label} ~ {b.label}{short_of(self.comparison, tasks, labels)}"
            rows.append([title, number(self.comparison.estimate(tasks, self.position, **labels))])
        return Table(["", "α"], rows)

    def differences(self, tasks: Sequence[str], metric: str) -> Table:
        """Every difference that a sentence may rely on: its interval, its p-value corrected for all of them (Holm)."""
        rows: list[list[Entry]] = []
        for row in family(self.comparison, tasks, self.position, metric):
            layers = self.comparison.layers_apart(tasks, self.position, *row.pair)
            shown = layers.of and not row.part
            counted = f"{layers.up} up, {layers.down} down of {layers.of}" if shown else ""
            title, p = f"{row.name}{row.part}", _p(row.found.corrected)
            rows.append([title, number(row.found.estimate), p, row.verdict, counted])
        return Table(["", self.comparison.metrics[metric].title, "p (Holm)", "first is", "layers"], rows)

    # the part that labels make

    def labels(self, tasks: Sequence[str]) -> Table:
        """What right and wrong labels make different: in the answers, in the size of updates, in their direction."""
        contrasts = {n: m for n, m in self.comparison.metrics.items() if m.contrast and n != "label-share"}
        header = ["", "right labels", "wrong labels", "labels' share", *(m.title for m in contrasts.values())]
        rows: list[list[Entry]] = [["icl", *self._label_cells(tasks, "icl"), *[""] * len(contrasts)]]
        rows += self._contrast_floors(tasks, "icl", list(contrasts))
        for choice in self.learners:
            own = {"init": self.first, "learner": choice.label}
            found = [self._over(tasks, {**own, "metric": name}, nothing="") for name in contrasts]
            part = marked(self.comparison, tasks, [*self.accuracies, *contrasts], own)
            rows.append([f"{choice.label}{part}", *self._label_cells(tasks, choice.label), *found])
            for null, title in self.nulls.items():
                beside = [self._over(tasks, {**own, "null": null, "metric": name}, nothing="") for name in contrasts]
                if any(cell != "" for cell in beside):
                    part = marked(self.comparison, tasks, list(contrasts), {**own, "null": null})
                    rows.append([f"  {title}{part}", "", "", "", *beside])
            rows += self._contrast_floors(tasks, choice.label, list(contrasts))
        return Table(header, rows)

    def _contrast_floors(self, tasks: Sequence[str], learner: str, contrasts: Sequence[str]) -> list[list[Entry]]:
        """What labels change, against itself: of the first draw, and of cells that have it."""
        rows: list[list[Entry]] = []
        for floor in self.comparison.known("floor"):
            place = {"init": self.first, "learner": learner, "floor": floor}
            found = [self._over(tasks, {**place, "metric": name}, nothing="") for name in contrasts]
            if any(cell != "" for cell in found):
                rows.append([f"  computed again, {floor}", "", "", "", *found])
        return rows

    def _label_cells(self, tasks: Sequence[str], learner: str) -> list[Entry]:
        right = {"init": self.first, "learner": learner, "metric": "accuracy"}
        found = (right, {**right, "null": "wrong-labels"}, {**right, "metric": "label-share"})
        return [self._over(tasks, labels, 2) for labels in found]

    def training(self, tasks: Sequence[str]) -> Table:
        """How far training went: loss, size of the weight change, weights that moved, how alike with wrong labels."""
        rows: list[list[Entry]] = []
        of = len(self.comparison.spec.seeds) * len(tasks)
        for choice in self.learners:
            lost = sum(self.comparison.diverged(self.first, task, choice.label) for task in tasks)
            title = f"{choice.label}, {lost} of {of} draws diverged" if lost else choice.label
            sizes = [self._how_far(tasks, choice.label, quantity, of - lost) for quantity in SIZES]
            alike = self._how_far(tasks, choice.label, ALIKE, of - lost)
            rows.append([title, *sizes, self._moved(tasks, choice.label), alike])
        header = ["loss, last demonstrations", "‖ΔW‖", "weights moved", "cos ΔW, right and wrong labels"]
        return Table(["", *header], rows)

    def _moved(self, tasks: Sequence[str], learner: str) -> Entry:
        """The share of the trained weights that are not what they were; n/a of what is not trained step by step."""
        lost = {task: self.comparison.lost(self.first, task, learner) for task in tasks}
        place = {"init": self.first, "learner": learner}
        shares = [
            result.facts["moved"]
            for cell, result in self.comparison.study.found()
            if "moved" in result.facts
            and all(cell.labels.get(name) == value for name, value in place.items())
            and cell.labels["seed"] not in lost.get(str(cell.labels["task"]), {cell.labels["seed"]})
        ]
        return Number(float(np.mean(shares))) if shares else "n/a"

    def _how_far(self, tasks: Sequence[str], learner: str, quantity: str, of: int) -> Entry:
        """With the number of draws that it is known of, where that is not all that did not diverge."""
        values = draws(self.comparison, tasks, learner, quantity)
        found, known = how_far(values, quantity), int(np.isfinite(values).sum())
        if not known:
            return "n/a"
        kind = Number if quantity == ALIKE else Size
        return kind(found.mean, found.low, found.high, 3, "" if known == of else f"{known} of {of} draws")


def _p(value: float) -> str:
    return "n/a" if value != value else "< .001" if value < 0.001 else plain(value)
