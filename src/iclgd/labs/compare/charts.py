"""The charts of a comparison: every learner beside its nulls, and likeness by layer, as the reader chooses."""

from collections.abc import Iterator, Sequence

import numpy as np

from iclgd.choices import Choice
from iclgd.labs.compare.figures import gradient_norms
from iclgd.labs.compare.spoken import spoken_of
from iclgd.labs.compare.view import Comparison, title_of
from iclgd.metrics.compared import Metric
from iclgd.prompts import WHERE
from iclgd.report.charts import NULL, OWN, Looks, Series, dots, lines
from iclgd.report.maps import maps
from iclgd.report.widgets import Widget

ALL = "all"
FEW = 3  # kinds of learners that one panel can hold
PARTS = {True: "what labels change", False: "whole updates"}
CHOOSE = {"metric": "metric", "task": "task", "position": "where", "rate": "rate"}
Labels = dict[str, str]


def picture(comparison: Comparison) -> Widget:
    """The answer as dots: each learner with its interval, its nulls and the untrained models below it."""
    looks = Looks(choose=CHOOSE, panel="learner", colour="learner")
    return dots(lambda: list(_dots(comparison)), looks, "Each learner and its nulls, with 95% intervals.")


def by_layer(comparison: Comparison) -> Widget | None:
    """Likeness along the layers, a null beside it."""
    spec = comparison.spec
    metrics = {name: m for name, m in comparison.metrics.items() if _layered(m)}
    layers = next((one.values.shape[-1] for one in comparison.study.arrays() if one.axes[-1] == "layer"), 0)
    if not metrics or not layers:
        return None
    choose = {"part": "of", "task": "task", "position": "where", "rate": "rate", "seed": "seed", "against": "beside it"}
    few = len({choice.at_any_rate for choice in spec.trained}) <= FEW
    if not few:
        choose = {"metric": "metric"} | choose
    looks = Looks(choose=choose, panel="metric" if few else "learner", colour="learner", x="layer")
    about = "Likeness by layer, a panel for each metric; bands are 95% intervals, the dashed line is a null."
    return lines(lambda: list(_lines(comparison, metrics)), range(layers), looks, about)


def _trained(comparison: Comparison) -> list[Choice]:
    """First those that the answer speaks of: what a page shows before one chooses."""
    first = spoken_of(comparison)
    return [*first, *(choice for choice in comparison.spec.trained if choice not in first)]


def _layered(metric: Metric) -> bool:
    return metric.by == "layer" and metric.of != "training"


def _tasks(comparison: Comparison) -> dict[str, Sequence[str]]:
    """All tasks first, then each: what one can choose."""
    titles = comparison.spec.task_titles
    every: dict[str, Sequence[str]] = {f"{ALL} {len(titles)} tasks": comparison.spec.task} if len(titles) > 1 else {}
    return every | {title: [task] for task, title in titles.items()}


def _beside(comparison: Comparison) -> dict[str, Labels]:
    """What stands beside a learner, by what it is called: nulls that were run, controls, untrained models."""
    nulls = {title_of(null): {"null": null} for null in comparison.known("null")}
    return nulls | {f"a model with {init} weights": {"init": init} for init in comparison.spec.init[1:]}


def _places(comparison: Comparison, metric: Metric) -> dict[str, str]:
    """Where a metric was measured, the study's own place first; one that is of answers has no place."""
    first = comparison.spec.position
    return {WHERE[p]: p for p in sorted(WHERE, key=lambda p: p != first)} if metric.by == "layer" else {"": first}


def _ordered(comparison: Comparison) -> dict[str, Metric]:
    """What labels change first, as in the answer; then likeness, then what is predicted."""
    rank = {(True, "layer"): 0, (False, "layer"): 1}
    shown = {n: m for n, m in comparison.metrics.items() if m.of != "training"}
    return dict(sorted(shown.items(), key=lambda item: rank.get((item[1].contrast, item[1].by), 2)))


