"""Single heads from one run into another: reading's into the finetuned model and back, beside those in zero-shot."""

from dataclasses import dataclass

import numpy as np
from scipy import stats

from iclgd.labs.causal.heads import carried_together
from iclgd.labs.causal.tables import shown
from iclgd.labs.causal.view import HeadRuns, View, mean, shares_of
from iclgd.metrics.margins import over_episodes
from iclgd.report.page import Entry, Table


@dataclass(frozen=True, eq=False)
class Exchanged:
    """Heads of ``source`` put one by one into ``into``; without a rate, reading's into the zero-shot run."""

    view: View
    source: str = "icl"
    into: str = "zero-shot"
    rate: float | None = None

    def runs(self, task: str, seed: int) -> HeadRuns | None:
        if self.into == "zero-shot" or self.rate is None:
            return self.view.head_runs(task, seed, self.rate)
        return self.view.exchanged_runs(task, seed, self.rate, self.source, self.into)

    def single(self) -> np.ndarray:
        """What each head carries of the way: (task, seed, layer·head)."""

        def of_episode(task: str, seed: int) -> np.ndarray | None:
            found = shares_of(self.runs(task, seed))
            return None if found is None else found.ravel()

        return over_episodes(self.view.spec.task, self.view.spec.seeds, of_episode)

    def likeness(self) -> np.ndarray:
        """Spearman's, over heads, of these shares and of reading's in the zero-shot run: (task, seed, 1)."""

        def of_episode(task: str, seed: int) -> np.ndarray | None:
            one, two = shares_of(self.runs(task, seed)), self.view.head_shares(task, seed)
            return None if one is None or two is None else np.array([stats.spearmanr(one.ravel(), two.ravel())[0]])

        return over_episodes(self.view.spec.task, self.view.spec.seeds, of_episode)

    def row(self) -> list[Entry] | None:
        single = self.single()
        if not np.isfinite(single).any():
            return None
        _, heads = self._shape()
        place = int(np.nanmean(single, (0, 1)).argmax())
        carries = [single[..., [place]], single.sum(-1, keepdims=True), carried_together(self.view, self.runs)]
        like: Entry = "" if (self.source, self.into) == ("icl", "zero-shot") else shown(mean(self.likeness()))
        return [f"layer {place // heads}, head {place % heads}", *(shown(mean(one)) for one in carries), like]

    def _shape(self) -> tuple[int, int]:
        places = [(task, seed) for task in self.view.spec.task for seed in self.view.spec.seeds]
        found = next(one for place in places if (one := self.runs(*place)) is not None)[0]
        return found.shape[0], found.shape[1]


def table(view: View) -> Table:
    """From which run into which: the foremost head, all of them, the foremost ones, and whether they are reading's."""
    ways = [Exchanged(view)]
    for rate in view.spec.rates:
        ways += [Exchanged(view, *way, rate) for way in (("gd", "zero-shot"), ("icl", "gd"), ("gd", "icl"))]
    rows: list[list[Entry]] = []
    for way in ways:
        name = f"{way.source} into {way.into}{'' if way.rate is None else f', {way.rate:g}'}"
        if (found := way.row()) is not None:
            rows.append([name, *found])
    header = ["", "foremost head", "its share", "sum of single heads", "foremost together", "rank correlation"]
    return Table(header, rows)
