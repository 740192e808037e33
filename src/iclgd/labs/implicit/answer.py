"""The answer in words: is the prompt a change of weights, one for all queries, and the one that training makes?"""

import math
from typing import Any

from iclgd.labs.implicit.against import Against
from iclgd.labs.implicit.view import WHOLE, View, mean, number
from iclgd.report.numbers import Number, significant

NULLS = {
    "wrong labels": "when fitted behind wrong labels",
    "other task": "behind another task's prompt",
    "random": "for random matrices as long",
}
TOLERANCES = {"float64": 1e-12, "float32": 1e-4, "bfloat16": 0.05}  # of a block's relative residual


def answer(view: View) -> str:
    return " ".join(filter(None, (identity(view), static(view), trained(view), Against(view).said())))


# for one query


def worst(view: View, init: str) -> tuple[str, float, float] | None:
    """The finest arithmetic that was run, its largest residual of a block, and what another query's patch leaves."""
    for precision in TOLERANCES:
        arrays = view.study.arrays(init=init, part="exact", precision=precision)
        known = {(one.labels.get("quantity"), one.labels.get("patch"), one.labels.get("form")): one for one in arrays}
        if known:
            block = max(float(one.values.max()) for (q, who, _), one in known.items() if (q, who) == ("block", "own"))
            left = known["logits", "another query's", "C"].values / known["gap", "another query's", "C"].values
            return precision, block, float(left.mean())
    return None


def identity(view: View) -> str:
    first = view.spec.init[0]
    found = worst(view, first)
    if found is None:
        return ""
    precision, block, another = found
    holds = block <= TOLERANCES[precision]
    is_it = "is a change of weights" if holds else "is not exactly a change of weights"
    beside = []
    for init in view.spec.init[1:]:
        other = worst(view, init)
        if other is not None:
            beside.append(f"with {init} weights {significant(other[1], 2)}")
    also = f"; {', '.join(beside)}" if beside else ""
    return (
        f"For one query the prompt {is_it} (largest residual of a block {significant(block, 2)} in {precision}{also}), "
        f"and of use to that query alone: another query's patch leaves {share(another)} of the gap in the logits."
    )


def share(value: float) -> str:
    return str(Number(value, digits=2))


# for all queries


def static(view: View) -> str:
    init = view.spec.init[0]
    labels: dict[str, Any] = {"patch": WHOLE, "fitted": view.most}
    raw, centred = (view.recovery(init, c, **labels) for c in (False, True))
    first, second = mean(raw), mean(centred)
    if first.mean != first.mean:
        return ""
    nulls = []
    for null, title in NULLS.items():
        found = mean(view.recovery(init, True, **labels, null=null))
        if found.mean == found.mean:
            nulls.append(f"{number(found)} {title}")
    beside = f" ({', '.join(nulls)})" if nulls else ""
    return (
        f"One patch for all queries, fitted on {view.most} others, brings back {number(first)} of what reading does to "
        f"the label margins, and {number(second)} once the shift that all queries share is taken off"
        f"{beside}."
    )


# by training


def trained(view: View) -> str:
    """At the rate where they are most alike: chosen after the fact, the most favourable reading, and it says so."""
    init, spec = view.spec.init[0], view.spec
    rate = view.most_alike(init)
    if rate is None:
        return "Finetuning the same matrices diverged at every rate."
    chosen = f" (of {len(spec.rates)} rates the most alike)" if len(spec.rates) > 1 else ""
    alike = view.cosine(init, "cosine", WHOLE, rate)
    wrong = view.cosine(init, "cosine", WHOLE, rate, "wrong")
    labels = view.cosine(init, "contrast", WHOLE, rate)
    another = how_alike(alike.mean)
    gd = {"patch": "gd", "rate": rate, "demos": "right"}
    raw, centred = (mean(view.recovery(init, c, **gd)) for c in (False, True))  # type: ignore[arg-type]
    return (
        f"Finetuning the same matrices on the same demonstrations at {rate:g}{chosen} makes {another} change: cosine "
        f"{number(alike, 3)}, {number(wrong, 3)} with training on wrong labels, {number(labels, 3)} of what "
        f"labels alone change{untrained(view, rate)}. It brings back {number(raw)} of what reading does to the "
        f"margins, {number(centred)} without the shift."
    )


def how_alike(cosine: float) -> str:
    return "much the same" if cosine >= 0.7 else "a related" if cosine >= 0.2 else "another"


def untrained(view: View, rate: float) -> str:
    found = {init: view.cosine(init, "cosine", WHOLE, rate) for init in view.spec.init[1:]}
    shown = [f"{number(one, 3)} with {init} weights" for init, one in found.items() if math.isfinite(one.mean)]
    return f"; {', '.join(shown)}" if shown else ""
