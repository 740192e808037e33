"""What a claim rests on: differences with their p-values, the part that labels make, how far training went."""

from collections.abc import Sequence

import numpy as np

from iclgd.labs.compare.absent import marked, short_of
from iclgd.labs.compare.spec import CONSTANT
from iclgd.labs.compare.spoken import spoken_of
from iclgd.labs.compare.sweeps import size_of
from iclgd.labs.compare.tables import Tables
from iclgd.labs.compare.view import number
from iclgd.metrics import OWN
from iclgd.metrics.differences import Difference, holm
from iclgd.report.numbers import Number, Size
from iclgd.report.numbers import number as plain
from iclgd.report.page import Entry, Table

SIZES = ("loss", "weight change")


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
            found = [self.comparison.estimate(tasks, self.position, **labels, metric=name) for name in shown]
            digits = [2 if self.comparison.metrics[name].by == "query" else 3 for name in shown]
            title += marked(self.comparison, tasks, shown, labels)
            return [title, *(number(e, d) if e.mean == e.mean else "" for e, d in zip(found, digits, strict=True))]

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
        named = self._compared(metric)
        found = {name: self.comparison.difference(tasks, self.position, *pair) for name, pair in named.items()}
        known: dict[str, Difference] = {name: one for name, one in found.items() if one is not None}
        rows: list[list[Entry]] = []
        for name, one in zip(known, holm(list(known.values())), strict=True):
            if part := short_of(self.comparison, tasks, *named[name]):  # what is left may be a selection
                rows.append([f"{name}{part}", number(one.estimate), _p(one.corrected), "undecided", ""])
                continue
            layers = self.comparison.layers_apart(tasks, self.position, *named[name])
            counted = f"{layers.up} up, {layers.down} down of {layers.of}" if layers.of else ""
            rows.append([name, number(one.estimate), _p(one.corrected), one.verdict, counted])
        return Table(["", self.comparison.metrics[metric].title, "p (Holm)", "first is", "layers"], rows)

    def _compared(self, metric: str) -> dict[str, tuple[dict[str, str], dict[str, str]]]:
        """Trained − untrained, learner − each null, one learner − another, icl − zero-shot: what is paired."""
        base, spec = {"init": self.first, "metric": metric}, self.comparison.spec
        if metric in self.accuracies:
            who = ["icl", *(choice.label for choice in self.learners)]
            pairs = {f"{one} − zero-shot": ({**base, "learner": one}, {**base, "learner": "zero-shot"}) for one in who}
            wrong = {"null": "wrong-labels"}
            return pairs | {
                f"{name}: right − wrong labels": ({**base, "learner": name}, {**base, "learner": name, **wrong})
                for name in who
            }
        found: dict[str, tuple[dict[str, str], dict[str, str]]] = {}
        for choice in self.learners:
            own = {**base, "learner": choice.label}
            found |= {f"{choice.label} − {title}": (own, {**own, "null": null}) for null, title in self.nulls.items()}
            untrained = {} if self.comparison.metrics[metric].contrast else dict.fromkeys(spec.init[1:])
            found |= {f"{choice.label}: {self.first} − {init}": (own, {**own, "init": init}) for init in untrained}
        if metric in self.likeness_of_answers:
            found |= self._answered(base)
        for a, b in spec.pairs:
            found[f"{b.label} − {a.label}"] = ({**base, "learner": b.label}, {**base, "learner": a.label})
        return found

    def _answered(self, base: dict[str, str]) -> dict[str, tuple[dict[str, str], dict[str, str]]]:
        """Learners against one answer for all queries, and each kind of them against the first."""
        one = {**base, "learner": CONSTANT}
        found = {f"{c.label} − {CONSTANT}": ({**base, "learner": c.label}, one) for c in self.learners}
        if spoken := spoken_of(self.comparison):
            first, *rest = ({**base, "learner": choice.label} for choice in spoken)
            found |= {f"{other['learner']} − {first['learner']}": (other, first) for other in rest}
        return found

    # the part that labels make

    def labels(self, tasks: Sequence[str]) -> Table:
        """What right and wrong labels make different: in the answers, in the size of updates, in their direction."""
        contrasts = {n: m for n, m in self.comparison.metrics.items() if m.contrast and n != "label-share"}
        header = ["", "right labels", "wrong labels", "labels' share", *(m.title for m in contrasts.values())]
        rows: list[list[Entry]] = [["icl", *self._label_cells(tasks, "icl"), *[""] * len(contrasts)]]
        rows += self._contrast_floors(tasks, "icl", list(contrasts))
        for choice in self.learners:
            found = [self._contrast(tasks, choice.label, name) for name in contrasts]
            own = {"init": self.first, "learner": choice.label}
            part = marked(self.comparison, tasks, [*self.accuracies, *contrasts], own)
            rows.append([f"{choice.label}{part}", *self._label_cells(tasks, choice.label), *found])
            for null, title in self.nulls.items():
                beside = [self._contrast(tasks, choice.label, name, null=null) for name in contrasts]
                if any(cell != "" for cell in beside):
                    part = marked(self.comparison, tasks, list(contrasts), {**own, "null": null})
                    rows.append([f"  {title}{part}", "", "", "", *beside])
            rows += self._contrast_floors(tasks, choice.label, list(contrasts))
        return Table(header, rows)

    def _contrast_floors(self, tasks: Sequence[str], learner: str, contrasts: Sequence[str]) -> list[list[Entry]]:
        """What labels change, against itself: of the first draw, and of cells that have it."""
        rows: list[list[Entry]] = []
        for floor in self.comparison.known("floor"):
            found = [self._contrast(tasks, learner, name, floor=floor) for name in contrasts]
            if any(cell != "" for cell in found):
                rows.append([f"  computed again, {floor}", "", "", "", *found])
        return rows

    def _label_cells(self, tasks: Sequence[str], learner: str) -> list[Entry]:
        labels = {"init": self.first, "learner": learner}
        found = [
            self.comparison.estimate(tasks, None, metric="accuracy", **labels),
            self.comparison.estimate(tasks, None, metric="accuracy", null="wrong-labels", **labels),
            self.comparison.estimate(tasks, self.position, metric="label-share", **labels),
        ]
        return [number(e, 2) if e.mean == e.mean else "n/a" for e in found]

    def _contrast(self, tasks: Sequence[str], learner: str, name: str, **more: str) -> Entry:
        labels = {"init": self.first, "learner": learner, "metric": name, **more}
        found = self.comparison.estimate(tasks, self.position, **labels)
        return number(found) if found.mean == found.mean else ""

    def training(self, tasks: Sequence[str]) -> Table:
        """How far training went: loss, size of the weight change, weights that moved, how alike with wrong labels."""
        rows: list[list[Entry]] = []
        for choice in self.learners:
            place = {"init": self.first, "learner": choice.label}
            alike = {**place, "quantity": "weight change, right and wrong labels"}
            cosines = [
                np.nanmean(one.values) for task in tasks for one in self.comparison.arrays(task=task, **alike).values()
            ]
            part = short_of(self.comparison, tasks, alike).removeprefix(", ")
            shown: Entry = Number(float(np.mean(cosines)), note=part) if cosines else "n/a"
            sizes = [Size(size_of(self.comparison, choice.label, quantity), digits=3) for quantity in SIZES]
            rows.append([choice.label, *sizes, self._moved(place), shown])
        header = ["loss, last demonstrations", "‖ΔW‖", "weights moved", "cos ΔW, right and wrong labels"]
        return Table(["", *header], rows)

    def _moved(self, place: dict[str, str]) -> Entry:
        """The share of the trained weights that are not what they were; n/a of what is not trained step by step."""
        shares = [
            result.facts["moved"]
            for cell, result in self.comparison.study.found()
            if "moved" in result.facts and all(cell.labels.get(name) == value for name, value in place.items())
        ]
        return Number(float(np.mean(shares))) if shares else "n/a"


def _p(value: float) -> str:
    return "n/a" if value != value else "< .001" if value < 0.001 else plain(value)
