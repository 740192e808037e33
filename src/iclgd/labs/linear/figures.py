"""Pictures of one experiment, each as SVG and PNG. No state is shared: every figure is its own object."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from iclgd.labs.linear.run import Result

TRAINED, SERIES = "#1f4e79", ("#c0504d", "#5f8f3e", "#8064a2", "#d08020", "#4aa0b5", "#7f7f7f")


def draw(result: Result, folder: Path) -> list[Path]:
    """Write every picture that the result has data for; return the PNG files."""
    figures = {"training": training(result), "shifts": shifts(result)}
    if result.weights:
        figures["weights"] = weights(result)
    if result.layers:
        figures["learners"] = learners(result)
    written = []
    for name, figure in figures.items():
        FigureCanvasAgg(figure)
        for suffix in ("svg", "png"):
            figure.savefig(folder / f"{name}.{suffix}", dpi=150)
        written.append(folder / f"{name}.png")
    return written


def _figure(width: float, height: float) -> Figure:
    return Figure(figsize=(width, height), layout="constrained")


def _tidy(ax: Axes, title: str, xlabel: str, ylabel: str = "") -> None:
    ax.set_title(title, fontsize=10, loc="left")
    ax.set_xlabel(xlabel, fontsize=9)
    ax.set_ylabel(ylabel, fontsize=9)
    ax.tick_params(which="both", labelsize=8)
    ax.spines[["top", "right"]].set_visible(False)


def _band(ax: Axes, x: Sequence, rows: list, label: str) -> None:
    """The mean over seeds, and the range of all seeds behind it."""
    values = np.asarray(rows)
    ax.fill_between(x, values.min(1), values.max(1), color=TRAINED, alpha=0.2, linewidth=0)
    ax.plot(x, values.mean(1), color=TRAINED, label=label, linewidth=1.6)


def training(result: Result) -> Figure:
    """Loss with the references as lines, and how alike the model becomes to each."""
    figure = _figure(10.5, 3.1)
    left, middle, right = figure.subplots(1, 3)
    curves, steps = result.curves, result.curves["step"]
    _band(left, steps, curves["loss"], "trained")
    cosine, distance = (np.asarray(curves[name]).mean(1) for name in ("cosine", "prediction"))  # [step, reference]
    for i, (name, reference) in enumerate(result.references.items()):
        colour = SERIES[i % len(SERIES)]
        left.axhline(reference["loss"], color=colour, linestyle="--", linewidth=1.2, label=name)
        middle.plot(steps, cosine[:, i], color=colour)
        right.plot(steps, distance[:, i], color=colour)
    values = np.asarray(curves["loss"])
    if values.max() > 5 * values.min():
        left.set_yscale("log")
    left.legend(fontsize=7, frameon=False)
    _tidy(left, "Loss on held-out episodes", "training step", "½ squared error")
    middle.axhline(1, color="0.6", linewidth=0.8)
    middle.set_ylim(max(0.0, 2 * cosine[-1].min() - 1.05), 1.005)
    _tidy(middle, "Sensitivities, trained and reference", "training step", "cosine")
    right.set_yscale("log")
    _tidy(right, "Predictions, trained and reference", "training step", "mean distance")
    return figure


def weights(result: Result) -> Figure:
    """Constructed beside learned: Kᵀ Q and P V after removing the scale symmetry."""
    figure = _figure(7.2, 6.2)
    axes = figure.subplots(2, 2)
    dx, dim = result.experiment.dx, result.experiment.dx + result.experiment.dy
    for row, name, title in zip(axes, ("qk", "pv"), ("$W_K^T W_Q$", "$P\\,W_V$"), strict=True):
        sides = [np.asarray(result.weights[side][name]) for side in ("constructed", "learned")]
        limit = max(np.abs(sides[0]).max(), 1e-12)
        for ax, side, values in zip(row, ("constructed", "learned"), sides, strict=True):
            image = ax.imshow(values, cmap="RdBu_r", vmin=-limit, vmax=limit)
            ax.set_xticks([(dx - 1) / 2, (dx + dim - 1) / 2], ["x", "y"], fontsize=9)
            ax.set_yticks([(dx - 1) / 2, (dx + dim - 1) / 2], ["x", "y"], fontsize=9)
            ax.tick_params(length=0)
            for line in (ax.axhline, ax.axvline):
                line(dx - 0.5, color="0.4", linewidth=0.7)
            ax.set_title(f"{title}, {side}", fontsize=10, loc="left")
        figure.colorbar(image, ax=row, shrink=0.8).ax.tick_params(labelsize=8)
    return figure


def shifts(result: Result) -> Figure:
    """Loss where the episodes differ from those trained on."""
    figure = _figure(11.0, 2.9)
    panels = figure.subplots(1, len(result.shifts))
    names = {
        "input scale": ("Inputs scaled", "factor"),
        "label scale": ("Labels scaled", "factor"),
        "law": ("Inputs of another law", ""),
        "random labels": ("Labels replaced by noise", "labels replaced"),
    }
    for ax, (kind, shift) in zip(panels, result.shifts.items(), strict=True):
        x = range(len(shift["values"])) if kind == "law" else shift["values"]
        apart = kind == "law"  # no order among laws: marks, not lines
        if apart:
            ax.plot(x, np.asarray(shift["model"]).mean(1), "o", color=TRAINED, markersize=8, alpha=0.6)
            ax.set_xticks(x, shift["values"], rotation=30, ha="right")
        else:
            _band(ax, x, shift["model"], "trained")
        for colour, (name, values) in zip(SERIES * 3, shift["references"].items(), strict=False):
            ax.plot(x, values, "x" if apart else "--", color=colour, linewidth=1.2, label=name)
        every = np.concatenate([np.ravel(shift["model"]), *shift["references"].values()])
        if every.max() > 10 * every.min():
            ax.set_yscale("log")
        _tidy(ax, *names[kind], ylabel="½ squared error" if ax is panels[0] else "")
    panels[0].legend(fontsize=7, frameon=False)
    return figure


def learners(result: Result) -> Figure:
    """Which learner, and after how many steps, the answer after each layer is near."""
    table = result.layers
    names = sorted(next(iter(table.values())), key=lambda name: table[max(table)][name]["spd"], reverse=True)
    figure = _figure(6.4, 0.9 + 0.21 * len(names))
    ax = figure.subplots()
    for colour, (layer, ranked) in zip((TRAINED, *SERIES) * 3, table.items(), strict=False):
        values = [ranked[name]["spd"] for name in names]
        ax.plot(values, range(len(names)), "o", color=colour, markersize=5, label=f"after layer {layer}")
        best = int(np.argmin(values))
        ax.plot(values[best], best, "o", markersize=11, markerfacecolor="none", markeredgecolor=colour)
    ax.set_yticks(range(len(names)), names)
    ax.set_xscale("log")
    ax.grid(axis="y", color="0.9", linewidth=0.7)
    ax.set_axisbelow(True)
    ax.legend(fontsize=7, frameon=False)
    _tidy(ax, "Distance to every learner (nearest ringed)", "squared prediction distance")
    return figure
