"""How far training went: its last losses, the length of its weight change, and how alike that is with wrong labels."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from iclgd.labs.compare.view import Comparison
from iclgd.metrics.estimates import COSINE, Estimate, estimate

SIZES = ("loss", "weight change")
ALIKE = "weight change, right and wrong labels"


def last(losses: np.ndarray) -> float:
    """The mean of the last quarter."""
    return float(losses[-max(1, len(losses) // 4) :].mean())


NUMBER: dict[str, Callable[[np.ndarray], float]] = {
    "loss": last,
    "weight change": lambda lengths: float(np.linalg.norm(lengths)),
    ALIKE: lambda cosines: float(np.nanmean(cosines)) if np.isfinite(cosines).any() else float("nan"),
}


def draws(comparison: Comparison, tasks: Sequence[str], learner: str, quantity: str) -> np.ndarray:
    """One number a training: [task, draw], nan where there is none and where it diverged."""
    init, seeds = comparison.spec.init[0], comparison.spec.seeds
    values = np.full((len(tasks), len(seeds)), np.nan)
    for row, task in zip(values, tasks, strict=True):
        lost = comparison.lost(init, task, learner)
        found = comparison.arrays(init=init, task=task, learner=learner, quantity=quantity)
        for place, seed in enumerate(seeds):
            if seed in found and seed not in lost:
                row[place] = NUMBER[quantity](found[seed].values)
    return values


def how_far(values: np.ndarray, quantity: str) -> Estimate:
    """Of [task, draw] the mean with its interval, over draws or over tasks; sizes have none that reaches below 0."""
    if quantity == ALIKE:
        return estimate(values[..., None], COSINE)
    found = estimate(values[..., None])
    return replace(found, low=max(found.low, 0.0))


def size_of(comparison: Comparison, learner: str, quantity: str) -> float:
    """Mean over tasks and draws of a learner's loss over its last demonstrations, or of its weight change's length."""
    return how_far(draws(comparison, comparison.spec.task, learner, quantity), quantity).mean
