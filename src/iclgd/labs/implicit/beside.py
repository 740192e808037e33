"""How alike patches and training are beside every null: paired differences, and the sentence that they allow."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from iclgd.labs.implicit.alike import NOISE
from iclgd.labs.implicit.view import WHOLE, Values, View, number
from iclgd.metrics.differences import Difference, bounds_apart, difference, holm, nearest, over_draws
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
    draws, where there is one. It is chosen after the fact, so p-values are corrected for all that it is chosen from.
    """

    view: View

    @property
    def init(self) -> str:
        return self.view.spec.init[0]

    @cached_property
    def rate(self) -> float | None:
        return self.view.most_alike(self.init)

    def nulls(self, quantity: str, patch: str, rate: float | None = None) -> dict[str, Values]:
        """By title: those that were run, and the same in weights that were not trained; at the rate spoken of."""
        at = self.rate if rate is None else rate
        if at is None:
            return {}
        cosines = self.view.cosines
        found = {title: cosines(self.init, quantity, patch, at, null) for null, title in NULLS.items()}
        found |= {f"{init} weights": cosines(init, quantity, patch, at) for init in self.view.spec.init[1:]}
        return {title: values for title, values in found.items() if np.isfinite(values).any()}

    @cached_property
    def differences(self) -> dict[tuple[str, str, str], Difference]:
        """By quantity, patch and null's title; corrected for these and for those at the other rates (Holm).

        No family has a difference of which one draw is left.
        """
        places, found = [], []
        for rate in self.view.eligible(self.init):
            for quantity in ("cosine", "contrast"):
                for patch in PATCHES:
                    own = self.view.cosines(self.init, quantity, patch, rate)
                    for title, values in self.nulls(quantity, patch, rate).items():
                        places.append((rate, quantity, patch, title))
                        found.append(over_draws(difference(own, values, bounds_apart(COSINE))))
        known = zip(places, holm(found), strict=True)
        return {(quantity, patch, title): one for (rate, quantity, patch, title), one in known if rate == self.rate}

    def table(self) -> Table:
        rows: list[list[Entry]] = []
        for (quantity, patch, title), one in self.differences.items():
            part = "" if quantity == "cosine" else ", labels' part"
            name = f"{PATCHES[patch]}{part} − {title}"
            rows.append([name, number(one.estimate, 3), p_value(one.corrected), one.verdict])
        return Table(["", "difference", "p (Holm)", "first is"], rows)

    @cached_property
    def nearest(self) -> tuple[str, bool] | None:
        """The null that the sentence names, and whether the patch for all queries is above every one."""
        apart = {title: self.differences["cosine", WHOLE, title] for title in self._given}
        return nearest(apart, self._given)

    @cached_property
    def _given(self) -> dict[str, Estimate]:
        return {title: estimate(values, COSINE) for title, values in self.nulls("cosine", WHOLE).items()}

    def said(self) -> str:
        """No stronger than the comparison with the highest null that it is not above."""
        if self.nearest is None:
            return "beside no null"
        title, above = self.nearest
        shown = number(self._given[title], 3)
        if above:
            return f"more than every null (the highest, {title}: {shown})"
        return f"not shown to be more than the {shown} of one null, {title}"
