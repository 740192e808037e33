"""Pictures of the languages lab: training, codes and weights of a setting, and all settings at a glance."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from iclgd.labs.languages.measures import TRAINED
from iclgd.labs.languages.reading import Reading
from iclgd.report.colours import slots
from iclgd.report.figures import COLOURS, band, figure, legend, styled

KINDS = ("gd", "preconditioned gd", "ridge", "gd on learned features", "no context", "stored × hits")
LEARNERS = slots(KINDS)
"""The colours of learners; the trained layers have the first."""
DESCENTS = ("gd", "preconditioned gd", "gd on learned features")


def _seeds(axes: Axes, steps: Sequence[int], values: np.ndarray, colour: str, label: str) -> None:
    """The mean over seeds and the range of all of them; values are [seed, step]."""
    x = [float(step) for step in steps]
    middle, low, high = (line.tolist() for line in (values.mean(0), values.min(0), values.max(0)))
    band(axes, x, middle, low, high, colour, label)


@styled
def autoencoder(readings: Sequence[Reading]) -> Figure:
    """Validation loss and restored positions of the string autoencoder."""
    made, ((loss, symbols),) = figure(2, width=3.8, height=2.8)
    for colour, reading in zip(COLOURS, readings, strict=False):
        steps, name = reading.steps("encoder"), reading.setting.language
        _seeds(loss, steps, reading.encoding("loss"), colour, name)
        _seeds(symbols, steps, reading.encoding("symbols"), colour, name)
    loss.set(title="Autoencoder validation loss", xlabel="step", ylabel="cross-entropy of a position")
    symbols.set(title="Positions restored", xlabel="step", ylabel="share of held-out positions")
    loss.set_ylim(bottom=0)
    legend(made, [loss, symbols])
    return made


@styled
def training(readings: Sequence[Reading]) -> Figure:
    """Accuracy, loss, MSE to the references and cosine to them over training, a column a setting."""
    alone = len(readings) == 1
    made, axes = figure(2 if alone else len(readings), 2 if alone else 4, width=3.8, height=2.4)
    columns = axes.reshape(1, 4) if alone else axes.T
    for column, reading in zip(columns, readings, strict=True):
        _training_column(column, reading)
        for place in column[2:] if alone else column[3:]:
            place.set_xlabel("training step")
    labels = ("accuracy", "½ squared error", "MSE of predictions", "cosine of sensitivities")
    for place, label in zip(columns[0], labels, strict=True):
        place.set_ylabel(label)
    legend(made, axes.flat)
    return made


def _training_column(column: np.ndarray, reading: Reading) -> None:
    steps = reading.steps("training")
    for axes, quantity in zip(column, ("accuracy", "loss"), strict=False):
        _seeds(axes, steps, reading.training(TRAINED, quantity), COLOURS[0], TRAINED)
    for kind, place in LEARNERS.items():
        name = reading.called(kind)
        if not name:
            continue
        for axes, quantity in zip(column, ("accuracy", "loss"), strict=False):
            level = float(np.mean(reading.of(name, quantity)))
            axes.axhline(level, color=COLOURS[place], linestyle="--", linewidth=1.1, label=name)
        for axes, quantity in zip(column[2:], ("mse", "cosine"), strict=True):
            _seeds(axes, steps, reading.training(name, quantity), COLOURS[place], name)
    column[0].set_title(f"{reading.setting.language}, {reading.setting.labels} labels")
    column[2].set_yscale("log")
    column[3].set_ylim(top=1.03)


@styled
def weights(reading: Reading) -> Figure:
    """QK and PV of the first seed, constructed and trained, each scaled to its largest entry."""
    made, axes = figure(3, 2, width=2.7, height=2.5)
    titles = {"gd": "constructed:\ngd", "preconditioned gd": "constructed:\npreconditioned gd", TRAINED: "\ntrained"}
    for column, (name, title) in zip(axes.T, titles.items(), strict=True):
        qk, pv = reading.layer(name)
        for place, part, label in zip(column, (qk, pv), ("$W_K^T W_Q$", "$P\\,W_V$"), strict=True):
            image = place.imshow(part, cmap="RdBu_r", vmin=-1, vmax=1)
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
def summary(readings: Sequence[Reading]) -> Figure:
    """Every setting: accuracy with the labels as they are and shuffled, and likeness to steps of gradient descent."""
    made, axes = figure(2, width=4.6, height=1.0 + 0.19 * len(readings))
    left, right = axes[0]
    place = np.arange(float(len(readings)))[::-1]
    for part, reading in zip(place, readings, strict=True):
        for axes_ in (left, right):
            axes_.axhline(part, color="0.92", linewidth=0.7, zorder=0)
        _dots(left, reading.of(TRAINED, "accuracy"), part, COLOURS[0], "o")
        _dots(left, reading.of(TRAINED, "accuracy", shuffled=True), part, COLOURS[6], "x")
        for kind in DESCENTS:
            if name := reading.called(kind):
                _dots(right, reading.of(name, "cosine"), part, COLOURS[LEARNERS[kind]], "o")
    left.set_yticks(place, [reading.setting.name() for reading in readings], fontsize=7)
    right.set_yticks([])
    left.set(title="Accuracy, trained", xlabel="share of held-out queries")
    right.set(title="Cosine to trained", xlabel="cosine of sensitivities")
    left.plot([], [], "o", color=COLOURS[0], label="labels as they are")
    left.plot([], [], "x", color=COLOURS[6], label="labels shuffled")
    for name in DESCENTS:
        right.plot([], [], "o", color=COLOURS[LEARNERS[name]], label=name)
    for axes_ in (left, right):
        axes_.set_ylim(-0.7, len(readings) - 0.3)
        axes_.legend(fontsize=7, loc="upper left", bbox_to_anchor=(0, -0.06), ncols=3)
    return made


def _dots(axes: Axes, values: np.ndarray, place: float, colour: str, marker: str) -> None:
    """Every seed, and the mean on top."""
    axes.plot(values, [place] * len(values), marker, color=colour, markersize=3, alpha=0.35, linestyle="none")
    axes.plot([float(np.mean(values))], [place], marker, color=colour, markersize=6)
