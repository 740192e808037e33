"""What a comparison found, in one sentence that is never stronger than its intervals."""

from collections.abc import Callable
from dataclasses import dataclass

from iclgd.choices import Choice
from iclgd.labs.compare.family import apart
from iclgd.labs.compare.spoken import CONTRAST, diverged, has_wrong_labels, spoken_of
from iclgd.labs.compare.view import Comparison, is_control, title_of
from iclgd.metrics.estimates import Estimate
from iclgd.report.found import Found
from iclgd.report.numbers import Number, counted


@dataclass(frozen=True)
class Judged:
    """A learner's verdict on one question, and the number behind it."""

    verdict: str
    value: float = 0.0
    numbers: str = ""


def answer(comparison: Comparison) -> str:
    """Three questions: the part that labels make, whether training learned labels, the whole update beside its rivals.

    Learners with the same verdict share its words, with the numbers of the most alike; of the nulls that are as alike,
    the nearest is named. Of several rates of a learner the answer speaks of one, the most favourable, and says so.
    """
    spec, kept, lost = comparison.spec, spoken_of(comparison), diverged(comparison)
    said = [one for question in (_labels, _learned, _whole) for one in _asked(comparison, kept, question)]
    if len(kept) + len(lost) < len(spec.trained):
        best = (
            "training tells right labels from wrong ones best"
            if has_wrong_labels(comparison)
            else "they are most alike"
        )
        said.append(f"of several rates this is the one at which {best}")
    said += [f"training diverged in some draws ({', '.join(one.label for one in lost)})"] if lost else []
    if len(spec.seeds) == len(spec.task) == 1 and said:
        said = [f"with 1 seed nothing is decided: {said[0]}", *said[1:]]
    return " ".join(f"{one[:1].upper()}{one[1:]}." for one in said)


def found(comparison: Comparison) -> list[Found]:
    """What the first and the last question rest on: numbers of the most alike learner, what is said of all."""
    spec, made = comparison.spec, []
    asked = {CONTRAST: (_labels, "cosine of what labels change")}
    if (whole := _whole_metric(comparison)) is not None:
        asked[whole] = (_whole, f"{comparison.metrics[whole].title} of whole updates")
    alone = len(spec.seeds) == len(spec.task) == 1
    for metric, (question, title) in asked.items():
        judged = {c: one for c in spoken_of(comparison) if (one := question(comparison, c.label)) is not None}
        if judged:
            own = _estimate(comparison, max(judged, key=lambda choice: judged[choice].value).label, metric)
            verdict = "nothing is decided, with 1 seed" if alone else _verdict(comparison, judged)
            made.append(Found(title, Number(own.mean, own.low, own.high), verdict))
    return made


def _verdict(comparison: Comparison, judged: dict[Choice, Judged]) -> str:
    """What is said of all learners, or of which of them; and what was left out to say it, as in the answer."""
    said: dict[str, list[str]] = {}
    for choice, one in judged.items():
        said.setdefault(one.verdict, []).append(_name(comparison, choice))
    words = [f"{verdict} ({', '.join(names)})" if len(said) > 1 else verdict for verdict, names in said.items()]
    lost = diverged(comparison)
    chosen = len(spoken_of(comparison)) + len(lost) < len(comparison.spec.trained)
    left_out = f"{', at the most favourable of several rates' * chosen}{', without what diverged' * bool(lost)}"
    return f"{' and '.join(words)}{left_out}"


def _asked(
    comparison: Comparison, learners: list[Choice], question: Callable[[Comparison, str], Judged | None]
) -> list[str]:
    """The verdicts on one question, each with the learners that it is true of."""
    verdicts: dict[str, dict[str, Judged]] = {}
    for choice in learners:
        if (found := question(comparison, choice.label)) is not None:
            verdicts.setdefault(found.verdict, {})[_name(comparison, choice)] = found
    return [_said(verdict, judged, len(learners)) for verdict, judged in verdicts.items()]


def _said(verdict: str, judged: dict[str, Judged], of: int) -> str:
    """A verdict with the numbers of the most alike of its learners, and whose it is where there are several."""
    foremost = max(judged, key=lambda name: judged[name].value)
    numbers, whose = judged[foremost].numbers, ", ".join(judged)
    if not numbers:
        return f"{verdict} ({whose})" if of > 1 else verdict
    if len(judged) > 1:
        whose = f"{foremost}, the most alike of {counted(of, 'learner') if len(judged) == of else whose}"
    return f"{verdict}: {numbers} ({whose})"


