"""The figures of a comparison: likeness by layer, α by task, gradient norms, likeness against learning rate."""

from collections.abc import Callable
from functools import partial
from itertools import cycle
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from iclgd.labs.compare.spoken import spoken_of
from iclgd.labs.compare.sweeps import colours_of, draw_rates, draw_sizes, swept_answers, swept_metrics
from iclgd.labs.compare.view import Comparison, title_of
from iclgd.metrics.compared import Metric
from iclgd.metrics.estimates import Estimate
from iclgd.report.figures import COLOURS, ROW, STYLE_OF_INIT, band, figure, legend, panels, styled

NULL_STYLES = ((0, (1, 1.5)), (0, (4, 2)), (0, (3, 1, 1, 1)), (0, (6, 2)))


def drawings(comparison: Comparison) -> dict[str, Callable[[], Figure]]:
    """Every figure that the study has data for, by name."""
    found: dict[str, Callable[[], Figure]] = {}
    if layered(comparison):
        found |= {f"layers-{where}": partial(draw_layers, comparison, where) for where in ("prompt", "label")}
    if comparison.spec.pairs:
        found["alpha"] = partial(draw_alpha, comparison)
    if gradient_norms(comparison):  # none of learners that diverged, each of them somewhere
        found["gradients"] = partial(draw_gradients, comparison)
    if len(comparison.spec.rates) > 1:
        if swept_metrics(comparison) or swept_answers(comparison):
            found["rates"] = partial(draw_rates, comparison)
        if swept_metrics(comparison):
            found["sizes"] = partial(draw_sizes, comparison)
    return found


def layered(comparison: Comparison) -> dict[str, str]:
    """The metrics that have a panel, with their titles: by layer, and of updates rather than of whole maps."""
    made = {choice.label: choice.make() for choice in comparison.spec.metrics}
    return {name: metric.title for name, metric in made.items() if _drawn(metric)}


def _drawn(metric: Metric) -> bool:
    return metric.by == "layer" and metric.of == "update" and not metric.contrast


def drawn_nulls(comparison: Comparison) -> list[str]:
    """The nulls that were run and have a line in the figures."""
    known = comparison.known("null")
    return [choice.label for choice in comparison.spec.nulls if choice.make().drawn and choice.label in known]


@styled
def draw_layers(comparison: Comparison, position: str) -> Figure:
    """Likeness by layer for each learner, all tasks and seeds, with intervals and nulls (Deutch 2023, Figure 3)."""
    spec, names = comparison.spec, layered(comparison)
    made, axes = panels(len(names), width=3.6, height=2.9)
    nulls, colours = drawn_nulls(comparison), colours_of(comparison)
    for panel, metric in zip(axes, names, strict=True):
        for choice in spoken_of(comparison):
            colour = colours[choice.at_any_rate]
            labels = {"learner": choice.label, "metric": metric}
            for init in spec.init:
                found = comparison.by_layer(spec.task, position, init=init, **labels)
                if init == spec.init[0]:
                    _line(panel, found, colour, choice.label)
                else:
                    style: Any = {
                        "linestyle": STYLE_OF_INIT[init],
                        "alpha": 0.7,
                        "label": f"{choice.label}, {init} weights",
                    }
                    panel.plot(range(len(found)), [e.mean for e in found], color=colour, **style)
            for null, style_ in zip(nulls, cycle(NULL_STYLES), strict=False):
                found = comparison.by_layer(spec.task, position, init=spec.init[0], null=null, **labels)
                kind: Any = {"linestyle": style_, "linewidth": 0.9, "label": f"{choice.at_any_rate}: {title_of(null)}"}
                panel.plot(range(len(found)), [e.mean for e in found], color=colour, **kind)
        panel.axhline(0, color="#999999", linewidth=0.6)
        panel.set(title=names[metric], xlabel="layer")
        panel.xaxis.set_major_locator(MaxNLocator(integer=True))
    for first in axes[::ROW]:
        first.set_ylabel("cosine with the update of reading")
    legend(made, axes)
    return made


def _line(panel: Axes, found: list[Estimate], colour: str, label: str) -> None:
    band(panel, list(range(len(found))), *_columns(found), colour, label)


def _columns(found: list[Estimate]) -> tuple[list[float], list[float], list[float]]:
    return [e.mean for e in found], [e.low for e in found], [e.high for e in found]


@styled
def draw_alpha(comparison: Comparison) -> Figure:
    """α by task: how alike two finetuned learners' changes of attention are (Deutch 2023, Figure 2)."""
    spec = comparison.spec
    made, axes = figure(width=max(3.6, 1.2 + 0.7 * len(spec.task)), height=3.0)
    panel = axes[0, 0]
    for i, (a, b) in enumerate(spec.pairs):
        labels = {"init": spec.init[0], "learner": a.label, "versus": b.label, "metric": "alpha"}
        found = [comparison.estimate([task], "label", **labels) for task in spec.task]
        x = np.arange(len(found)) + 0.12 * (i - (len(spec.pairs) - 1) / 2)
        middle = np.array([e.mean for e in found])
        spread = np.abs(np.array([[e.mean - e.low, e.high - e.mean] for e in found]).T)
        name = f"{a.label} ~ {b.label}"
        panel.errorbar(x, middle, spread, fmt="o", color=COLOURS[i % len(COLOURS)], capsize=3, label=name)
    panel.set_xticks(range(len(spec.task)), list(spec.task_titles.values()))
    panel.axhline(0, color="#999999", linewidth=0.6)
    panel.set(ylabel="α", title="Likeness of two finetuned learners")
    panel.margins(x=0.15)
    made.legend(*panel.get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False, fontsize=8)
    return made


def gradient_norms(comparison: Comparison) -> dict[str, np.ndarray]:
    """[layer, demonstration] of every learner that the answer speaks of, on the first task and seed."""
    spec = comparison.spec
    init, task, seed = spec.init[0], spec.task[0], spec.seeds[0]
    found = {
        choice.label: comparison.arrays(init=init, task=task, learner=choice.label, quantity="gradient norm")
        for choice in spoken_of(comparison)
    }
    title = spec.task_titles[task]
    return {f"{label} on {title}": arrays[seed].values for label, arrays in found.items() if seed in arrays}


@styled
def draw_gradients(comparison: Comparison) -> Figure:
    """Gradient norm by layer and demonstration, one panel a learner (Deutch 2023, Figure 4), first task and seed."""
    shown = gradient_norms(comparison)
    made, axes = figure(columns=len(shown), width=3.8, height=3.2)
    for panel, (label, norms) in zip(axes[0], shown.items(), strict=True):
        positive = norms[np.isfinite(norms) & (norms > 0)]
        if positive.size:
            image = panel.imshow(
                np.where(norms > 0, norms, np.nan),
                norm=LogNorm(positive.min(), max(positive.max(), positive.min() * 1.001)),
                aspect="auto",
                origin="lower",
                cmap="viridis",
                interpolation="nearest",
            )
            made.colorbar(image, ax=panel, label="‖gradient‖")
        panel.set(title=label, xlabel="demonstration", ylabel="layer")
        panel.xaxis.set_major_locator(MaxNLocator(integer=True))
        panel.yaxis.set_major_locator(MaxNLocator(integer=True))
    return made
