"""The tables of `causal`."""

from typing import Any

import numpy as np

from iclgd.labs.causal.ground import SWAPS
from iclgd.labs.causal.view import CORRELATION, SCORES, View, by_layer, mean, shares
from iclgd.metrics.differences import difference
from iclgd.metrics.estimates import Estimate
from iclgd.report.numbers import Number
from iclgd.report.page import Entry, Table

NULLS = {"other query": "another query's update", "random": "random, as long"}


def shown(found: Estimate, digits: int = 2) -> Entry:
    return Number(found.mean, found.low, found.high, digits) if np.isfinite(found.mean) else "n/a"


# layers


def foremost(values: np.ndarray) -> tuple[int, Estimate] | None:
    """The layer that carries most, and how much: chosen after the fact, the most favourable reading."""
    found = by_layer(values)
    if not found:
        return None
    layer = max(range(len(found)), key=lambda i: found[i].mean)
    return layer, found[layer]


def halfway(values: np.ndarray) -> str:
    """The block from which on half of the way and more is gone."""
    found = [one.mean for one in by_layer(values)]
    ok = [i for i in range(len(found)) if all(x >= 0.5 for x in found[i:])]
    return f"{ok[0]} of {len(found) - 1}" if ok else "n/a"


def layers(view: View) -> Table:
    """From which run into which: the foremost layer's attention, all layers one by one and together, and the stream."""
    header = ["", "foremost layer", "its share", "sum of single layers", "all layers", "half is in the stream after"]
    rows: list[list[Entry]] = []
    for init in view.spec.init:
        for rate in view.spec.rates:
            for source, into in SWAPS:
                if "gd" not in (source, into) and rate != view.spec.rates[0]:
                    continue
                trained = f" {rate:g}" if "gd" in (source, into) else ""
                name = f"{source} into {into}{trained}{'' if init == view.spec.init[0] else f', {init}'}"
                rows.append([name, *_row(view, init, rate, source, into)])
                if into == "zero-shot" and init == view.spec.init[0]:
                    rows += [
                        [f"  {title}", *_row(view, init, rate, source, into, null)] for null, title in NULLS.items()
                    ]
    return Table(header, rows)


def _row(view: View, init: str, rate: float, source: str, into: str, null: str | None = None) -> list[Entry]:
    places = (init, rate, source, into, False)
    single = view.layer_shares(*places, site="attention", null=null)
    whole = view.layer_shares(*places, site="attention", null=null, layers="all")
    best = foremost(single)
    if best is None:
        return ["n/a"] * 5
    stream = halfway(view.layer_shares(*places, site="blocks", null=null))
    return [str(best[0]), shown(best[1]), shown(mean(single.sum(-1))), shown(mean(whole)), stream]


def training(view: View) -> Table:
    """What training's layers do of reading's effect, and reading's layers of training's."""
    header = ["", "all layers", "without the mean shift", "foremost layer", "its share"]
    rows: list[list[Entry]] = []
    for init in view.spec.init:
        for rate in view.spec.rates:
            for source, of in (("gd", "icl"), ("icl", "gd")):
                name = f"{source}'s layers, {of}'s effect, {rate:g}{'' if init == view.spec.init[0] else f', {init}'}"
                rows.append([name, *_along(view, init, rate, source, of)])
                if init == view.spec.init[0]:
                    rows += [
                        [f"  {title}", *_along(view, init, rate, source, of, null)] for null, title in NULLS.items()
                    ]
    return Table(header, rows)


def _along(view: View, init: str, rate: float, source: str, of: str, null: str | None = None) -> list[Entry]:
    places: dict[str, Any] = {"source": source, "into": "zero-shot", "of": of, "site": "attention", "null": null}
    whole = [mean(view.layer_shares(init, rate, centred=c, **places, layers="all")) for c in (False, True)]
    best = foremost(view.layer_shares(init, rate, centred=False, **places))
    last: list[Entry] = ["n/a", "n/a"] if best is None else [str(best[0]), shown(best[1])]
    return [*map(shown, whole), *last]


# heads


def heads(view: View) -> Table:
    """The heads that carry most of reading's effect into the zero-shot run, with their scores, in the mean."""
    episodes = [(task, seed) for task in view.spec.task for seed in view.spec.seeds]
    found = view.single_heads(view.head_runs)
    if not np.isfinite(found).any():
        return Table(["head"], [])
    carried = np.nanmean(found, (0, 1, 2))
    known = {
        name: np.mean(one, 0)
        for name in SCORES
        if (one := [x for place in episodes if (x := view.head_scores(*place, name)) is not None])
    }
    rows: list[list[Entry]] = []
    for place in np.argsort(-carried.ravel())[: view.spec.heads]:
        layer, head = divmod(int(place), carried.shape[1])
        scores = [Number(float(one[layer, head])) for one in known.values()]
        rows.append([f"layer {layer}, head {head}", Number(float(carried[layer, head])), *scores])
    like: list[Entry] = [shown(mean(view.rank_likeness(name), CORRELATION)) for name in known]
    rows.append(["rank correlation, all heads", "", *like])
    return Table(["head", "carries", *known], rows)


def ablated(view: View) -> Table:
    """What is left of reading without the foremost heads by each score, beside random heads of the same layers."""
    header = ["without", "accuracy", "effect left", "random sets [least most]", "random minus these", "as few left"]
    rows: list[list[Entry]] = [["no head", shown(shares(view.right())), *[""] * 4]]
    for score in view.known_scores():
        top, random = view.left(score), view.random_left(score)
        ends = np.nanmean(random, (1, 2, 3))
        rows.append(
            [
                f"{view.spec.heads} by {score}",
                shown(shares(view.right(score))),
                shown(mean(top)),
                Number(float(ends.mean()), float(ends.min()), float(ends.max()), 2),
                shown(difference(random.mean(0), top).estimate),
                Number(view.as_damaging(score), digits=2),
            ]
        )
    return Table(header, rows)
