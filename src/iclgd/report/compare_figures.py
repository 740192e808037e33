"""The figures of a comparison: likeness by layer, α by task, gradient norms, likeness against learning rate."""

from collections.abc import Iterator

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from iclgd.report.comparison import Comparison, Estimate, batch_accuracy, raw_accuracy
from iclgd.report.figures import COLOURS, STYLE_OF_INIT, band, figure, styled
from iclgd.spec import LearnerSpec

PANELS = ("SimAOU", "SimAOU_norm", "SimAM_Δ")
NULL_LINES = {"other query": ("another query's update", (0, (1, 1.5))), "random": ("random directions", (0, (4, 2)))}


def draw_all(comparison: Comparison) -> Iterator[tuple[str, Figure]]:
    """Every figure that the study has data for, by name."""
    for position in ("prompt", "label"):
        yield f"layers-{position}", draw_layers(comparison, position)
    if any("~" in name for name in _names(comparison)):
        yield "alpha", draw_alpha(comparison)
    yield "gradients", draw_gradients(comparison)
    if len({spec.rate for spec in comparison.study.learners}) > 1:
        yield "rates", draw_rates(comparison)


def _names(comparison: Comparison) -> set[str]:
    return {name for result in comparison.results.values() for name in result.arrays}


def _one_of_each_kind(comparison: Comparison) -> list[LearnerSpec]:
    return list({spec.kind: spec for spec in reversed(comparison.study.learners)}.values())[::-1]


@styled
def draw_layers(comparison: Comparison, position: str) -> Figure:
    """Likeness by layer for each learner, all tasks and seeds, with intervals and nulls (Deutch 2023, Figure 3)."""
    study = comparison.study
    made, axes = figure(columns=len(PANELS), width=4.0, height=3.2)
    for panel, metric in zip(axes[0], PANELS, strict=True):
        for colour, spec in zip(COLOURS, _one_of_each_kind(comparison), strict=False):
            for init in study.inits:
                found = comparison.by_layer(init, study.tasks, f"{spec.name}/{metric}", position)
                if init == "trained":
                    _line(panel, found, colour, spec.name)
                else:
                    x, y = range(len(found)), [e.mean for e in found]
                    panel.plot(
                        x, y, color=colour, linestyle=STYLE_OF_INIT[init], alpha=0.7, label=f"{spec.name}, {init}"
                    )
            for null, (label, style) in NULL_LINES.items():
                found = comparison.by_layer(study.inits[0], study.tasks, f"{spec.name}/{metric}|{null}", position)
                x = range(len(found))
                panel.plot(
                    x,
                    [e.mean for e in found],
                    color=colour,
                    linestyle=style,
                    linewidth=0.9,
                    label=f"{spec.kind}: {label}",
                )
        panel.axhline(0, color="#999999", linewidth=0.6)
        panel.set(title=metric, xlabel="layer")
        panel.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes[0, 0].set_ylabel("cosine with the update of reading")
    made.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False, fontsize=8)
    return made


def _line(panel: Axes, found: list[Estimate], colour: str, label: str) -> None:
    x = list(range(len(found)))
    band(panel, x, [e.mean for e in found], [e.low for e in found], [e.high for e in found], colour, label)


@styled
def draw_alpha(comparison: Comparison) -> Figure:
    """α by task: how alike two finetuned learners' changes of attention are (Deutch 2023, Figure 2)."""
    study = comparison.study
    made, axes = figure(width=max(3.6, 1.2 + 0.7 * len(study.tasks)), height=3.0)
    panel = axes[0, 0]
    pairs = sorted({name.removesuffix("/α") for name in _names(comparison) if name.endswith("/α")})
    for i, pair in enumerate(pairs):
        found = [comparison.likeness(study.inits[0], [task], f"{pair}/α", "label") for task in study.tasks]
        x = np.arange(len(found)) + 0.12 * (i - (len(pairs) - 1) / 2)
        middle = np.array([e.mean for e in found])
        spread = np.abs(np.array([[e.mean - e.low, e.high - e.mean] for e in found]).T)
        panel.errorbar(x, middle, spread, fmt="o", color=COLOURS[i % len(COLOURS)], capsize=3, label=pair)
    panel.set_xticks(range(len(study.tasks)), study.tasks)
    panel.axhline(0, color="#999999", linewidth=0.6)
    panel.set(ylabel="α", title="Likeness of two finetuned learners")
    panel.margins(x=0.15)
    panel.legend(fontsize=8)
    return made


@styled
def draw_gradients(comparison: Comparison) -> Figure:
    """Gradient norm by layer and demonstration, one panel a learner (Deutch 2023, Figure 4), first task and seed."""
    specs = _one_of_each_kind(comparison)
    init, task = comparison.study.inits[0], comparison.study.tasks[0]
    made, axes = figure(columns=len(specs), width=3.8, height=3.2)
    for panel, spec in zip(axes[0], specs, strict=True):
        norms = comparison.arrays(init, task, f"{spec.name}/gradients")[0].numpy()
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
        panel.set(title=f"{spec.name} on {task}", xlabel="demonstration", ylabel="layer")
        panel.xaxis.set_major_locator(MaxNLocator(integer=True))
        panel.yaxis.set_major_locator(MaxNLocator(integer=True))
    return made


@styled
def draw_rates(comparison: Comparison) -> Figure:
    """Likeness and accuracy against step size, because the published similarities track step size."""
    study = comparison.study
    made, axes = figure(columns=3, width=3.9, height=3.1)
    kinds = [spec.kind for spec in _one_of_each_kind(comparison)]
    for colour, kind in zip(COLOURS, kinds, strict=False):
        specs = sorted((spec for spec in study.learners if spec.kind == kind), key=lambda spec: spec.rate)
        kept = [s for s in specs if not any(comparison.diverged(study.inits[0], task, s.name) for task in study.tasks)]
        rates = [spec.rate for spec in kept]
        for panel, metric in zip(axes[0], ("SimAOU", "SimAM_Δ"), strict=False):
            found = [comparison.likeness(study.inits[0], study.tasks, f"{s.name}/{metric}", "prompt") for s in kept]
            band(panel, rates, [e.mean for e in found], [e.low for e in found], [e.high for e in found], colour, kind)
            null = [
                comparison.likeness(study.inits[0], study.tasks, f"{s.name}/{metric}|other query", "prompt")
                for s in kept
            ]
            panel.plot(
                rates,
                [e.mean for e in null],
                color=colour,
                linestyle=(0, (1, 1.5)),
                linewidth=0.9,
                label=f"{kind}: another query's update",
            )
        for measure, style, label in ((raw_accuracy, "-", "raw"), (batch_accuracy, "--", "calibrated")):
            means = [
                float(
                    np.mean(
                        [comparison.predictions(study.inits[0], task, s.name, measure).mean for task in study.tasks]
                    )
                )
                for s in kept
            ]
            axes[0, 2].plot(
                rates, means, color=colour, linestyle=style, marker="o", markersize=2.5, label=f"{kind}, {label}"
            )
    for name, style in (("zero-shot", ":"), ("icl", "-.")):
        mean = np.mean([comparison.predictions(study.inits[0], task, name, raw_accuracy).mean for task in study.tasks])
        axes[0, 2].axhline(mean, color="#555555", linestyle=style, linewidth=0.9, label=name)
    for panel, title in zip(axes[0], ("SimAOU", "SimAM_Δ", "accuracy"), strict=True):
        panel.set(title=title, xlabel="learning rate", xscale="log")
        panel.legend(fontsize=7)
    return made
