"""Pictures of a study of `linear train`."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from iclgd.labs.linear.spec import TrainSpec
from iclgd.report.colours import slots
from iclgd.report.figures import COLOURS, figure, legend, styled
from iclgd.study import Study

TRAINED = COLOURS[0]
SHIFTS = {
    "input scale": ("Inputs scaled", "factor"),
    "label scale": ("Labels scaled", "factor"),
    "law": ("Inputs of another law", ""),
    "random labels": ("Labels replaced by noise", "labels replaced"),
}


def _spec(study: Study) -> TrainSpec:
    assert isinstance(study.spec, TrainSpec)
    return study.spec


def _seeds(study: Study) -> Sequence[int]:
    return _spec(study).seeds


def _names(study: Study) -> list[str]:
    return list(dict.fromkeys(str(one.labels["learner"]) for one in study.arrays(quantity="likeness")))


def _colours(study: Study) -> dict[str, str]:
    """Of the learners, beside the trained model's."""
    return {name: COLOURS[place] for name, place in slots(["trained", *_names(study)]).items() if name != "trained"}


def _labelled(axes: Axes, title: str, xlabel: str, ylabel: str = "") -> None:
    axes.set_title(title)
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)


def _band(axes: Axes, x: Sequence[Any], values: np.ndarray, colour: str, label: str = "") -> None:
    """The mean over seeds, and the range of all seeds behind it; values are [seed, x]."""
    axes.fill_between(x, values.min(0), values.max(0), color=colour, alpha=0.2, linewidth=0)
    axes.plot(x, values.mean(0), color=colour, label=label or None, linewidth=1.6)


@styled
def training(study: Study) -> Figure:
    """Loss with the references as lines, and how alike the model becomes to each."""
    made, ((left, middle, right),) = figure(3, width=3.5, height=3.1)
    seeds, first = _seeds(study), study.arrays(quantity="loss by step")[0]
    steps = first.coordinates["step"]
    loss = study.stack("seed", seeds, quantity="loss by step")
    _band(left, steps, loss, TRAINED, "trained")
    lowest = 1.0
    for name, colour in _colours(study).items():
        own = study.stack("seed", seeds, quantity="loss", learner=name).mean()
        left.axhline(float(own), color=colour, linestyle="--", linewidth=1.2, label=name)
        for axes, metric in ((middle, "cosine"), (right, "prediction")):
            values = study.stack("seed", seeds, {"metric": metric}, quantity="likeness by step", learner=name)
            _band(axes, steps, values, colour)
            if metric == "cosine":
                lowest = min(lowest, values.mean(0)[-1])
    if loss.max() > 5 * loss.min():
        left.set_yscale("log")
    legend(made, [left])
    _labelled(left, "Loss on held-out episodes", "training step", "½ squared error")
    middle.axhline(1, color="0.6", linewidth=0.8)
    middle.set_ylim(max(-1.0, 2 * lowest - 1.05), 1.005)
    _labelled(middle, "Sensitivities, trained and learner", "training step", "cosine")
    right.set_yscale("log")
    _labelled(right, "Predictions, trained and learner", "training step", "mean distance")
    return made


@styled
def weights(study: Study) -> Figure:
    """Constructed beside learned (first seed): Kᵀ Q and P V after removing the scale symmetry."""
    made, grid = figure(2, 2, width=3.6, height=3.1)
    dx, dim = _spec(study).dx, _spec(study).dx + _spec(study).dy
    for row, name, title in zip(grid, ("qk", "pv"), ("$W_K^T W_Q$", "$P\\,W_V$"), strict=True):
        sides = {
            side: study.arrays(quantity="weights", matrix=name, side=side, seed=_seeds(study)[0])[0].values
            for side in ("constructed", "learned")
        }
        limit = np.abs(sides["constructed"]).max()
        for axes, (side, values) in zip(row, sides.items(), strict=True):
            image = axes.imshow(values, cmap="RdBu_r", vmin=-limit, vmax=limit)
            axes.set_xticks([(dx - 1) / 2, (dx + dim - 1) / 2], ["x", "y"])
            axes.set_yticks([(dx - 1) / 2, (dx + dim - 1) / 2], ["x", "y"])
            axes.tick_params(length=0)
            for line in (axes.axhline, axes.axvline):
                line(dx - 0.5, color="0.4", linewidth=0.7)
            axes.set_title(f"{title}, {side}")
        made.colorbar(image, ax=list(row), shrink=0.8)
    return made


@styled
def shifts(study: Study) -> Figure:
    """Loss where the episodes differ from those trained on."""
    seeds = _seeds(study)
    made, (panels,) = figure(len(SHIFTS), width=2.9, height=2.9)
    for axes, (kind, (title, xlabel)) in zip(panels, SHIFTS.items(), strict=True):
        labels = {"quantity": "shifted loss", "shift": kind}
        places = study.arrays(**labels, learner="trained")[0].coordinates["value"]
        model = study.stack("seed", seeds, None, **labels, learner="trained")  # [seed, value]
        apart = kind == "law"  # no order among laws: marks, not lines
        x: Sequence[Any] = range(len(places)) if apart else places
        if apart:
            axes.plot(x, model.mean(0), "o", color=TRAINED, markersize=8, alpha=0.6)
            axes.set_xticks(x, list(places), rotation=30, ha="right")
        else:
            _band(axes, x, model, TRAINED, "trained")
        every = [model.ravel()]
        for name, colour in _colours(study).items():
            every.append(study.stack("seed", seeds, None, **labels, learner=name).mean(0))
            axes.plot(x, every[-1], "x" if apart else "--", color=colour, linewidth=1.2, label=name)
        values = np.concatenate(every)
        if values.max() > 10 * values.min():
            axes.set_yscale("log")
        _labelled(axes, title, xlabel, "½ squared error" if axes is panels[0] else "")
    legend(made, panels)
    return made


@styled
def learners(study: Study) -> Figure:
    """Which learner, and after how many steps, the answer after each layer is near; the nearest is ringed."""
    first = study.arrays(quantity="likeness by layer")[0]
    spd = study.stack("seed", _seeds(study), {"metric": "spd"}, quantity="likeness by layer").mean(
        0
    )  # [layer, learner]
    order = np.argsort(-spd[-1], kind="stable")
    names = [str(first.coordinates["learner"][i]) for i in order]
    made, ((axes,),) = figure(width=6.4, height=0.9 + 0.21 * len(names))
    for colour, layer, values in zip(COLOURS * 4, first.coordinates["layer"], spd[:, order], strict=False):
        axes.plot(values, range(len(names)), "o", color=colour, markersize=5, label=f"after layer {layer}")
        best = int(np.argmin(values))
        axes.plot(values[best], best, "o", markersize=11, markerfacecolor="none", markeredgecolor=colour)
    axes.set_yticks(range(len(names)), names)
    axes.set_xscale("log")
    axes.grid(axis="y", color="0.9", linewidth=0.7)
    legend(made, [axes])
    _labelled(axes, "Distance to every learner (nearest ringed)", "squared prediction distance")
    return made
