"""Charts of a sweep of learning rates, to be pointed at: at equal rate, and at equal size of the weight change."""

from collections.abc import Iterator, Sequence

import numpy as np

from iclgd.labs.compare.far import size_of
from iclgd.labs.compare.sweeps import BESIDE, likeness, swept, swept_metrics
from iclgd.labs.compare.view import Comparison
from iclgd.metrics.estimates import Estimate
from iclgd.report.charts import DIGITS, NULL, OWN, Looks, Series, lines
from iclgd.report.widgets import Widget

ACCURACIES = ("accuracy", "calibrated")


def by_rate(comparison: Comparison) -> Widget | None:
    """Likeness and accuracy against learning rate, with what stands beside them."""
    found = swept(comparison)
    rates = sorted({float(choice["rate"]) for some in found.values() for choice in some})
    about = "Likeness and accuracy against learning rate; bands are 95% intervals, nulls are dashed."
    looks = Looks(colour="learner", x="learning rate", apart=True)
    return lines(lambda: list(_rates(comparison, rates)), rates, looks, about) if rates else None


def by_size(comparison: Comparison) -> Widget | None:
    """Likeness against the length of the weight change, which every learner has its own of at a rate."""
    sizes = {
        choice.label: float(f"{size_of(comparison, choice.label, 'weight change'):.{DIGITS}g}")
        for some in swept(comparison).values()
        for choice in some
    }
    points = sorted({size for size in sizes.values() if size > 0})  # not nan: nothing is known of it
    about = "Likeness against the size of the weight change; bands are 95% intervals."
    looks = Looks(colour="learner", x="‖ΔW‖", apart=True)
    return lines(lambda: list(_sizes(comparison, sizes, points)), points, looks, about) if points else None


def _sizes(comparison: Comparison, sizes: dict[str, float], points: Sequence[float]) -> Iterator[Series]:
    for metric in swept_metrics(comparison):
        for kind, some in swept(comparison).items():
            chosen = [choice for choice in some if sizes[choice.label] > 0]
            labels = {"panel": comparison.metrics[metric].title, "learner": kind, "name": kind}
            places = [points.index(sizes[choice.label]) for choice in chosen]
            yield from _one(labels, likeness(comparison, chosen, metric), places, len(points))


def _rates(comparison: Comparison, rates: Sequence[float]) -> Iterator[Series]:
    for kind, chosen in swept(comparison).items():
        places = [rates.index(float(choice["rate"])) for choice in chosen]
        for metric in swept_metrics(comparison):
            own = {"panel": comparison.metrics[metric].title, "learner": kind}
            yield from _one(own | {"name": kind}, likeness(comparison, chosen, metric), places, len(rates))
            for title, (what, _) in BESIDE.items():
                beside = likeness(comparison, chosen, metric, **what)
                yield from _one(own | {"name": f"{kind}: {title}"}, beside, places, len(rates), NULL)
    for metric in (name for name in ACCURACIES if name in comparison.metrics):
        yield from _accuracies(comparison, metric, rates)


def _accuracies(comparison: Comparison, metric: str, rates: Sequence[float]) -> Iterator[Series]:
    """Of every learner, beside the levels of those that have no rate."""
    panel = comparison.metrics[metric].title
    for kind, chosen in swept(comparison).items():
        found = [_accuracy(comparison, choice.label, metric) for choice in chosen]
        places = [rates.index(float(choice["rate"])) for choice in chosen]
        yield from _one({"panel": panel, "learner": kind, "name": kind}, found, places, len(rates))
    for name in ("zero-shot", "icl"):
        level = [_accuracy(comparison, name, metric)] * len(rates)
        labels = {"panel": panel, "learner": name, "name": name}
        yield from _one(labels, level, range(len(rates)), len(rates), NULL)


def _accuracy(comparison: Comparison, learner: str, metric: str) -> Estimate:
    spec = comparison.spec
    return comparison.estimate(spec.task, None, init=spec.init[0], learner=learner, metric=metric)


def _one(
    labels: dict[str, str], found: Sequence[Estimate], places: Sequence[int], count: int, role: str = OWN
) -> Iterator[Series]:
    """A series with its estimates at their places among the points; none where nothing is known."""
    ends = np.full((3, count), np.nan)
    for place, one in zip(places, found, strict=True):
        ends[:, place] = one.mean, one.low, one.high
    if np.isfinite(ends[0]).any():
        yield Series(labels | {"role": role}, *ends)
