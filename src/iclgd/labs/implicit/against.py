"""One patch for all queries against training of the same matrices, on the same held-out queries: paired differences."""

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from iclgd.labs.implicit.view import CHOSEN, WHOLE, Measure, Values, View, distance, mean, number, shares
from iclgd.metrics.crossed import Bounds
from iclgd.metrics.differences import Difference, difference, holm, over_draws
from iclgd.metrics.estimates import COSINE
from iclgd.metrics.margins import missed, recovered
from iclgd.report.numbers import Number, p_value
from iclgd.report.page import Entry, Table

AGREES, MISSED, RECOVERED, ACCURACY = "agrees with icl", "margins missed", "margins recovered", "accuracy"
NEARER = {AGREES: "above", MISSED: "below"}  # what says that the patch is the nearer one to reading


@dataclass(frozen=True, eq=False)
class Against:
    """The matrix fitted on all calibration queries, and gd at each episode's rate of those queries."""

    view: View

    @property
    def init(self) -> str:
        return self.view.spec.init[0]

    @cached_property
    def pairs(self) -> dict[str, tuple[Values, Values]]:
        """Of the patch and of training, by what is measured; margins without the mean shift.

        A draw that one of them lost counts for neither.
        """
        patch: dict[str, Any] = {"patch": WHOLE, "fitted": self.view.most}
        gd: dict[str, Any] = {"patch": "gd", "demos": "right", "rate": CHOSEN}

        def both(measure: Any) -> tuple[Values, Values]:
            one, two = measure(self.init, **patch), measure(self.init, **gd)
            if one.shape != two.shape:  # one of them was lost in every draw
                return one, np.full_like(one, np.nan)
            known = np.isfinite(one) & np.isfinite(two)
            return np.where(known, one, np.nan), np.where(known, two, np.nan)

        def shared(measure: Measure) -> tuple[Values, Values]:
            one, two = self.view.shares_of(measure, True, self.init, "held", patch, gd)
            return one, two

        found = {
            AGREES: both(self.view.agreeing),
            MISSED: shared(missed),
            RECOVERED: shared(recovered),
            ACCURACY: both(self.view.right),
        }
        return {name: pair for name, pair in found.items() if all(np.isfinite(one).any() for one in pair)}

    @cached_property
    def differences(self) -> dict[str, Difference]:
        """Patch minus training, corrected for all of them (Holm)."""
        found = [over_draws(difference(*pair, bounds=_bounds(name))) for name, pair in self.pairs.items()]
        return dict(zip(self.pairs, holm(found), strict=True))

    @cached_property
    def chosen(self) -> Counter[float | None]:
        """In how many draws a rate was chosen; none, where training diverged at every rate."""
        spec = self.view.spec
        return Counter(self.view.nearest_rate(self.init, task, seed) for task in spec.task for seed in spec.seeds)

    @property
    def rates(self) -> str:
        """`0.01 in 3 of 4 draws, 0.1 in 1`."""
        chosen = self.chosen
        shown = [f"{rate:g} in {chosen[rate]}" for rate in self.view.spec.rates if chosen[rate]]
        if chosen[None]:
            shown.append(f"none in {chosen[None]}, where it diverged at every rate")
        return f"{', '.join(shown)} of {sum(chosen.values())}"

    def table(self) -> Table:
        rows: list[list[Entry]] = []
        for name, one in self.differences.items():
            level = shares if _bounds(name) else distance if name == MISSED else mean
            levels = [number(level(values)) for values in self.pairs[name]]
            rows.append([name, *levels, number(one.estimate), p_value(one.corrected), one.verdict])
        return Table(["", "matrix", "gd", "matrix − gd", "p (Holm)", "matrix is"], rows)

    @property
    def note(self) -> str:
        return (
            "The patch for all queries minus gradient descent on the same matrices, on the same draws and held-out "
            "queries; p-values corrected for all rows (Holm). Margins: without the mean shift; missed: Σ‖e' − e‖² / "
            "Σ‖e‖² of what each changes (e') and reading changes (e), 0 for reading itself, 1 for doing nothing. The "
            "rate of gd is not chosen on these queries: in each draw it is the one that misses least on the "
            f"calibration queries (draws by rate: {self.rates}). The patch was fitted to what reading does on "
            "the calibration queries; gd has seen the demonstrations alone."
        )

    def said(self) -> str:
        """Whether the patch is nearer to reading than training: by agreement, and by the margins."""
        found = self.differences
        if not set(NEARER) <= set(found):
            return ""
        opposite = {"above": "below", "below": "above"}
        nearer = [name for name, way in NEARER.items() if found[name].verdict == way]
        farther = [name for name, way in NEARER.items() if found[name].verdict == opposite[way]]
        if nearer and farther:
            says = f"The patch is nearer to reading by one of two, {nearer[0]}, and farther by the other, than training"
        elif nearer or farther:
            some = "" if len(nearer + farther) == 2 else f" by one of two, {(nearer + farther)[0]},"
            says = f"The patch is {'nearer to' if nearer else 'farther from'} reading{some} than training"
        else:
            says = "Neither is shown to be the nearer one to reading"
        lost = self.chosen[None]
        out = f" ({lost} of {self.view.draws} draws, where it diverged at every rate, are left out)" if lost else ""
        at = " (training at the rate that misses least on the others)" if len(self.view.spec.rates) > 1 else ""
        return (
            f"{says}{at}{out}: the patch misses {self._pair(MISSED)}, and answers as reading does in "
            f"{self._pair(AGREES)}."
        )

    def _pair(self, name: str) -> str:
        one, two = (Number(mean(values).mean, digits=2) for values in self.pairs[name])
        p = self.differences[name].corrected
        return f"{one}, training {two}" + (f" (p {p_value(p)})" if p == p else "")


def _bounds(name: str) -> Bounds | None:
    return COSINE if name in (AGREES, ACCURACY) else None  # of a difference of shares
