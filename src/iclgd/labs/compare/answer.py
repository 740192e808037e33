"""What a comparison found, in one sentence that is never stronger than its intervals."""

from collections.abc import Callable

from iclgd.choices import Choice
from iclgd.labs.compare.view import Comparison, is_control, title_of
from iclgd.metrics.differences import Difference, holm
from iclgd.metrics.estimates import Estimate
from iclgd.report.numbers import Number, counted

CONTRAST = "contrast-AOU"
Found = tuple[str, str] | None  # a verdict, and the numbers of one learner behind it


def answer(comparison: Comparison) -> str:
    """Three questions: the part that labels make, whether training learned labels, the whole update beside its rivals.

    Learners with the same verdict share its words; of the nulls that are as alike, the nearest is named. Of several
    rates of a learner the answer speaks of one, the most favourable, and says so.
    """
    spec = comparison.spec
    lost = [one for one in spec.trained if any(comparison.diverged(spec.init[0], t, one.label) for t in spec.task)]
    rates: dict[tuple[object, ...], list[Choice]] = {}
    for one in spec.trained:
        if one not in lost:
            rates.setdefault((one.name, *(o for o in one.options if o[0] != "rate")), []).append(one)
    kept = [max(some, key=lambda one: _told_apart(comparison, one)) for some in rates.values()]
    parts = [_asked(comparison, kept, question) for question in (_labels, _learned, _whole)]
    if any(len(some) > 1 for some in rates.values()):
        parts.append("of several rates this is the one at which training tells right labels from wrong ones best")
    parts += [f"training diverged in some draws ({', '.join(one.label for one in lost)})"] if lost else []
    said = "; ".join(filter(None, parts))
    if len(spec.seeds) == 1 and said:
        said = f"with 1 seed there is no interval over draws and nothing is decided: {said}"
    return f"{said[:1].upper()}{said[1:]}." if said else ""


def _told_apart(comparison: Comparison, choice: Choice) -> float:
    """Accuracy after training on right labels less on wrong ones; 0 where there are no wrong ones."""
    base = {"init": comparison.spec.init[0], "metric": "accuracy", "learner": choice.label}
    found = comparison.difference(comparison.spec.task, None, base, {**base, "null": "wrong-labels"})
    return 0.0 if found is None else found.estimate.mean


def _asked(comparison: Comparison, learners: list[Choice], question: Callable[[Comparison, str], Found]) -> str:
    """The verdicts on one question, each with the learners that it is true of."""
    verdicts: dict[str, list[str]] = {}
    for choice in learners:
        if (found := question(comparison, choice.label)) is not None:
            verdicts.setdefault(found[0], []).append(f"{_name(comparison, choice)}: {found[1]}")
    return "; ".join(f"{verdict} ({'; '.join(numbers)})" for verdict, numbers in verdicts.items())


def _name(comparison: Comparison, choice: Choice) -> str:
    """The kind says it all, unless there are several of it."""
    alone = sum(other.kind == choice.kind for other in comparison.spec.trained) == 1
    return choice.kind if alone else choice.label


def _labels(comparison: Comparison, learner: str) -> Found:
    """Whether what labels change is alike in reading and in training."""
    own = _estimate(comparison, learner, CONTRAST)
    if own.mean != own.mean:
        return None
    nulls, level = _level(comparison, learner, CONTRAST)
    if nulls and not level and own.low > 0:
        verdict = "what labels change is more alike in reading and training than in every null that was run"
        return verdict, f"cosine {Number(own.mean, own.low, own.high)}, {counted(len(nulls), 'null')}"
    return "what labels change is not shown to be alike in reading and training", _beside("cosine", own, level)


def _learned(comparison: Comparison, learner: str) -> Found:
    """Whether training told right labels from wrong ones at all."""
    base = {"init": comparison.spec.init[0], "metric": "accuracy", "learner": learner}
    wrong = {**base, "null": "wrong-labels"}
    found = comparison.difference(comparison.spec.task, None, base, wrong)
    if found is None:
        return None
    right, other = (comparison.estimate(comparison.spec.task, None, **labels).mean for labels in (base, wrong))
    numbers = f"accuracy {Number(right, digits=2)}, with wrong ones {Number(other, digits=2)}"
    labels = "the labels" if comparison.spec.balanced else "the labels or their frequencies"
    return f"training {'learned' if found.verdict == 'above' else 'is not shown to learn'} {labels}", numbers


def _whole(comparison: Comparison, learner: str) -> Found:
    """The whole update: how alike, and which null or untrained model comes nearest among those it is not above."""
    spec = comparison.spec
    metric = next((name for name, m in comparison.metrics.items() if m.by == "layer" and not m.contrast), None)
    if metric is None:
        return None
    own, title = _estimate(comparison, learner, metric), comparison.metrics[metric].title
    nulls, level = _level(comparison, learner, metric)
    for init in spec.init[1:]:
        base = {"init": spec.init[0], "metric": metric, "learner": learner}
        found = comparison.difference(spec.task, spec.position, base, {**base, "init": init})
        if found is None or found.verdict != "above":
            level[f"a model with {init} weights"] = comparison.estimate(
                spec.task, spec.position, **{**base, "init": init}
            )
    if not nulls and len(spec.init) == 1:
        return f"{title} of whole updates has no null beside it", _value(own)
    if not level:
        return f"{title} of whole updates is above that of every null and untrained model that was run", _value(own)
    return f"{title} of whole updates is not shown above its nearest rival", _beside("", own, level)


def _level(comparison: Comparison, learner: str, metric: str) -> tuple[list[str], dict[str, Estimate]]:
    """The nulls there are, and by title those that the learner is not above, corrected for their number.

    A null that some task or draw does not have is not one the learner is above: what is left may be a selection.
    A control, such as two wrong labelings, is as alike as labels can be and no null.
    """
    base = {"init": comparison.spec.init[0], "metric": metric, "learner": learner}
    spec, known = comparison.spec, {}
    for null in comparison.known("null"):
        found = _estimate(comparison, learner, metric, null=null)
        if found.mean == found.mean and not is_control(null):
            known[null] = found
    apart: dict[str, Difference] = {}
    for null in known:
        one = comparison.difference(spec.task, spec.position, base, {**base, "null": null})
        if one is not None and comparison.everywhere(**{**base, "null": null}):
            apart[null] = one
    verdicts = dict(zip(apart, holm(list(apart.values())), strict=True))
    above = [null for null, one in verdicts.items() if one.verdict == "above"]
    return list(known), {title_of(null): found for null, found in known.items() if null not in above}


def _beside(what: str, own: Estimate, level: dict[str, Estimate]) -> str:
    """A learner's number and the largest of those it is not above."""
    rivals = {title: found for title, found in level.items() if found.mean == found.mean}
    if not rivals:
        return f"{what} {_value(own)}".strip()
    nearest = max(rivals, key=lambda title: rivals[title].mean)
    return f"{what} {_value(own)}, {nearest} {_value(rivals[nearest])}".strip()


def _estimate(comparison: Comparison, learner: str, metric: str, **more: str) -> Estimate:
    spec = comparison.spec
    return comparison.estimate(spec.task, spec.position, init=spec.init[0], learner=learner, metric=metric, **more)


def _value(found: Estimate) -> str:
    return str(Number(found.mean))
