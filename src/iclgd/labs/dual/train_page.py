"""The page of `dual train`: test loss against epochs for each modified attention, task by task."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from iclgd.choices import Choice
from iclgd.labs.dual.estimates import direction, mean
from iclgd.labs.dual.modifications import PLAIN, beside_plain, family
from iclgd.labs.dual.spec import TrainSpec
from iclgd.report.curves import TOLD, Curve, curves
from iclgd.report.figures import COLOURS, figure, styled
from iclgd.report.numbers import Number, counted, number
from iclgd.report.page import Drawing, Entry, Page, Section, Table
from iclgd.report.widgets import Widget
from iclgd.study import Study

HEADER = ["attention", "test loss", "minus plain, same seeds", "seeds lower"]
BLACK = "#000000"
SETTLED = 5  # epochs after which an arm is expected to be on the scale of the others


class Losses:
    """Test losses [seed, epoch] by task and arm, and of what they are compared with [seed] by task and name."""

    def __init__(self, study: Study):
        assert isinstance(study.spec, TrainSpec)
        self.spec = study.spec
        self.arms = beside_plain(study.spec.arms)
        self.tasks = (*study.spec.tasks, *study.spec.languages)
        seeds = study.spec.seeds
        self.curves = {
            (task, arm.label): study.stack("seed", seeds, quantity="loss", task=task, arm=arm.label)
            for task in self.tasks
            for arm in self.arms
        }
        names = dict.fromkeys(str(one.labels["learner"]) for one in study.arrays(quantity="reference"))
        self.references = {
            (task, name): study.stack("seed", seeds, quantity="reference", task=task, learner=name)
            for task in self.tasks
            for name in names
        }

    def last(self, task: str, arm: Choice) -> np.ndarray:
        return self.curves[task, arm.label][:, -1]

    def less(self, task: str, arm: Choice) -> Number:
        """Minus plain on the same seeds; the intervals of all arms hold at once."""
        others = max(len(self.arms) - 1, 1)
        return mean(self.last(task, arm) - self.last(task, PLAIN), among=others)


def page(study: Study) -> Page:
    losses = Losses(study)
    spec = losses.spec
    subtitle = (
        f"one softmax layer · k = {spec.k} · {counted(spec.dx, 'input')} · {counted(len(spec.seeds), 'seed')} · "
        f"{counted(spec.epochs, 'epoch')} of {counted(spec.steps, 'step')}"
    )
    intervals = (
        "Student's t intervals over seeds, 95% for a loss and for all differences of a task at once."
        if len(spec.seeds) > 1
        else "1 seed: no interval over draws."
    )
    drawing = Drawing("panels", lambda: panels(losses))
    drawn = Section("Test loss by epoch", TOLD, figure=drawing, widget=by_epoch(losses))
    tables = [Section(task, intervals, table(losses, task), brief=True) for task in losses.tasks]
    return Page("Modified attention, trained", subtitle, answer(losses), [*tables, drawn])


def table(losses: Losses, task: str) -> Table:
    rows: list[list[Entry]] = []
    for arm in losses.arms:
        last = losses.last(task, arm)
        row: list[Entry] = [arm.label, mean(last, lowest=0.0)]
        lower = int((last < losses.last(task, PLAIN)).sum())
        rows.append(row + (["", ""] if arm == PLAIN else [losses.less(task, arm), f"{lower} of {len(last)}"]))
    rows += [[name, mean(values, lowest=0.0), "", ""] for (of, name), values in losses.references.items() if of == task]
    return Table(HEADER, rows)


def answer(losses: Losses) -> str:
    """Task by task, the arm that lowers the test loss most, if any is shown to."""
    if len(losses.arms) < 2:
        return "Nothing is compared: give `arms` beside plain."
    if len(losses.spec.seeds) < 2:
        return "With one seed no modification is shown to change the test loss: raise `seeds`."
    found: dict[str, list[str]] = {}
    for task in losses.tasks:
        found.setdefault(_best(losses, task), []).append(task)
    parts = [f"on {_listed(tasks)} {best}" for best, tasks in found.items()]
    return f"Beside plain attention, {'; '.join(parts)}."


def _listed(tasks: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(tasks[:-1]), tasks[-1]]))


def _best(losses: Losses, task: str) -> str:
    less = {arm.label: losses.less(task, arm) for arm in losses.arms if arm != PLAIN}
    lower = {name: one for name, one in less.items() if direction(one) < 0}
    if not lower:
        return "no modification is shown to lower the test loss"
    name = min(lower, key=lambda one: lower[one].value)
    off = -lower[name].value / float(losses.last(task, PLAIN).mean())
    return f"{len(lower)} of {len(less)} lower the test loss, {name} most ({number(lower[name].value)}, {off:.0%} off)"


def by_epoch(losses: Losses) -> Widget:
    """A panel a task; plain attention stands beside each family of modifications."""

    def made() -> list[Curve]:
        arms = {arm.label: "" if arm == PLAIN else family(arm) for arm in losses.arms}
        found = [Curve(task, arm, values, arms[arm]) for (task, arm), values in losses.curves.items()]
        return found + [Curve(task, name, values) for (task, name), values in losses.references.items()]

    epochs = next(iter(losses.curves.values())).shape[-1]
    about = "Test loss by epoch of plain and modified attention, a panel for each task."
    return curves(made, losses.spec.seeds, range(epochs), about, x="epoch", groups="modification")


@styled
def panels(losses: Losses) -> Figure:
    families: dict[str, list[Choice]] = {}
    for arm in losses.arms[1:]:
        families.setdefault(family(arm), []).append(arm)
    made, grid = figure(columns=max(len(families), 1), rows=len(losses.tasks), width=3.6, height=2.6)
    for row, task in enumerate(losses.tasks):
        for column, (name, arms) in enumerate((families or {"plain": []}).items()):
            axes = grid[row, column]
            _panel(axes, losses, task, [PLAIN, *arms])
            axes.set(title=f"{name}, {task}", ylim=_limits(losses, task))
            axes.set_ylabel("test loss" if column == 0 else "")
            axes.set_xlabel("epochs" if row == len(losses.tasks) - 1 else "")
    return made


def _panel(axes: Axes, losses: Losses, task: str, arms: Sequence[Choice]) -> None:
    colours = (BLACK, *(colour for colour in COLOURS if colour != BLACK))
    for i, arm in enumerate(arms):
        curve, colour = losses.curves[task, arm.label], colours[i % len(colours)]
        bounds = [mean(epoch, lowest=0.0) for epoch in curve.T]
        axes.plot(curve.mean(0), color=colour, label=arm.label, linewidth=1.3)
        low, high = [one.low for one in bounds], [one.high for one in bounds]
        axes.fill_between(range(len(bounds)), low, high, color=colour, alpha=0.15, linewidth=0)
    for (of, name), values in losses.references.items():
        if of == task:
            axes.axhline(float(values.mean()), color="0.5", linewidth=0.9, linestyle=":")
            axes.annotate(name, (0, float(values.mean())), fontsize=6, color="0.4", va="bottom")
    axes.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1, 1))  # each panel has its own arms, beside the data


def _limits(losses: Losses, task: str) -> tuple[float, float]:
    """The same for a task's panels; what an arm does in its first epochs may leave it."""
    means = np.stack([losses.curves[task, arm.label].mean(0) for arm in losses.arms])
    flat = [float(values.mean()) for (of, _), values in losses.references.items() if of == task]
    settled = means[:, min(SETTLED, means.shape[1] - 1) :]
    low, high = min(float(means.min()), *flat), max(float(settled.max()), *flat)
    return low - 0.05 * (high - low), high + 0.05 * (high - low)
