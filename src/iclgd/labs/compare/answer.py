"""What a comparison found, in one sentence that is never stronger than its intervals."""

from iclgd.choices import Choice
from iclgd.labs.compare.view import Comparison
from iclgd.metrics.differences import holm
from iclgd.metrics.estimates import Estimate
from iclgd.nulls import NULLS
from iclgd.report.numbers import Number

CONTRAST = "contrast-AOU"


def answer(comparison: Comparison) -> str:
    """The part that labels make first, then the whole update beside the nulls that are as alike, learner by learner."""
    kinds = list({choice.kind: choice for choice in comparison.spec.trained}.values())
    parts = [f"{choice.label}: {'; '.join(filter(None, _of(comparison, choice)))}" for choice in kinds]
    alone = len(comparison.spec.seeds) == 1
    caution = "With 1 seed there is no interval over draws, and nothing is decided. " if alone else ""
    return caution + ". ".join(parts) + "."


def _of(comparison: Comparison, choice: Choice) -> list[str]:
    spec = comparison.spec
    if any(comparison.diverged(spec.init[0], task, choice.label) for task in spec.task):
        return ["training diverged in some draws"]
    return [_labels(comparison, choice.label), _learned(comparison, choice.label), _whole(comparison, choice.label)]


def _labels(comparison: Comparison, learner: str) -> str:
    """Whether what labels change is alike in reading and in training."""
    own = _estimate(comparison, learner, CONTRAST)
    if own.mean != own.mean:
        return ""
    nulls, level = _level(comparison, learner, CONTRAST)
    beside = ", ".join(
        f"{_title(name)} {_value(_estimate(comparison, learner, CONTRAST, null=name))}" for name in level
    )
    if nulls and not level:
        return f"what labels change is alike in reading and training (cosine {_value(own)}, above every null)"
    return f"what labels change is not shown to be alike in reading and training (cosine {_value(own)}; {beside})"


def _learned(comparison: Comparison, learner: str) -> str:
    """Whether training told right labels from wrong ones at all."""
    base = {"init": comparison.spec.init[0], "metric": "accuracy", "learner": learner}
    wrong = {**base, "null": "wrong-labels"}
    found = comparison.difference(comparison.spec.task, None, base, wrong)
    if found is None:
        return ""
    right, other = (comparison.estimate(comparison.spec.task, None, **labels).mean for labels in (base, wrong))
    numbers = f"accuracy {Number(right, digits=2)} with right labels, {Number(other, digits=2)} with wrong ones"
    return f"training {'learned' if found.verdict == 'above' else 'is not shown to learn'} the labels ({numbers})"


def _whole(comparison: Comparison, learner: str) -> str:
    """The whole update: how alike, and which nulls and untrained models are not told apart from it."""
    metric = next((name for name, m in comparison.metrics.items() if m.by == "layer" and not m.contrast), None)
    if metric is None:
        return ""
    own = _estimate(comparison, learner, metric)
    _, level = _level(comparison, learner, metric)
    shown = [f"{_title(name)} {_value(_estimate(comparison, learner, metric, null=name))}" for name in level]
    for init in comparison.spec.init[1:]:
        base = {"init": comparison.spec.init[0], "metric": metric, "learner": learner}
        found = comparison.difference(comparison.spec.task, comparison.spec.position, base, {**base, "init": init})
        if found is None or found.verdict != "above":
            value = comparison.estimate(comparison.spec.task, comparison.spec.position, **{**base, "init": init})
            shown.append(f"a model with {init} weights {_value(value)}")
    title = comparison.metrics[metric].title
    beside = f"not told apart from or below: {', '.join(shown)}" if shown else "above every null and untrained model"
    return f"whole updates have {title} {_value(own, True)}, {beside}"


def _level(comparison: Comparison, learner: str, metric: str) -> tuple[list[str], list[str]]:
    """The nulls there are, and those that the learner is not above, corrected for their number."""
    everyone = comparison.known("null")
    nulls = [name for name in everyone if _estimate(comparison, learner, metric, null=name).mean > -2]  # nan is not
    base = {"init": comparison.spec.init[0], "metric": metric, "learner": learner}
    spec, found = comparison.spec, {}
    for null in nulls:
        one = comparison.difference(spec.task, spec.position, base, {**base, "null": null})
        if one is not None:
            found[null] = one
    verdicts = dict(zip(found, holm(list(found.values())), strict=True))
    above = [null for null, one in verdicts.items() if one.verdict == "above"]
    return nulls, [null for null in nulls if null not in above]


def _estimate(comparison: Comparison, learner: str, metric: str, **more: str) -> Estimate:
    spec = comparison.spec
    return comparison.estimate(spec.task, spec.position, init=spec.init[0], learner=learner, metric=metric, **more)


def _title(null: str) -> str:
    return str(NULLS[null.split()[0]].title) if null.split()[0] in NULLS else null


def _value(found: Estimate, interval: bool = False) -> str:
    return str(Number(found.mean, found.low, found.high) if interval else Number(found.mean))