def _dots(comparison: Comparison) -> Iterator[Series]:
    spec, beside = comparison.spec, _beside(comparison)
    for name, metric in _ordered(comparison).items():
        for title, tasks in _tasks(comparison).items():
            for where, position in _places(comparison, metric).items():
                for choice in _trained(comparison):
                    base = {"init": spec.init[0], "learner": choice.label, "metric": name}
                    who = {choice.label: base} | {other: base | more for other, more in beside.items()}
                    found = comparison.several(tasks, position, list(who.values()), layers=False)
                    place = _labels(metric, title, where, choice)
                    for i, (other, ends) in enumerate(zip(who, found, strict=True)):
                        if np.isfinite(ends[0]).any():
                            yield Series(place | {"name": other, "role": NULL if i else OWN}, *ends)


def _labels(metric: Metric, task: str, where: str, choice: Choice) -> Labels:
    rate = f"{choice['rate']:g}" if choice.has("rate") else ""
    return {"metric": metric.title, "task": task, "position": where, "learner": choice.at_any_rate, "rate": rate}


def _lines(comparison: Comparison, metrics: dict[str, Metric]) -> Iterator[Series]:
    """Own lines for all seeds, with intervals, and for each; nulls for all seeds together."""
    spec, beside = comparison.spec, _beside(comparison)
    for name, metric in metrics.items():
        for title, tasks in _tasks(comparison).items():
            for where, position in _places(comparison, metric).items():
                for choice in _trained(comparison):
                    base = {"init": spec.init[0], "learner": choice.label, "metric": name}
                    found = comparison.several(
                        tasks, position, [base, *(base | m for m in beside.values())], layers=True
                    )
                    place = _labels(metric, title, where, choice) | {"part": PARTS[metric.contrast]}
                    if found[0].size:
                        yield Series(place | {"seed": ALL, "against": "", "name": choice.label, "role": OWN}, *found[0])
                        yield from _seeds(comparison, place, tasks, position, base)
                    for other, ends in zip(beside, found[1:], strict=True):
                        if ends.size:
                            called = {
                                "seed": "",
                                "against": other,
                                "name": f"{choice.at_any_rate}: {other}",
                                "role": NULL,
                            }
                            yield Series(place | called, ends[0])


def _seeds(
    comparison: Comparison, place: Labels, tasks: Sequence[str], position: str, base: Labels
) -> Iterator[Series]:
    """Each seed's own line, without an interval: a mean over its queries."""
    if len(comparison.spec.seeds) < 2 or len(tasks) > 1:
        return
    values = comparison.values(tasks, position, **base)[0]
    known = np.isfinite(values)
    means = np.where(known, values, 0).sum(1) / np.where(known.any(1), known.sum(1), np.nan)
    for seed, row in zip(comparison.spec.seeds, means, strict=True):
        labels = {"seed": str(seed), "against": "", "name": f"{base['learner']}, seed {seed}", "role": OWN}
        yield Series(place | labels, row)


def alpha(comparison: Comparison) -> Widget:
    """α of every pair of finetuned learners by task, and over all, at the place and rate that are chosen."""
    looks = Looks(choose={"position": "where", "rate": "rate"}, colour="", x="α")
    return dots(lambda: list(_pairs(comparison)), looks, "α by task for each pair of learners, with 95% intervals.")


def _pairs(comparison: Comparison) -> Iterator[Series]:
    """At the label word first, where the figure is measured, as the papers did."""
    spec = comparison.spec
    for position in sorted(WHERE, key=lambda p: p != "label"):
        for a, b in spec.pairs:
            pair = {"init": spec.init[0], "learner": a.label, "versus": b.label, "metric": "alpha"}
            labels = {"panel": f"{a.at_any_rate} ~ {b.at_any_rate}", "position": WHERE[position]}
            for title, tasks in _tasks(comparison).items():
                one = comparison.estimate(tasks, position, **pair)
                if np.isfinite(one.mean):
                    more = {"rate": f"{a['rate']:g}", "name": title, "role": OWN}
                    yield Series(labels | more, [one.mean], [one.low], [one.high])


def gradients(comparison: Comparison) -> Widget | None:
    """Gradient norms by layer and demonstration, a map for each learner."""
    norms = gradient_norms(comparison)
    if not norms:
        return None
    demos = range(1, next(iter(norms.values())).shape[1] + 1)
    return maps(norms, demos, "demonstration", "layer", "Gradient norms by layer and demonstration.", log=True)