def _name(comparison: Comparison, choice: Choice) -> str:
    """The kind says it all, unless there are several of it."""
    alone = sum(other.kind == choice.kind for other in comparison.spec.trained) == 1
    return choice.kind if alone else choice.label


def _labels(comparison: Comparison, learner: str) -> Judged | None:
    """Whether what labels change is alike in reading and in training."""
    own = _estimate(comparison, learner, CONTRAST)
    if own.mean != own.mean:
        return None
    nulls, level = _level(comparison, learner, CONTRAST)
    shown = f"cosine {Number(own.mean, own.low, own.high)}"
    if nulls and not level and own.low > 0:
        verdict = "what labels change is more alike in reading and training than in every null that was run"
        return Judged(verdict, own.mean, shown)
    verdict = "what labels change is not shown to be alike in reading and training"
    return Judged(verdict, own.mean, _beside(shown, level))


def _learned(comparison: Comparison, learner: str) -> Judged | None:
    """Whether training told right labels from wrong ones at all.

    The rate was chosen by this very number, and there may be many learners: the table's rows, for which it is
    corrected, have all of both. Where training on wrong labels diverged in some draws, those that are left may be a
    selection.
    """
    own = {"init": comparison.spec.init[0], "metric": "accuracy", "learner": learner}
    wrong = {**own, "null": "wrong-labels"}
    if apart(comparison, own, wrong) is None:
        return None
    told = _above(comparison, own, wrong)
    labels = "the labels" if comparison.balanced else "the labels or their frequencies"
    return Judged(f"training {'learned' if told else 'is not shown to learn'} {labels}")


def _whole(comparison: Comparison, learner: str) -> Judged | None:
    """The whole update: how alike, and which null or untrained model comes nearest among those it is not above."""
    spec, metric = comparison.spec, _whole_metric(comparison)
    if metric is None:
        return None
    own, title = _estimate(comparison, learner, metric), comparison.metrics[metric].title
    nulls, level = _level(comparison, learner, metric)
    for init in spec.init[1:]:
        base = {"init": spec.init[0], "metric": metric, "learner": learner}
        if not _above(comparison, base, {**base, "init": init}):
            level[f"a model with {init} weights"] = comparison.estimate(
                spec.task, spec.position, **{**base, "init": init}
            )
    if not nulls and len(spec.init) == 1:
        return Judged(f"{title} of whole updates has no null beside it", own.mean, _value(own))
    if not level:
        verdict = f"{title} of whole updates is above that of every null and untrained model that was run"
        return Judged(verdict, own.mean, _value(own))
    verdict = f"{title} of whole updates is not shown above its nearest rival"
    return Judged(verdict, own.mean, _beside(_value(own), level))


def _whole_metric(comparison: Comparison) -> str | None:
    return next((name for name, m in comparison.metrics.items() if m.by == "layer" and not m.contrast), None)


def _level(comparison: Comparison, learner: str, metric: str) -> tuple[list[str], dict[str, Estimate]]:
    """The nulls there are, and by title those that the learner is not above.

    A control, such as two wrong labelings, is as alike as labels can be and no null.
    """
    base = {"init": comparison.spec.init[0], "metric": metric, "learner": learner}
    known = {}
    for null in comparison.known("null"):
        found = _estimate(comparison, learner, metric, null=null)
        if found.mean == found.mean and not is_control(null):
            known[null] = found
    level = {null: found for null, found in known.items() if not _above(comparison, base, {**base, "null": null})}
    return list(known), {title_of(null): found for null, found in level.items()}


def _above(comparison: Comparison, own: dict[str, str], other: dict[str, str]) -> bool:
    """Whether the table of their metric calls the first above the second, corrected for all of its rows.

    What some task or draw does not have is nothing to be above: what is left may be a selection.
    """
    found = apart(comparison, own, other)
    return found is not None and found.verdict == "above"


def _beside(own: str, level: dict[str, Estimate]) -> str:
    """A learner's number and the largest of those it is not above."""
    rivals = {title: found for title, found in level.items() if found.mean == found.mean}
    if not rivals:
        return own
    nearest = max(rivals, key=lambda title: rivals[title].mean)
    return f"{own}, {nearest} {_value(rivals[nearest])}"


def _estimate(comparison: Comparison, learner: str, metric: str, **more: str) -> Estimate:
    spec = comparison.spec
    return comparison.estimate(spec.task, spec.position, init=spec.init[0], learner=learner, metric=metric, **more)


def _value(found: Estimate) -> str:
    return str(Number(found.mean))
