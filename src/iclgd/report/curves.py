"""Curves of training, in panels, seed by seed or all together, beside levels that training does not move."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from iclgd.report.charts import NULL, OWN, Looks, Series, lines
from iclgd.report.widgets import Widget

ALL = "all seeds"
TOLD = (
    "Means over seeds; bands, where there are few lines, hold all seeds. Choose a seed to see it alone. Dashed: "
    "learners that are not trained."
)


@dataclass(frozen=True, eq=False)
class Curve:
    """What a learner has in one panel, [seed, step]; a level, [seed], does not change with training.

    ``group``: where there are too many to be shown at once, those that are; nothing is shown with every group.
    """

    panel: str
    name: str
    values: np.ndarray
    group: str = ""


def curves(
    make: Callable[[], Sequence[Curve]],
    seeds: Sequence[int],
    steps: Sequence[int],
    about: str,
    x: str = "step",
    log: Sequence[str] = (),
    groups: str = "",
) -> Widget:
    """``log``: panels with a logarithmic scale; ``groups``: what the selector of groups is called."""
    choose = {"seed": "seed"} | ({"group": groups} if groups else {})
    looks = Looks(choose=choose, colour="name", x=x, log=tuple(log))
    return lines(lambda: list(_series(make(), seeds, len(steps))), [float(step) for step in steps], looks, about)


def _series(made: Sequence[Curve], seeds: Sequence[int], steps: int) -> Iterator[Series]:
    for one in made:
        flat = one.values.ndim == 1
        rows = np.repeat(one.values[:, None], steps, 1) if flat else one.values
        labels = {"panel": one.panel, "name": one.name, "role": NULL if flat else OWN, "group": one.group}
        band = (rows.min(0), rows.max(0)) if len(seeds) > 1 and not flat else ()
        yield Series({**labels, "seed": ALL}, rows.mean(0), *band)
        if len(seeds) > 1:
            for seed, row in zip(seeds, rows, strict=True):
                yield Series({**labels, "seed": str(seed)}, row)
