"""Figures of a sweep of learning rates: at equal rate, and at equal size of the weight change."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from iclgd.choices import Choice
from iclgd.labs.compare.far import size_of
from iclgd.labs.compare.spoken import by_learner
from iclgd.labs.compare.view import Comparison
from iclgd.metrics import OWN
from iclgd.metrics.estimates import Estimate
from iclgd.report.colours import slots
from iclgd.report.figures import COLOURS, band, legend, panels, styled

# beside a learner's own line: another query's update, and its own trajectory computed again in a wider format
BESIDE = {
    "another query's update": ({"null": "other-query"}, (0, (1, 1.5))),
    "itself, in wider precision": ({"floor": "other precision"}, (0, (3, 1, 1, 1))),
}
LIKENESS = ("SimAOU", "SimAM_delta", "contrast-AOU")


def colours_of(comparison: Comparison) -> dict[str, str]:
    """The colour of each learner at any rate, the same in every figure."""
    kinds = dict.fromkeys(choice.at_any_rate for choice in comparison.spec.trained)
    return {kind: COLOURS[place] for kind, place in slots(kinds).items()}


def swept(comparison: Comparison) -> dict[str, list[Choice]]:
    """The learners that have a rate, each at those at which it never diverged, slowest first."""
    found = {name: [c for c in some if c.has("rate")] for name, some in by_learner(comparison).items()}
    return {name: sorted(some, key=lambda c: float(c["rate"])) for name, some in found.items() if some}


def likeness(comparison: Comparison, chosen: list[Choice], metric: str, **what: str) -> list[Estimate]:
    spec = comparison.spec
    labels = {"init": spec.init[0], "metric": metric, **what}
    return [comparison.estimate(spec.task, spec.position, learner=c.label, **labels) for c in chosen]


def swept_metrics(comparison: Comparison) -> list[str]:
    """The likenesses that are drawn against rate and size: three of this package's, and all of other packages'."""
    ours = {name for name, *_ in OWN} - set(LIKENESS)
    return [name for name, metric in comparison.metrics.items() if metric.by == "layer" and name not in ours]


def swept_answers(comparison: Comparison) -> dict[str, str]:
    """How right answers are drawn, where they were measured: an axis of rates without a number has no scale."""
    return {name: style for name, style in (("accuracy", "-"), ("calibrated", "--")) if name in comparison.metrics}


@styled
def draw_rates(comparison: Comparison) -> Figure:
    """Likeness and accuracy against step size, because the published similarities track step size."""
    names, answers = swept_metrics(comparison), swept_answers(comparison)
    made, axes = panels(len(names) + bool(answers), width=3.6, height=3.1)
    colours = colours_of(comparison)
    for kind, chosen in swept(comparison).items():
        colour = colours[kind]
        rates = [float(choice["rate"]) for choice in chosen]
        for panel, metric in zip(axes, names, strict=False):
            _line(panel, rates, likeness(comparison, chosen, metric), colour, kind)
            for title, (what, dashes) in BESIDE.items():
                means = [e.mean for e in likeness(comparison, chosen, metric, **what)]
                panel.plot(rates, means, color=colour, linestyle=dashes, linewidth=0.9, label=f"{kind}: {title}")
        for metric, style in answers.items():
            means = [_over_tasks(comparison, choice.label, metric) for choice in chosen]
            looks: dict[str, Any] = {"linestyle": style, "marker": "o", "markersize": 2.5}
            axes[-1].plot(rates, means, color=colour, label=f"{kind}, {metric}", **looks)
    for name, style in (("zero-shot", ":"), ("icl", "-.")) if "accuracy" in answers else ():
        mean = _over_tasks(comparison, name, "accuracy")
        axes[-1].axhline(mean, color="#555555", linestyle=style, linewidth=0.9, label=name)
    titles = [comparison.metrics[name].title for name in names]
    for panel, title in zip(axes, (*titles, *["accuracy"] * bool(answers)), strict=True):
        panel.set(title=title, xlabel="learning rate", xscale="log")
    legend(made, axes)
    return made


@styled
def draw_sizes(comparison: Comparison) -> Figure:
    """Likeness at equal size of the weight change, rather than at equal rate.

    Not at equal loss: each learner has its own (on all tokens, on the label word, the sum over layers).
    """
    names = swept_metrics(comparison)
    made, axes = panels(len(names), width=3.6, height=3.1)
    colours = colours_of(comparison)
    for panel, metric in zip(axes, names, strict=True):
        for name, chosen in swept(comparison).items():
            sizes = [size_of(comparison, choice.label, "weight change") for choice in chosen]
            order = np.argsort(sizes)
            found = likeness(comparison, [chosen[i] for i in order], metric)
            _line(panel, [sizes[i] for i in order], found, colours[name], name)
        panel.axhline(0, color="#999999", linewidth=0.6)
        panel.set(title=comparison.metrics[metric].title, xlabel="‖ΔW‖", xscale="log")
    legend(made, axes)
    return made


def _line(panel: Axes, x: list[float], found: list[Estimate], colour: str, label: str) -> None:
    band(panel, x, [e.mean for e in found], [e.low for e in found], [e.high for e in found], colour, label)


def _over_tasks(comparison: Comparison, learner: str, metric: str) -> float:
    labels = {"init": comparison.spec.init[0], "learner": learner, "metric": metric}
    return float(np.mean([comparison.estimate([task], None, **labels).mean for task in comparison.spec.task]))
