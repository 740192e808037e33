"""Whether the heads that carry training's effect are those that carry reading's."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from scipy import stats

from iclgd.labs.causal.beside import Beside
from iclgd.labs.causal.tables import NULLS, shown
from iclgd.labs.causal.view import CORRELATION, Runs, View, mean, shares_of, way_of
from iclgd.metrics.estimates import SHARE
from iclgd.metrics.margins import over_episodes, shares_over_draws
from iclgd.report.numbers import Number, p_value
from iclgd.report.page import Entry, Table

Shares = np.ndarray  # (layer, head)
CHOSEN_ON, MEASURED_ON = slice(0, None, 2), slice(1, None, 2)  # queries


@dataclass(frozen=True, eq=False)
class Heads:
    """Heads of reading and of training, put into the zero-shot run one by one."""

    view: View

    # the same heads?

    def correlation(self, rate: float, null: str | None = None) -> np.ndarray:
        """Spearman's, over heads, of what reading's and training's carry: (task, seed, 1)."""
        return beside_reading(self.view, self._runs(rate, null), ranks)

    def common(self, rate: float, null: str | None = None) -> np.ndarray:
        """How many of the foremost heads of one are among the foremost of the other, as a share."""

        def value(one: Shares, two: Shares) -> float:
            first, second = (foremost(shares, self.view.spec.heads) for shares in (one, two))
            return float((first & second).sum() / first.sum())

        return beside_reading(self.view, self._runs(rate, null), value)

    def together(self, rate: float | None = None, null: str | None = None) -> np.ndarray:
        """The sum of what the foremost heads carry: chosen on every other query, measured on the rest."""

        return carried_together(self.view, self._runs(rate, null))

    def _runs(self, rate: float | None, null: str | None) -> Runs:
        return lambda task, seed: self.view.head_runs(task, seed, rate, null)

    @cached_property
    def beside(self) -> Beside:
        """The correlation at every rate, and what each null gives there."""
        rates = self.view.spec.rates
        own = {rate: self.correlation(rate) for rate in rates}
        nulls = {rate: {title: self.correlation(rate, null) for null, title in NULLS.items()} for rate in rates}
        return Beside(self.view, own, nulls, CORRELATION)

    # what is shown

    def table(self) -> Table:
        header = ["", "rank correlation", "less the null's", "p (Holm)", "in common", "they carry"]
        rows: list[list[Entry]] = [["icl", *[""] * 4, shown(mean(self.together()))]]
        for rate in self.view.spec.rates:
            for null, title in ((None, f"gd {rate:g}"), *NULLS.items()):
                less: list[Entry] = ["", ""]
                if one := self.beside.differences.get((rate, title)):
                    less = [shown(one.estimate), p_value(one.corrected)]
                first = shown(mean(self.correlation(rate, null), CORRELATION))
                rest = shown(mean(self.common(rate, null), SHARE)), shown(mean(self.together(rate, null)))
                rows.append([title if null is None else f"  {title}", first, *less, *rest])
        return Table(header, rows)

    def listed(self) -> Table:
        """The heads that carry most of training's effect, in the mean over episodes, with reading's beside."""
        rows: list[list[Entry]] = []
        for rate in self.view.spec.rates:
            which: tuple[dict[str, Any], ...] = ({"rate": rate}, {"rate": rate, "of": "icl"}, {})
            three = [self.view.single_heads(partial(self.view.head_runs, **one)) for one in which]
            if not all(np.isfinite(one).any() for one in three):
                continue
            own, of_reading, reading = (np.nanmean(one, (0, 1, 2)) for one in three)
            for place in np.argsort(-own.ravel())[: self.view.spec.heads]:
                at = divmod(int(place), own.shape[1])
                numbers = [Number(float(shares[at])) for shares in (own, of_reading, reading)]
                rows.append([f"gd {rate:g}: layer {at[0]}, head {at[1]}", *numbers])
        return Table(["head", "of gd's effect", "of icl's effect", "icl's own"], rows)

    def said(self) -> str:
        """Whether they are the same heads, at the rate where they are most so."""
        found = self.beside
        if found.rate is None:
            return ""
        return (
            f"What single heads carry in training{found.chosen()} and in reading has a rank correlation of "
            f"{shown(mean(found.own[found.rate], CORRELATION))}, {found.said()}."
        )


def ranks(one: Shares, two: Shares) -> float:
    """Spearman's correlation over heads."""
    return float(stats.spearmanr(one.ravel(), two.ravel())[0])


def beside_reading(view: View, runs: Runs, value: Callable[[Shares, Shares], float]) -> np.ndarray:
    """A value of reading's shares in the zero-shot run and of these, episode by episode: (task, seed, 1)."""

    def of_episode(task: str, seed: int) -> np.ndarray | None:
        one, two = view.head_shares(task, seed), runs(task, seed)
        return None if one is None or two is None else np.array([value(one, shares_of(two))])

    return over_episodes(view.spec.task, view.spec.seeds, of_episode)


def carried_together(view: View, runs: Runs) -> np.ndarray:
    """The sum of the single shares of the foremost heads, chosen on every other query and measured on the rest."""

    def of_episode(task: str, seed: int) -> tuple[np.ndarray, np.ndarray] | None:
        found = runs(task, seed)
        if found is None:
            return None
        chosen, measured = (shares_of(found, queries) for queries in (CHOSEN_ON, MEASURED_ON))
        carried = measured[foremost(chosen, view.spec.heads)].sum(keepdims=True)
        return carried, way_of(found, MEASURED_ON)

    return shares_over_draws(view.spec.task, view.spec.seeds, of_episode)


def foremost(shares: Shares, count: int) -> np.ndarray:
    """Where the largest ones are."""
    chosen = np.zeros(shares.size, dtype=bool)
    chosen[np.argsort(-shares.ravel(), kind="stable")[:count]] = True
    return chosen.reshape(shares.shape)
