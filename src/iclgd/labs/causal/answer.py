"""The answer in words: what carries reading's effect, what training's layers have of it, which heads it needs."""

import numpy as np

from iclgd.labs.causal.heads import Heads
from iclgd.labs.causal.tables import foremost, shown
from iclgd.labs.causal.view import View, mean
from iclgd.metrics.differences import difference, holm
from iclgd.metrics.estimates import Estimate

HALF = 0.5


def answer(view: View) -> str:
    return " ".join(filter(None, (reading(view), trained(view), taken_out(view))))


def reading(view: View) -> str:
    init, rate = view.spec.init[0], view.spec.rates[0]
    places = (init, rate, "icl", "zero-shot", False)
    single = view.layer_shares(*places, site="attention")
    best = foremost(single)
    if best is None:
        return ""
    null, noise = (
        mean(view.layer_shares(*places, site="attention", null=name, layers="all"))
        for name in ("other query", "random")
    )
    layer, most = best
    return (
        f"{_alone(most)} what reading does to the label margins: attention of layer {layer} of "
        f"{single.shape[-1] - 1}, the foremost and chosen after the fact, carries {shown(most)}. Another query's "
        f"update in all layers carries {shown(null)}, a random one as long {shown(noise)}."
    )


def _alone(most: Estimate) -> str:
    """Whether one layer carries half, no surer than the interval."""
    if most.kind not in ("draws", "tasks") or most.low < HALF <= most.high:  # one draw decides nothing
        return "No single layer is shown to carry half of"
    return "One layer carries half or more of" if most.low >= HALF else "No single layer carries half of"


def trained(view: View) -> str:
    """At the rate where training has most of reading's effect: chosen after the fact, and it says so."""
    init = view.spec.init[0]
    places = {"source": "gd", "into": "zero-shot", "of": "icl", "site": "attention", "layers": "all"}
    known = {rate: mean(view.layer_shares(init, rate, centred=False, **places)) for rate in view.spec.rates}
    known = {rate: one for rate, one in known.items() if np.isfinite(one.mean)}
    if not known:
        return "Finetuning diverged at every rate."
    rate = max(known, key=lambda rate: known[rate].mean)
    chosen = f" (of {len(known)} rates the one with most)" if len(known) > 1 else ""
    carries = f"Training's attention at {rate:g}{chosen} carries {shown(known[rate])} of it in all layers together."
    return " ".join(filter(None, (carries, Heads(view).said(rate))))


def taken_out(view: View) -> str:
    parts, scores = [], view.known_scores()
    left = {score: (view.left(score), view.random_left(score).mean(0)) for score in scores}
    apart = holm([difference(random, top) for top, random in left.values()])
    less = {"above": "less than", "below": "more than", "undecided": "not shown to be less than"}
    for (score, (top, random)), found in zip(left.items(), apart, strict=True):
        than = less[found.verdict]
        parts.append(f"{shown(mean(top))} by {score}, {than} the {shown(mean(random))} of random heads")
    if not parts:
        return ""
    heads = "head" if view.spec.heads == 1 else f"{view.spec.heads} heads"
    return f"Left of it without the foremost {heads}: {'; '.join(parts)}."
