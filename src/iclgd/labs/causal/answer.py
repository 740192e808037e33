"""The answer in words: what carries reading's effect, what training's layers have of it, which heads it needs."""

from typing import Any

import numpy as np

from iclgd.labs.causal.beside import Beside
from iclgd.labs.causal.heads import Heads
from iclgd.labs.causal.tables import NULLS, foremost, shown
from iclgd.labs.causal.view import View, mean
from iclgd.metrics.differences import difference, differences, holm, over_draws
from iclgd.report.found import Found
from iclgd.report.numbers import Number

HALF = 0.5
Shares = np.ndarray  # (task, seed, query, layer)
Place = dict[str, Any]


def answer(view: View) -> str:
    return " ".join(filter(None, (reading(view), trained(view), taken_out(view), view.spec.one_draw)))


def reading(view: View) -> str:
    init, rate = view.spec.init[0], view.spec.rates[0]
    places = (init, rate, "icl", "zero-shot", False)
    single = view.layer_shares(*places, site="attention")
    best = foremost(single)
    if best is None:
        return ""
    whole, null, noise = (
        mean(view.layer_shares(*places, site="attention", null=name, layers="all"))
        for name in (None, "other query", "random")
    )
    layer, most = best
    return (
        f"{_alone(single)} what reading does to the label margins: attention of layer {layer} of "
        f"{single.shape[-1] - 1}, the foremost and chosen after the fact, carries {shown(most)}. All layers together "
        f"carry {shown(whole)}, another query's update {shown(null)}, a random one as long {shown(noise)}."
    )


def found(view: View) -> list[Found]:
    """What the first sentence rests on."""
    single = view.layer_shares(view.spec.init[0], view.spec.rates[0], "icl", "zero-shot", False, site="attention")
    best = foremost(single)
    if best is None:
        return []
    words, most = _alone(single), best[1]
    what, number = "share of the foremost layer, chosen after the fact,", Number(most.mean, most.low, most.high, 2)
    return [Found(what, number, f"{words[:1].lower()}{words[1:]} reading's effect")]


def _alone(single: Shares) -> str:
    """Whether some layer carries half: shown for one of them, corrected for all (Holm), or against every one."""
    apart = [over_draws(one) for one in differences(single, np.full_like(single, HALF))]
    if all(one.verdict == "below" for one in apart):
        return "No single layer carries half of"
    if any(one.verdict == "above" for one in holm(apart)):
        return "One layer carries half or more of"
    return "No single layer is shown to carry half of"


def trained(view: View) -> str:
    """What training's attention has of reading's effect, and whether its heads are reading's, each beside its nulls."""
    found = carried(view)
    if found.rate is None:
        return "Finetuning diverged at every rate."
    carries = (
        f"Training's attention{found.chosen()} carries {shown(mean(found.own[found.rate]))} of reading's effect, "
        f"{found.said()}."
    )
    return " ".join(filter(None, (carries, Heads(view).said())))


def carried(view: View) -> Beside:
    """The share of reading's effect that training's attention carries in all layers; its nulls, untrained weights."""
    first, *others = view.spec.init

    places: dict[str, Place] = {title: {"init": first, "null": null} for null, title in NULLS.items()}
    places |= {f"{init} weights": {"init": init, "null": None} for init in others}
    itself: Place = {"init": first, "null": None}

    def values(rate: float, place: Place, beside: Place | None = None) -> np.ndarray:
        along: Place = {"source": "gd", "into": "zero-shot", "of": "icl", "site": "attention", "layers": "all"}
        return view.layer_shares(rate=rate, centred=False, beside=beside, **place, **along)

    def pair(rate: float, title: str) -> tuple[np.ndarray, np.ndarray]:
        return values(rate, itself, places[title]), values(rate, places[title], itself)

    own = {rate: values(rate, itself) for rate in view.spec.rates}
    nulls = {rate: {title: values(rate, place) for title, place in places.items()} for rate in own}
    return Beside(view, own, nulls, pair=pair)


def taken_out(view: View) -> str:
    """Whether sets of heads leave less of reading's effect than random ones do: what is said of several, once."""
    scores = view.known_scores()
    left = {score: (view.left(score), view.random_left(score).mean(0)) for score in scores}
    apart = holm([difference(random, top) for top, random in left.values()])
    less = {"above": "less than", "below": "more than", "undecided": "not shown to be less than"}
    told = dict[str, list[str]]()
    for (score, (top, random)), found in zip(left.items(), apart, strict=True):
        beside = Number(mean(random).mean, digits=2)
        told.setdefault(less[found.verdict], []).append(f"by {score} {shown(mean(top))}, random {beside}")
    if not told:
        return ""
    heads = "head" if view.spec.heads == 1 else f"{view.spec.heads} heads"
    said = ", ".join(f"{how} without random ones ({'; '.join(those)})" for how, those in told.items())
    return f"What is left of reading's effect without the foremost {heads} is {said}."
