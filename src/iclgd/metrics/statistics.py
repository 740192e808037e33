"""Two textbook intervals for what has one number a draw, or one share: Student's and Wilson's."""

from collections.abc import Sequence

import numpy as np
from scipy import stats


def half_width(values: Sequence[float], level: float = 0.95) -> float:
    """Half of Student's t interval of the mean of a few values, as over seeds; nan below two."""
    if len(values) < 2:
        return float("nan")
    return float(stats.t.ppf((1 + level) / 2, len(values) - 1) * np.std(values, ddof=1) / len(values) ** 0.5)


def share_interval(successes: int, total: int, level: float = 0.95) -> tuple[float, float]:
    """Wilson's interval of a share."""
    found = stats.binomtest(successes, total).proportion_ci(level, method="wilson")
    return float(found.low), float(found.high)
