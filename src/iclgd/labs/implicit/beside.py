"""How alike patches and training are beside every null: paired differences, and the sentence that they allow."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from iclgd.labs.implicit.alike import NOISE
from iclgd.labs.implicit.view import WHOLE, Values, View, number
from iclgd.metrics.differences import Difference, difference, holm, over_draws
from iclgd.metrics.estimates import COSINE, Estimate, estimate
from iclgd.nulls.reading import Filler, ReadWrongLabels
from iclgd.nulls.trained import OtherDemos, OtherTask, ShuffledLabels, WrongLabels
from iclgd.nulls.untrained import WeightNoise
from iclgd.report.numbers import p_value
from iclgd.report.page import Entry, Table

NULLS = {
    "wrong": WrongLabels.title,
    "shuffled": ShuffledLabels.title,
    "other demos": OtherDemos.title,
    "other task": OtherTask.title,
    "reading wrong": ReadWrongLabels.title,
    "reading filler": Filler.title,
    NOISE: WeightNoise.title,
}
PATCHES = {WHOLE: "one matrix", "own": "own patches"}


@dataclass(frozen=True, eq=False)
class Beside:
    """The cosine with training's update, and that of right minus wrong labels, less what each null gives.

    At the rate where the patch for all queries and training are most alike: the most favourable one that holds for all
    draws, where there is one.
    """

    view: View

    @property
    def init(self) -> str:
        return self.view.spec.init[0]

    @cached_property
    def rate(self) -> float | None:
        return self.view.most_alike(self.init)

    def own(self, quantity: str, patch: str) -> Values:
        return self._values(quantity, patch)

    def nulls(self, quantity: str, patch: str) -> dict[str, Values]:
        """By title: those that were run, and the same in weights that were not trained."""
        found = {title: self._values(quantity, patch, null=null) for null, title in NULLS.items()}
        found |= {f"{init} weights": self._values(quantity, patch, init) for init in self.view.spec.init[1:]}
        return {title: values for title, values in found.items() if np.isfinite(values).any()}

    def _values(self, quantity: str, patch: str, init: str | None = None, null: str | None = None) -> Values:
        if self.rate is None:
            return np.empty((0, 0, 0))
        return self.view.cosines(init or self.init, quantity, patch, self.rate, null)

    @cached_property
    def differences(self) -> dict[tuple[str, str, str], Difference]:
        """By quantity, patch and null's title; corrected for all that more than one draw is left of (Holm)."""
        places, found = [], []
        for quantity in ("cosine", "contrast"):
            for patch in PATCHES:
                own = self.own(quantity, patch)
                for title, values in self.nulls(quantity, patch).items():
                    places.append((quantity, patch, title))
                    found.append(over_draws(difference(own, values)))
        return dict(zip(places, holm(found), strict=True))

    def table(self) -> Table:
        rows: list[list[Entry]] = []
        for (quantity, patch, title), one in self.differences.items():
            part = "" if quantity == "cosine" else ", labels' part"
            name = f"{PATCHES[patch]}{part} − {title}"
            rows.append([name, number(one.estimate, 3), p_value(one.corrected), one.verdict])
        return Table(["", "difference", "p (Holm)", "first is"], rows)

    def level(self) -> dict[str, Estimate]:
        """The nulls that the patch for all queries is not shown to be above, with what they give."""
        nulls = self.nulls("cosine", WHOLE)
        return {
            title: estimate(values, COSINE)
            for title, values in nulls.items()
            if self.differences["cosine", WHOLE, title].verdict != "above"
        }

    def said(self) -> str:
        """No stronger than the comparison with the highest null that it is not above."""
        level, nulls = self.level(), self.nulls("cosine", WHOLE)
        if level:
            nearest = max(level, key=lambda title: level[title].mean)
            return f"not shown to be more than the {number(level[nearest], 3)} of one null, {nearest}"
        if not nulls:
            return "beside no null"
        found = {title: estimate(values, COSINE) for title, values in nulls.items()}
        highest = max(found, key=lambda title: found[title].mean)
        return f"more than every null (the highest, {highest}: {number(found[highest], 3)})"
