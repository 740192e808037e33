"""Single heads from one run into another: reading's into the finetuned model and back, beside those in zero-shot."""

from dataclasses import dataclass

import numpy as np

from iclgd.labs.causal.heads import beside_reading, carried_together, ranks
from iclgd.labs.causal.tables import shown
from iclgd.labs.causal.view import CORRELATION, HeadRuns, View, mean
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

    def row(self) -> list[Entry] | None:
        single = self.view.single_heads(self.runs)
        if not np.isfinite(single).any():
            return None
        means = np.nanmean(single, (0, 1, 2))
        layer, head = divmod(int(means.argmax()), means.shape[1])
        carries = [single[..., layer, head], single.sum((-2, -1)), carried_together(self.view, self.runs)]
        like: list[Entry] = [""]
        if self.rate is not None:
            like = [shown(mean(beside_reading(self.view, self.runs, ranks), CORRELATION))]
        return [f"layer {layer}, head {head}", *(shown(mean(one)) for one in carries), *like]


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
