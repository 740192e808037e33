"""Of a learner at several rates, the one that stands for it where there is room for one."""

from iclgd.choices import Choice
from iclgd.labs.compare.view import Comparison
from iclgd.metrics.differences import Difference


def by_learner(comparison: Comparison) -> dict[str, list[Choice]]:
    """The learners, each at the rates at which it never diverged."""
    lost, found = diverged(comparison), dict[str, list[Choice]]()
    for one in comparison.spec.trained:
        if one not in lost:
            found.setdefault(one.at_any_rate, []).append(one)
    return found


def spoken_of(comparison: Comparison) -> list[Choice]:
    """Of each learner the rate at which training tells right labels from wrong ones best, the first of those alike."""
    found = by_learner(comparison).values()
    return [max(some, key=lambda one: _told_apart(comparison, one)) if len(some) > 1 else some[0] for some in found]


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
