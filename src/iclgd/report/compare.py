"""What `iclgd compare` shows: a table for one task, the papers' tables for several, and the page with both."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from iclgd.report.comparison import (
    FLOORS,
    NULLS,
    Comparison,
    Estimate,
    agrees_with_icl,
    batch_accuracy,
    contextual_accuracy,
    kl_from_icl,
    raw_accuracy,
)
from iclgd.report.terminal import number, table, with_interval
from iclgd.run import METRICS
from iclgd.spec import Init, LearnerSpec

Table = tuple[list[str], list[list[str]]]
NULL_NAMES = {
    "random": "random directions",
    "uniform": "uniform [0,1), as the papers' code",
    "other query": "another query's update",
    "shuffled labels": "trained on shuffled labels",
    "other task": "trained on another task",
}
WHERE = {"prompt": "at the prompt's last token", "label": "at the class-0 label word after the prompt"}


@dataclass(frozen=True)
class Tables:
    """A comparison as rows of text, at one position."""

    comparison: Comparison
    position: str

    @property
    def learners(self) -> Sequence[LearnerSpec]:
        return self.comparison.study.learners

    @property
    def first(self) -> Init:
        return self.comparison.study.inits[0]

    def kinds(self) -> dict[str, list[LearnerSpec]]:
        """The learners of each kind, one for each rate."""
        return {spec.kind: [other for other in self.learners if other.kind == spec.kind] for spec in self.learners}

    # one task

    def one_task(self, task: str) -> Table:
        """Learners, nulls (of each kind's last rate), untrained baselines and the noise floor, with intervals."""
        header = ["", "accuracy", "calibrated", *METRICS]
        rows = [self._prompted_row(task, "zero-shot"), self._prompted_row(task, "icl")]
        rows += [self._learner_row(self.first, task, spec) for spec in self.learners]
        rows += [self._best_row(task, kind, specs) for kind, specs in self.kinds().items() if len(specs) > 1]
        rows.append(_rule("nulls", len(header)))
        for kind, specs in self.kinds().items():
            rows += self._extra_rows(task, specs[-1].name, kind, {null: NULL_NAMES[null] for null in NULLS})
        for init in self.comparison.study.inits[1:]:
            rows.append(_rule(f"untrained ({init})", len(header)))
            rows += [self._prompted_row(task, name, init) for name in ("zero-shot", "icl")]
            rows += [self._learner_row(init, task, spec) for spec in self.learners]
        rows.append(_rule("noise floor", len(header)))
        for name in ("icl", *(specs[-1].name for specs in self.kinds().values())):
            rows += self._extra_rows(
                task, name, name.split(" ")[0], {floor: f"computed again, {floor}" for floor in FLOORS}
            )
        return header, rows

    def _prompted_row(self, task: str, name: str, init: Init | None = None) -> list[str]:
        cells = self._accuracies(init or self.first, task, name)
        before = self.comparison.likeness(init or self.first, [task], "icl/SimAM|before", self.position)
        likeness = ["", "", _interval(before), ""] if name == "zero-shot" else [""] * 4
        return [name, *cells, *likeness]

    def _learner_row(self, init: Init, task: str, spec: LearnerSpec) -> list[str]:
        if lost := self.comparison.diverged(init, task, spec.name):
            of = len(self.comparison.study.seeds)
            return [spec.name, f"diverged in {lost} of {of} seeds", *[""] * (len(METRICS) + 1)]
        found = [self.comparison.likeness(init, [task], f"{spec.name}/{metric}", self.position) for metric in METRICS]
        return [spec.name, *self._accuracies(init, task, spec.name), *map(_interval, found)]

    def _accuracies(self, init: Init, task: str, name: str) -> list[str]:
        measures = (raw_accuracy, batch_accuracy)
        return [_interval(self.comparison.predictions(init, task, name, measure), 2) for measure in measures]

    def _best_row(self, task: str, kind: str, specs: Sequence[LearnerSpec]) -> list[str]:
        """The largest value in each column, chosen after the fact: the most favourable reading, and it says so."""
        kept = [spec for spec in specs if not self.comparison.diverged(self.first, task, spec.name)]
        best = [""] * (len(METRICS) + 2)
        if kept:
            accuracies = [
                _largest(self.comparison.predictions(self.first, task, spec.name, measure).mean for spec in kept)
                for measure in (raw_accuracy, batch_accuracy)
            ]
            likeness = [
                _largest(
                    self.comparison.likeness(self.first, [task], f"{spec.name}/{m}", self.position).mean
                    for spec in kept
                )
                for m in METRICS
            ]
            best = [*(number(value, 2) for value in accuracies), *(number(value) for value in likeness)]
        return [f"{kind}, best of {len(specs)} rates, column by column", *best]

    def _extra_rows(self, task: str, name: str, kind: str, what: dict[str, str]) -> list[list[str]]:
        rows = []
        for key, label in what.items():
            found = [
                self.comparison.likeness(self.first, [task], f"{name}/{metric}|{key}", self.position)
                for metric in METRICS
            ]
            if any(e.mean == e.mean for e in found):
                rows.append([f"{kind}: {label}", "", "", *map(_interval, found)])
        return rows

    def predictions(self, task: str) -> Table:
        """What is predicted: calibrations, agreement, divergence, recall of finetuning's corrections, Kendall's τ."""
        header = [
            "",
            "contextually calibrated",
            "agrees with icl",
            "KL(icl ‖ it)",
            "Rec2FTP",
            "its base rate",
            "Kendall's τ",
        ]
        rows = []
        for init in self.comparison.study.inits:
            for name in ("zero-shot", "icl", *(spec.name for spec in self.learners)):
                row = [name if init == self.first else f"{name}, {init}"]
                row.append(_interval(self.comparison.predictions(init, task, name, contextual_accuracy), 2))
                row += [
                    "" if name == "icl" else _interval(self.comparison.predictions(init, task, name, measure), 2)
                    for measure in (agrees_with_icl, kl_from_icl)
                ]
                rows.append(row + (["", "", ""] if name in ("zero-shot", "icl") else self._recall(init, task, name)))
        return header, rows

    def _recall(self, init: Init, task: str, name: str) -> list[str]:
        both, fixed, base_both, wrong = self.comparison.recall(init, task, name)
        tau = self.comparison.likeness(init, [task], f"{name}/τ", self.position)
        return [_share(both, fixed), _share(base_both, wrong), _interval(tau)]

    # two learners at one rate

    def pairs(self, tasks: Sequence[str]) -> Table:
        """α, and the paired difference in every likeness with its p-value."""
        header = ["", "α", *METRICS]
        rows = []
        for i, a in enumerate(self.learners):
            for b in self.learners[i + 1 :]:
                if a.rate == b.rate and a.kind != b.kind:
                    alpha = self.comparison.likeness(self.first, tasks, f"{a.name} ~ {b.name}/α", self.position)
                    rows.append(
                        [f"{b.kind} − {a.kind} at {a.rate:g}", _interval(alpha), *self._differences(tasks, b, a)]
                    )
        return header, rows

    def _differences(self, tasks: Sequence[str], a: LearnerSpec, b: LearnerSpec) -> list[str]:
        cells = []
        for metric in METRICS:
            found = self.comparison.paired(self.first, tasks, f"{a.name}/{metric}", f"{b.name}/{metric}", self.position)
            if found.difference == found.difference:
                sign = "+" if found.difference >= 0 else ""
                p = "p < .001" if found.p_value < 0.001 else f"p = {number(found.p_value)}"
                cells.append(f"{sign}{number(found.difference)} ({p}; {found.layers} of {found.of} layers)")
            else:
                cells.append("n/a")
        return cells

    # several tasks

    def by_task(self, metric: str) -> Table:
        """A likeness for every learner and initialisation, a column for each task (the papers' Tables 1 and 2)."""
        tasks = self.comparison.study.tasks
        rows = []
        for init in self.comparison.study.inits:
            for spec in self.learners:
                name = spec.name if init == "trained" else f"{spec.name}, {init}"
                found = [
                    self.comparison.likeness(init, [task], f"{spec.name}/{metric}", self.position) for task in tasks
                ]
                lost = [self.comparison.diverged(init, task, spec.name) for task in tasks]
                cells = [f"{gone} diverged" if gone else _spread(e) for e, gone in zip(found, lost, strict=True)]
                known = [e.mean for e in found if e.mean == e.mean]
                whole = known and not any(lost)  # a mean over other tasks than the next row's would mislead
                rows.append([name, *cells, number(sum(known) / len(known)) if whole else "n/a"])
        return [metric, *tasks, "mean"], rows

    def nulls_by_task(self, metric: str, specs: Sequence[LearnerSpec]) -> Table:
        """A likeness, and what it is when there is nothing to find and when there is nothing else; the first seed."""
        tasks, first = self.comparison.study.tasks, self.comparison.first_seed()
        extras = {f"|{null}": name for null, name in NULL_NAMES.items()}
        extras |= {f"|{floor}": f"computed again, {floor}" for floor in FLOORS}
        rows = []
        for spec in specs:
            for what, label in {"": "on the demonstrations themselves", **extras}.items():
                name = f"{spec.name}/{metric}{what}"
                found = [first.likeness(self.first, [task], name, self.position).mean for task in tasks]
                known = [value for value in found if value == value]
                if known:
                    mean = number(sum(known) / len(known))
                    rows.append([f"{spec.name}: {label}", *(number(value) for value in found), mean])
        return [f"{metric}, nulls and noise floor, first seed", *tasks, "mean"], rows

    def accuracy_by_task(self) -> Table:
        tasks = self.comparison.study.tasks
        rows = []
        for init in self.comparison.study.inits:
            for name in ("zero-shot", "icl", *(spec.name for spec in self.learners)):
                found = [self.comparison.predictions(init, task, name, raw_accuracy) for task in tasks]
                calibrated = [self.comparison.predictions(init, task, name, batch_accuracy) for task in tasks]
                label = name if init == "trained" else f"{name}, {init}"
                cells = [f"{number(a.mean, 2)} / {number(c.mean, 2)}" for a, c in zip(found, calibrated, strict=True)]
                lost = [self.comparison.diverged(init, task, name) for task in tasks]
                rows.append(
                    [label, *(f"{gone} diverged" if gone else cell for gone, cell in zip(lost, cells, strict=True))]
                )
        return ["accuracy, raw / calibrated", *tasks], rows

    def text(self) -> str:
        """What the terminal shows."""
        tasks = self.comparison.study.tasks
        if len(tasks) == 1:
            parts = [table(*self.one_task(tasks[0])), table(*self.predictions(tasks[0]))]
        else:
            last = [specs[-1] for specs in self.kinds().values()]
            parts = [table(*self.accuracy_by_task())]
            for metric in METRICS:
                parts += [table(*self.by_task(metric)), table(*self.nulls_by_task(metric, last))]
        pairs = self.pairs(tasks)
        return "\n\n".join([*parts, *([table(*pairs)] if pairs[1] else [])])


def _interval(estimate: Estimate, digits: int = 3) -> str:
    return with_interval(estimate.mean, estimate.low, estimate.high, digits)


def _spread(estimate: Estimate) -> str:
    """`.149 ± .021`: mean and standard deviation over seeds, as the papers print it."""
    if estimate.seed_std != estimate.seed_std:
        return number(estimate.mean)
    return f"{number(estimate.mean)} ± {number(estimate.seed_std)}"


def _share(part: int, whole: int) -> str:
    return f"{number(part / whole, 2)} ({part}/{whole})" if whole else "n/a (0/0)"


def _largest(values: Iterable[float]) -> float:
    """The largest of what is known; nan where nothing is."""
    return max((value for value in values if value == value), default=float("nan"))


def _rule(title: str, width: int) -> list[str]:
    return [f"─ {title}", *[""] * (width - 1)]
