"""Of a learner at several rates, the one that stands for it where there is room for one."""

from iclgd.choices import Choice
from iclgd.labs.compare.view import Comparison
from iclgd.metrics.differences import Difference

CONTRAST = "contrast-AOU"


def by_learner(comparison: Comparison) -> dict[str, list[Choice]]:
    """The learners, each at the rates at which it never diverged."""
    lost, found = diverged(comparison), dict[str, list[Choice]]()
    for one in comparison.spec.trained:
        if one not in lost:
            found.setdefault(one.at_any_rate, []).append(one)
    return found


def spoken_of(comparison: Comparison) -> list[Choice]:
    """Of each learner the rate at which training tells right labels from wrong ones best, the first of those alike.

    Where no wrong labels were trained on it is the rate that is most alike. A rate that changes nothing, which is like
    nothing, comes last.
    """

    def best(choice: Choice) -> tuple[bool, float]:
        alike = _alike(comparison, choice)
        return alike == alike, _told_apart(comparison, choice) if has_wrong_labels(comparison) else alike

    found = by_learner(comparison).values()
    return [max(some, key=best) if len(some) > 1 else some[0] for some in found]


def has_wrong_labels(comparison: Comparison) -> bool:
    """Whether there is training on wrong labels to tell right ones from."""
    return "wrong-labels" in comparison.known("null") and "accuracy" in comparison.metrics


def diverged(comparison: Comparison) -> list[Choice]:
    """Learners that diverged somewhere."""
    spec = comparison.spec
    return [one for one in spec.trained if any(comparison.diverged(spec.init[0], t, one.label) for t in spec.task)]


def learned_labels(comparison: Comparison, choice: Choice) -> Difference | None:
    """Accuracy after training on right labels less on wrong ones; None where there are no wrong ones."""
    base = {"init": comparison.spec.init[0], "metric": "accuracy", "learner": choice.label}
    return comparison.difference(comparison.spec.task, None, base, {**base, "null": "wrong-labels"})


def _told_apart(comparison: Comparison, choice: Choice) -> float:
    found = learned_labels(comparison, choice)
    return 0.0 if found is None else found.estimate.mean


def _alike(comparison: Comparison, choice: Choice) -> float:
    """How alike what labels change is or, where that was not asked for, the whole update; nan where it has none."""
    spec, labels = comparison.spec, {"init": comparison.spec.init[0], "learner": choice.label}
    whole = [name for name, m in comparison.metrics.items() if m.by == "layer" and not m.contrast][:1]
    known = [comparison.estimate(spec.task, spec.position, metric=name, **labels).mean for name in (CONTRAST, *whole)]
    return next((mean for mean in known if mean == mean), float("nan"))
