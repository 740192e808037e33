"""A comparison as tables: one task with its nulls and baselines, the papers' tables for several."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from iclgd.choices import Choice
from iclgd.labs.compare.absent import marked, short_of
from iclgd.labs.compare.family import nulls
from iclgd.labs.compare.spoken import spoken_of
from iclgd.labs.compare.view import Comparison, Labels, number
from iclgd.metrics.compared import Metric
from iclgd.metrics.differences import Difference
from iclgd.metrics.estimates import Estimate
from iclgd.report.numbers import Number
from iclgd.report.numbers import number as plain
from iclgd.report.page import Entry, Table

ENOUGH_DRAWS = 5


@dataclass(frozen=True)
class Tables:
    """A comparison as rows, at one position."""

    comparison: Comparison
    position: str

    @property
    def learners(self) -> tuple[Choice, ...]:
        return self.comparison.spec.trained

    @property
    def first(self) -> str:
        return self.comparison.spec.init[0]

    def metrics(self, by: str) -> dict[str, Metric]:
        return {name: m for name, m in self.comparison.metrics.items() if m.by == by and not m.contrast}

    @property
    def likeness(self) -> dict[str, Metric]:
        """The metrics by layer that nulls and baselines have, too."""
        return {name: metric for name, metric in self.metrics("layer").items() if metric.of != "training"}

    @property
    def accuracies(self) -> dict[str, Metric]:
        return {name: metric for name, metric in self.metrics("query").items() if metric.alone}

    @property
    def likeness_of_answers(self) -> dict[str, Metric]:
        """The metrics by query that ask how near answers are to reading's."""
        return {name: metric for name, metric in self.metrics("query").items() if not metric.alone}

    @property
    def nulls(self) -> dict[str, str]:
        """Of every null that was run, its label and its title."""
        return nulls(self.comparison)

    def kinds(self) -> dict[str, list[Choice]]:
        """The learners, each at all of its rates."""
        return {c.at_any_rate: [o for o in self.learners if o.at_any_rate == c.at_any_rate] for c in self.learners}

    # one task

    def one_task(self, task: str) -> Table:
        """Learners, nulls (of one rate of each), untrained baselines and the noise floor, with intervals."""
        header = ["", *(m.title for m in self._shown.values())]
        rows: list[list[Entry]] = [self._prompted_row(task, name, self.first) for name in ("zero-shot", "icl")]
        rows += [self._learner_row(self.first, task, choice.label) for choice in self.learners]
        rows += [self._best_row(task, kind, chosen) for kind, chosen in self.kinds().items() if len(chosen) > 1]
        rows.append(_rule("nulls", len(header)))
        spoken = [choice.label for choice in spoken_of(self.comparison)]
        for name in spoken:
            for null, title in self.nulls.items():
                rows += self._extra_row(task, name, f"{name}: {title}", null=null)
        for init in self.comparison.spec.init[1:]:
            rows.append(_rule(f"untrained ({init})", len(header)))
            rows += [self._prompted_row(task, name, init) for name in ("zero-shot", "icl")]
            rows += [self._learner_row(init, task, choice.label) for choice in self.learners]
        if floors := self.comparison.known("floor"):
            rows.append(_rule("noise floor", len(header)))
            for name in ("icl", *spoken):
                for floor in floors:
                    rows += self._extra_row(task, name, f"{name}: computed again, {floor}", floor=floor)
        return Table(header, rows)

    @property
    def _shown(self) -> dict[str, Metric]:
        first = {name: m for name, m in self.accuracies.items() if not m.aside}
        return {**first, **self.likeness}

    def _cell(self, init: str, task: str, learner: str, name: str, **more: str) -> Entry:
        found = self.comparison.estimate([task], self.position, init=init, learner=learner, metric=name, **more)
        return number(found, 2 if name in self.accuracies else 3) if found.mean == found.mean else "n/a"

    def _prompted_row(self, task: str, learner: str, init: str) -> list[Entry]:
        cells = [self._cell(init, task, learner, name) for name in self._shown]
        return [learner, *("" if cell == "n/a" else cell for cell in cells)]

    def _learner_row(self, init: str, task: str, learner: str) -> list[Entry]:
        if lost := self.comparison.diverged(init, task, learner):
            of = len(self.comparison.spec.seeds)
            return [learner, f"diverged in {lost} of {of} seeds", *[""] * (len(self._shown) - 1)]
        return [learner, *(self._cell(init, task, learner, name) for name in self._shown)]

    def _best_row(self, task: str, kind: str, chosen: Sequence[Choice]) -> list[Entry]:
        """The largest value in each column, chosen after the fact: the most favourable reading, and it says so."""
        kept = [c.label for c in chosen if not self.comparison.diverged(self.first, task, c.label)]
        best: list[Entry] = []
        for name in self._shown:
            labels = {"init": self.first, "metric": name}
            means = (self.comparison.estimate([task], self.position, learner=one, **labels).mean for one in kept)
            best.append(Number(_largest(means), digits=2 if name in self.accuracies else 3))
        return [f"{kind}, best of {len(chosen)}, column by column", *best]

    def _extra_row(self, task: str, learner: str, title: str, **what: str) -> list[list[Entry]]:
        found = [
            self.comparison.estimate([task], self.position, init=self.first, learner=learner, metric=name, **what)
            if name in self.likeness
            else None
            for name in self._shown
        ]
        if not any(e is not None and e.mean == e.mean for e in found):
            return []
        if "null" in what:  # a noise floor is of the first draw
            title += marked(
                self.comparison, [task], list(self.likeness), {"init": self.first, "learner": learner, **what}
            )
        return [[title, *("" if e is None else number(e) if e.mean == e.mean else "n/a" for e in found)]]

    def predictions(self, task: str) -> Table:
        """What is predicted: agreement, divergence, recall of finetuning's corrections, Kendall's τ."""
        rest = {name: m for name, m in self.metrics("query").items() if name not in self._shown}
        trained = {name: m for name, m in self.metrics("layer").items() if m.of == "training"}
        recall = ["Rec2FTP", "its base rate", "above it by"]
        header = ["", *(m.title for m in rest.values()), *recall, *(m.title for m in trained.values())]
        rows: list[list[Entry]] = []
        for init in self.comparison.spec.init:
            for name in ("zero-shot", "icl", *(choice.label for choice in self.learners)):
                part = marked(self.comparison, [task], list(rest), {"init": init, "learner": name})
                row: list[Entry] = [f"{name}{part}" if init == self.first else f"{name}, {init}{part}"]
                for metric in rest:
                    found = self.comparison.estimate([task], None, init=init, learner=name, metric=metric)
                    row.append(number(found, 2) if found.mean == found.mean else "")
                recalled = ["", "", ""] if name in ("zero-shot", "icl") else self._recall(init, task, name)
                last = ["" if name in ("zero-shot", "icl") else self._cell(init, task, name, one) for one in trained]
                rows.append([*row, *recalled, *last])
        return Table(header, rows)

    def _recall(self, init: str, task: str, name: str) -> list[Entry]:
        (both, fixed, base_both, wrong), above = self.comparison.recall(init, [task], name)
        return [_share(both, fixed), _share(base_both, wrong), _above_base(above)]

    # several tasks

    def by_task(self, metric: str) -> Table:
        """A number for every learner and initialisation, a column for each task (the papers' Tables 1 and 2)."""
        tasks, alone = self.comparison.spec.task, metric in self.accuracies
        rows: list[list[Entry]] = []
        for init in self.comparison.spec.init:
            for learner in (("zero-shot", "icl") if alone else ()) + tuple(c.label for c in self.learners):
                labels = {"init": init, "learner": learner, "metric": metric}
                found = [self.comparison.estimate([task], self.position, **labels) for task in tasks]
                lost = [self.comparison.diverged(init, task, learner) for task in tasks]
                cells = [f"{gone} diverged" if gone else _spread(e) for e, gone in zip(found, lost, strict=True)]
                # a mean over other draws than the next row's would mislead
                mean = "n/a" if any(lost) else self._over(tasks, labels)
                part = "" if any(lost) else short_of(self.comparison, tasks, labels)
                rows.append([f"{learner}{'' if init == 'trained' else f', {init}'}{part}", *cells, mean])
        return Table(["", *self.comparison.spec.task_titles.values(), "mean"], rows)

    def nulls_by_task(self, metric: str, learners: Sequence[str]) -> Table:
        """A likeness, and what it is when there is nothing to find and when there is nothing else."""
        tasks = self.comparison.spec.task
        extras: list[tuple[str, dict[str, str]]] = [("on the demonstrations themselves", {})]
        extras += [(title, {"null": null}) for null, title in self.nulls.items()]
        extras += [(f"computed again, {floor}", {"floor": floor}) for floor in self.comparison.known("floor")]
        rows: list[list[Entry]] = []
        for learner in learners:
            for title, what in extras:
                labels = {"init": self.first, "learner": learner, "metric": metric, **what}
                found = [self.comparison.estimate([task], self.position, **labels) for task in tasks]
                if any(e.mean == e.mean for e in found):
                    part = "" if "floor" in what else short_of(self.comparison, tasks, labels)
                    cells = [*(number(e) for e in found), self._over(tasks, labels)]
                    rows.append([f"{learner}: {title}{part}", *cells])
        return Table(["", *self.comparison.spec.task_titles.values(), "mean"], rows)

    def _over(self, tasks: Sequence[str], labels: Labels, digits: int = 3, nothing: str = "n/a") -> Entry:
        """The mean over tasks with its interval."""
        found = self.comparison.estimate(tasks, self.position, **labels)
        return number(found, digits) if found.mean == found.mean else nothing


def _spread(estimate: Estimate) -> Entry:
    """`.149 ± .021`: mean and standard deviation over seeds, as the papers print it."""
    if estimate.seed_std != estimate.seed_std:
        return Number(estimate.mean)
    return Number(estimate.mean, note=f"± {plain(estimate.seed_std)}")


def _share(part: int, whole: int) -> str:
    return f"{plain(part / whole, 2)} ({part}/{whole})" if whole else "n/a (0/0)"


def _largest(values: Iterable[float]) -> float:
    """The largest of what is known; nan where nothing is."""
    return max((value for value in values if value == value), default=float("nan"))


def _rule(title: str, width: int) -> list[Entry]:
    return [f"─ {title}", *[""] * (width - 1)]


def _above_base(found: Difference) -> Number:
    """With its interval from five draws on; with fewer it covers too little."""
    return number(found.estimate, 2) if found.estimate.seeds >= ENOUGH_DRAWS else Number(found.estimate.mean, digits=2)
