"""Pictures of the languages lab: what the document shows, and beside it what explains it."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from iclgd.labs.languages.run import Result
from iclgd.report.figures import COLOURS, band, figure, styled

LEARNERS = {"gd": 1, "preconditioned gd": 2, "ridge": 4, "gd on learned features": 5, "no context": 6}
"""The colours of learners; the trained layer has the first."""


def _seeds(axes: Axes, steps: Sequence[int], rows: Sequence[Sequence[float]], colour: str, label: str) -> None:
    """The mean over seeds and the range of all of them."""
    values = np.asarray(rows)
    band(
        axes,
        [float(step) for step in steps],
        list(values.mean(1)),
        list(values.min(1)),
        list(values.max(1)),
        colour,
        label,
    )


def _named(result: Result) -> str:
    return result.experiment.language


@styled
def autoencoder(results: Sequence[Result]) -> Figure:
    """Validation loss and restored positions of the string autoencoder (the document's figure 1)."""
    made, axes = figure(2, width=3.8, height=2.8)
    for colour, result in zip(COLOURS, results, strict=False):
        curves = result.autoencoder
        _seeds(axes[0, 0], curves["step"], curves["loss"], colour, _named(result))
        _seeds(axes[0, 1], curves["step"], curves["symbols"], colour, _named(result))
    axes[0, 0].set(title="Autoencoder validation loss", xlabel="step", ylabel="cross-entropy of a position")
    axes[0, 1].set(title="Positions restored", xlabel="step", ylabel="share of held-out positions")
    axes[0, 0].set_ylim(bottom=0)
    axes[0, 0].legend()
    return made


@styled
def training(results: Sequence[Result]) -> Figure:
    """Accuracy, loss, MSE to the references and cosine to them over training (figures 2 to 4), a column a language."""
    alone = len(results) == 1
    made, axes = figure(2 if alone else len(results), 2 if alone else 4, width=3.8, height=2.4)
    columns = axes.reshape(1, 4) if alone else axes.T
    for column, result in zip(columns, results, strict=True):
        curves, steps = result.curves, result.curves["step"]
        _seeds(column[0], steps, curves["accuracy"], COLOURS[0], "trained")
        _seeds(column[1], steps, curves["loss"], COLOURS[0], "trained")
        for name, place in LEARNERS.items():
            if name not in result.learners or f"mse {name}" not in curves:
                continue
            for axes_, number in ((column[0], "accuracy"), (column[1], "loss")):
                level = float(np.mean(result.learners[name][number]))
                axes_.axhline(level, color=COLOURS[place], linestyle="--", linewidth=1.1, label=name)
            _seeds(column[2], steps, curves[f"mse {name}"], COLOURS[place], name)
            _seeds(column[3], steps, curves[f"cosine {name}"], COLOURS[place], name)
        column[0].set_title(f"{_named(result)}, {result.experiment.labels} labels")
        column[2].set_yscale("log")
        column[3].set_ylim(top=1.03)
        for place in column[2:] if alone else column[3:]:
            place.set_xlabel("training step")
    labels = ("accuracy", "½ squared error", "MSE of predictions", "cosine of sensitivities")
    for place, label in zip(columns[0], labels, strict=True):
        place.set_ylabel(label)
    axes[0, 0].legend(fontsize=7)
    return made


@styled
def weights(result: Result) -> Figure:
    """QK and PV, constructed and learned (figures 5 to 8), each scaled to its largest entry.

    Both signs of a layer are the same layer; shown is the one whose PV has a negative label entry, as GD's has.
    """
    made, axes = figure(3, 2, width=2.7, height=2.5)
    matrices = result.weights["matrices"]
    titles = {"gd": "constructed:\ngd", "preconditioned gd": "constructed:\npreconditioned gd", "learned": "\nlearned"}
    for column, (name, title) in zip(axes.T, titles.items(), strict=True):
        qk, pv = (np.asarray(matrices[name][part]) for part in ("qk", "pv"))
        sign = -1.0 if pv[-1, -1] > 0 else 1.0
        for place, part, label in zip(column, (qk, pv), ("$W_K^T W_Q$", "$P\\,W_V$"), strict=True):
            image = place.imshow(sign * part / (np.abs(part).max() or 1), cmap="RdBu_r", vmin=-1, vmax=1)
            middle, last = (len(part) - 2) / 2, len(part) - 1
            place.set_xticks([middle, last], ["code", "y"])
            place.set_yticks([middle, last], ["code", "y"])
            place.tick_params(length=0)
            place.spines[:].set_visible(False)
            if name == "gd":
                place.set_ylabel(label)
        column[0].set_title(title, fontsize=9)
    made.colorbar(image, ax=axes, shrink=0.6, label="share of the largest entry")
    return made


@styled
def summary(results: Sequence[Result], names: Sequence[str]) -> Figure:
    """Every cell: accuracy with the labels as they are and shuffled, and likeness to plain and preconditioned GD."""
    made, axes = figure(2, width=4.6, height=1.0 + 0.19 * len(results))
    place = np.arange(float(len(results)))[::-1]
    left, right = axes[0]
    for part, result in zip(place, results, strict=True):
        left.axhline(part, color="0.92", linewidth=0.7, zorder=0)
        right.axhline(part, color="0.92", linewidth=0.7, zorder=0)
        trained = result.learners["trained"]
        for values, colour, marker in ((trained["accuracy"], COLOURS[0], "o"), (trained["shuffled"], COLOURS[6], "x")):
            _dots(left, values, part, colour, marker)
        for name in ("gd", "preconditioned gd", "gd on learned features"):
            if name in result.learners:
                _dots(right, result.learners[name]["cosine"], part, COLOURS[LEARNERS[name]], "o")
    left.set_yticks(place, names, fontsize=7)
    for part in (left, right):
        part.set_ylim(-0.7, len(results) - 0.3)
    right.set_yticks([])
    left.set(title="Accuracy of the trained layer", xlabel="share of held-out queries")
    right.set(title="Cosine to the trained layer", xlabel="cosine of sensitivities")
    left.plot([], [], "o", color=COLOURS[0], label="labels as they are")
    left.plot([], [], "x", color=COLOURS[6], label="labels shuffled")
    for name in ("gd", "preconditioned gd", "gd on learned features"):
        right.plot([], [], "o", color=COLOURS[LEARNERS[name]], label=name)
    for part in (left, right):
        part.legend(fontsize=7, loc="upper left", bbox_to_anchor=(0, -0.06), ncols=3)
    return made


def _dots(axes: Axes, values: Sequence[float], place: float, colour: str, marker: str) -> None:
    """Every seed, and the mean on top."""
    axes.plot(values, [place] * len(values), marker, color=colour, markersize=3, alpha=0.35, linestyle="none")
    axes.plot([float(np.mean(values))], [place], marker, color=colour, markersize=6)
