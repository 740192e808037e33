"""The slides' three panels: test loss against epochs for each kind of modified attention, task by task."""

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from matplotlib.figure import Figure
from torch import Tensor

from iclgd.labs.dual.small import ARMS, NORMAL, PANELS, Arm, Recipe, Source, curves
from iclgd.metrics.statistics import interval
from iclgd.report.figures import COLOURS, figure, save, styled
from iclgd.report.page import Section, write_page
from iclgd.report.terminal import table, with_interval

HEADER = ["", "", "test loss", "less normal, same seeds", "seeds better"]


@dataclass(frozen=True)
class Panels:
    """Curves by task and arm, and the loss of the best constant."""

    title: str
    curves: dict[str, dict[str, Float[Tensor, "epoch seed"]]]
    constant: dict[str, float]
    spec: dict[str, Any]
    command: str

    def rows(self, task: str) -> list[list[str]]:
        found = self.curves[task]
        base = found[NORMAL.name][-1]
        rows = []
        for arm in (NORMAL, *ARMS):
            last = found[arm.name][-1]
            row = [arm.panel, arm.name, with_interval(float(last.mean()), *interval(last))]
            less = last - base
            better = f"{int((less < 0).sum())} of {len(less)}"
            rows.append(row + ([with_interval(float(less.mean()), *interval(less)), better] if arm.panel else ["", ""]))
        return rows

    def text(self) -> str:
        parts = [self.title]
        for task in self.curves:
            parts.append(
                f"{task} · the best constant has {self.constant[task]:.3f}\n\n{table(HEADER, self.rows(task))}"
            )
        return "\n\n".join(parts)

    @styled
    def drawing(self) -> Figure:
        made, grid = figure(columns=len(PANELS), rows=len(self.curves), width=3.6, height=2.6)
        for row, (task, found) in enumerate(self.curves.items()):
            for column, panel in enumerate(PANELS):
                axes = grid[row, column]
                arms: list[Arm] = [NORMAL, *(arm for arm in ARMS if arm.panel == panel)]
                for arm, colour in zip(arms, ("#000000", *COLOURS), strict=False):
                    curve = found[arm.name].double()
                    bounds = torch.tensor([interval(epoch) for epoch in curve])
                    axes.plot(curve.mean(1), color=colour, label=arm.name, linewidth=1.3)
                    axes.fill_between(range(len(curve)), *bounds.T.numpy(), color=colour, alpha=0.15, linewidth=0)
                axes.set(title=f"{panel}, {task}", ylim=self._limits(task))
                axes.legend(fontsize=7)
                axes.set_ylabel("test loss" if column == 0 else "")
                axes.set_xlabel("epochs" if row == len(self.curves) - 1 else "")
        return made

    def _limits(self, task: str) -> tuple[float, float]:
        """The same for a task's three panels; what an arm does in its first epochs may leave it."""
        means = torch.stack([curve.mean(1) for curve in self.curves[task].values()])
        low, high = float(means.min()), max(float(means[:, min(5, means.shape[1] - 1) :].max()), self.constant[task])
        return low - 0.05 * (high - low), high + 0.05 * (high - low)

    def write(self, folder: Path) -> None:
        """record.json with every curve, the figure, index.html."""
        record = {
            "spec": self.spec,
            "constant": self.constant,
            "test_loss": {t: {name: c.T.tolist() for name, c in found.items()} for t, found in self.curves.items()},
            "axes": ["task", "arm", "seed", "epoch"],
        }
        (folder / "record.json").write_text(json.dumps(record, ensure_ascii=False) + "\n", encoding="utf-8")
        drawing = self.drawing()
        save(drawing, folder, "panels")
        sections = [Section("Test loss by epoch", "Means over seeds with 95% bootstrap intervals.", figure=drawing)]
        sections += [
            Section(task, f"The best constant has {self.constant[task]:.3f}.", HEADER, self.rows(task))
            for task in self.curves
        ]
        write_page(folder / "index.html", "Modified attention, trained", self.title, sections, self.command)


def train_panels(
    tasks: Mapping[str, Sequence[Source]],
    recipe: Recipe,
    spec: dict[str, Any],
    command: str,
    jobs: int = 1,
    done: Callable[[int], None] = lambda _: None,
) -> Panels:
    """Train every arm on every task, ``jobs`` at a time; a task has a source for every seed."""
    arms = (NORMAL, *ARMS)
    found: dict[str, dict[str, Tensor]] = {name: {} for name in tasks}
    work = [(name, arm) for name in tasks for arm in arms]
    given = [tasks[name] for name, _ in work], [arm for _, arm in work], [recipe] * len(work)
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) if jobs > 1 else nullcontext() as pool:
        for (name, arm), curve in zip(work, (pool.map if pool else map)(curves, *given), strict=True):
            found[name][arm.name] = curve
            done(1)
    constant = {}
    for name, sources in tasks.items():
        targets = torch.cat([source.held(seed, recipe.test).target for seed, source in enumerate(sources)])
        constant[name] = float(targets.var(correction=0))
    x = sources[0].held(0, 1).x
    title = (
        f"one softmax layer · {x.shape[-2]} demonstrations · {x.shape[-1]} inputs · "
        f"{len(sources)} seeds · {recipe.epochs} epochs"
    )
    return Panels(title, found, constant, spec, command)
