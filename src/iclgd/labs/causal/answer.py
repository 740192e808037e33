"""The answer in words: what carries reading's effect, what training's layers have of it, which heads it needs."""

import numpy as np

from iclgd.labs.causal.tables import foremost, shown
from iclgd.labs.causal.view import View, mean
from iclgd.metrics.differences import difference


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
    return (
        f"Put into the zero-shot run at the prompt's last token, no layer's attention carries more than "
        f"{shown(best[1])} of what reading does to the label margins (layer {best[0]} of {single.shape[-1] - 1}, "
        f"chosen after the fact); the single layers add up to {shown(mean(single.sum(-1)))}, all together carry all of "
        f"it by construction, and another query's update in all layers carries {shown(null)}, a random one as "
        f"long {shown(noise)}."
    )


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
    centred = mean(view.layer_shares(init, rate, centred=True, **places))
    back = foremost(view.layer_shares(init, rate, "icl", "gd", False, site="attention"))
    also = (
        ""
        if back is None
        else f" Into the finetuned model reading's foremost layer, {back[0]}, carries {shown(back[1])}."
    )
    return (
        f"Training's attention at {rate:g}{chosen} carries {shown(known[rate])} of reading's effect in all layers "
        f"together, {shown(centred)} without the shift that all queries share.{also}"
    )


def taken_out(view: View) -> str:
    parts = []
    for score in view.known_scores():
        top, random = view.left(score), view.random_left(score).mean(0)
        verdict = difference(random, top).estimate
        less = "fewer than" if verdict.low > 0 else "more than" if verdict.high < 0 else "no fewer for sure than"
        parts.append(f"{shown(mean(top))} by {score} ({less} the {shown(mean(random))} of random heads)")
    if not parts:
        return ""
    count = view.spec.heads
    return (
        f"Without the {count} foremost heads, what is left of reading's effect is {', '.join(parts)} of those layers."
    )
