"""What training gives at several rates beside its nulls: the rate that is spoken of, and what may be said of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from iclgd.labs.causal.view import View, mean
from iclgd.metrics.crossed import Bounds
from iclgd.metrics.differences import Difference, bounds_apart, difference, holm, nearest, over_draws
from iclgd.report.numbers import Number

Values = np.ndarray  # (task, seed, query or one)


@dataclass(frozen=True, eq=False)
class Beside:
    """Of every rate its own values and, by title, those of its nulls.

    The rate that is spoken of is the one with the largest mean, of those at which no draw diverged where there is one:
    chosen after the fact, so that p-values are corrected for all rates and nulls (Holm).
    """

    view: View
    own: Mapping[float, Values]
    nulls: Mapping[float, Mapping[str, Values]]
    bounds: Bounds | None = None  # of what the values are
    pair: Callable[[float, str], tuple[Values, Values]] | None = None  # both on the draws that both have; else as above

    @cached_property
    def rate(self) -> float | None:
        known = {rate: mean(values).mean for rate, values in self.own.items()}
        known = {rate: one for rate, one in known.items() if one == one}
        steady = [rate for rate in known if not self.view.diverged(rate)]
        return max(steady or known, key=lambda rate: known[rate], default=None)

    @cached_property
    def differences(self) -> dict[tuple[float, str], Difference]:
        """Less what each null gives, by rate and title."""
        places = [
            (rate, title)
            for rate, nulls in self.nulls.items()
            for title, values in nulls.items()
            if values.shape == self.own[rate].shape and np.isfinite(values - self.own[rate]).any()
        ]
        apart = None if self.bounds is None else bounds_apart(self.bounds)
        found = holm([over_draws(difference(*self._pair(*place), apart)) for place in places])
        return dict(zip(places, found, strict=True))

    def _pair(self, rate: float, title: str) -> tuple[Values, Values]:
        return self.pair(rate, title) if self.pair is not None else (self.own[rate], self.nulls[rate][title])

    def chosen(self) -> str:
        """` at 0.1 (of 2 rates the one with most, chosen after the fact)`; in how many draws it diverged there."""
        assert self.rate is not None
        rates, said = self.view.spec.rates, []
        if len(rates) > 1:
            steady = [rate for rate in rates if not self.view.diverged(rate)]
            where = " where no draw diverged" if 0 < len(steady) < len(rates) else ""
            said.append(f"of {len(rates)} rates the one with most{where}, chosen after the fact")
        if lost := self.view.diverged(self.rate):
            said.append(f"diverged in {lost} of {self.view.draws} draws, which are left out")
        return f" at {self.rate:g}" + (f" ({'; '.join(said)})" if said else "")

    def said(self) -> str:
        """No surer than beside the highest null that it is not shown to be above."""
        assert self.rate is not None
        apart = {title: one for (rate, title), one in self.differences.items() if rate == self.rate}
        given = {title: mean(self.nulls[self.rate][title], self.bounds) for title in apart}
        found = nearest(apart, given)
        if found is None:
            return "beside no null"
        title, above = found
        shown = Number(given[title].mean, given[title].low, given[title].high, 2)
        return f"{'more than' if above else 'not shown to be more than'} the {shown} of the nearest null, {title}"
