"""The answer in words: is there one change of weights for a prompt, is it training's, and what holds for one query?"""

from typing import Any

import numpy as np

from iclgd.labs.implicit.against import Against
from iclgd.labs.implicit.beside import Beside
from iclgd.labs.implicit.view import CONSTANT, WHOLE, Values, View, distance, mean, number
from iclgd.metrics.differences import difference, holm, nearest, over_draws
from iclgd.metrics.estimates import Estimate
from iclgd.report.found import Found
from iclgd.report.numbers import Number, significant

NULLS = {
    "wrong labels": "one fitted behind wrong labels",
    "other task": "one fitted behind another task's prompt",
    "filler": "one fitted behind filler of the same length",
    "random": "random matrices as long",
}
TOLERANCES = {"float64": 1e-12, "float32": 1e-4, "bfloat16": 0.05}  # of a block's relative residual


def answer(view: View) -> str:
    parts = (static(view), trained(view), Against(view).said(), identity(view))
    return " ".join(filter(None, (*parts, view.spec.one_draw)))


# for all queries


def static(view: View) -> str:
    """Whether one patch is nearer to reading than every null, and what it misses from query to query.

    No surer than beside the nearest of the nulls that it is not shown to be below.
    """
    own, nulls = _missed(view)
    missed = distance(own)
    if missed.mean != missed.mean:
        return ""
    found = (
        f"it misses {number(missed)} of what reading does from query to query (0: nothing, 1: as much as without it)"
    )
    null = _nearest(own, nulls)
    if null is None:
        return f"One patch of the weights for all queries is beside no null: fitted on {view.most} others, {found}."
    title, below = null
    replaces, nearest = ("replaces", f" of the nearest, {title}") if below else ("is not shown to replace", "")
    return (
        f"One patch of the weights for all queries {replaces} the demonstrations better than "
        f"{'every null' if below else title}: fitted on {view.most} others, {found}, beside "
        f"{number(distance(nulls[title]))}{nearest}."
    )


def _missed(view: View) -> tuple[Values, dict[str, Values]]:
    """What one patch for all queries misses, and what its nulls miss, by title."""
    init = view.spec.init[0]
    labels: dict[str, Any] = {"patch": WHOLE, "fitted": view.most}
    nulls = {title: view.missing(init, **labels, null=null) for null, title in NULLS.items()}
    nulls["one answer for all queries"] = view.missing(init, patch=CONSTANT)
    nulls = {title: values for title, values in nulls.items() if np.isfinite(values).any()}
    return view.missing(init, **labels), nulls


def found(view: View) -> list[Found]:
    """What the first sentence rests on."""
    own, nulls = _missed(view)
    missed = distance(own)
    if missed.mean != missed.mean:  # there is no patch for all queries
        return []
    null = _nearest(own, nulls)
    below = null is not None and null[1]
    verdict = f"one patch for all queries {'misses' if below else 'is not shown to miss'} less than every null"
    return [Found("misses of one patch", number(missed), verdict)]


def _nearest(own: Values, nulls: dict[str, Values]) -> tuple[str, bool] | None:
    """The lowest null that it is not shown to be below, or the lowest of all, and whether it is below even that."""
    apart = dict(zip(nulls, holm([over_draws(difference(own, null)) for null in nulls.values()]), strict=True))
    return nearest(apart, {title: mean(values) for title, values in nulls.items()}, "below")


# by training


def trained(view: View) -> str:
    """At the rate where they are most alike: chosen after the fact, the most favourable reading, and it says so."""
    init, beside = view.spec.init[0], Beside(view)
    rate = beside.rate
    if rate is None:
        return "Finetuning the same matrices diverged at every rate."
    alike = view.cosine(init, "cosine", WHOLE, rate)
    above = beside.nearest is not None and beside.nearest[1]
    return (
        f"Finetuning the same matrices at {rate:g}{_chosen(view, init, rate)} makes {how_alike(alike, above)}, whose "
        f"cosine with it is {number(alike, 3)}, {beside.said()}."
    )


def _chosen(view: View, init: str, rate: float) -> str:
    """How the rate came about, and in how many draws training diverged there: those are not in its numbers."""
    rates, said = view.spec.rates, []
    if len(rates) > 1:
        where = " where no draw diverged" if view.steady(init) not in ((), rates) else ""
        said.append(f"of {len(rates)} rates the most alike{where}")
    if lost := view.diverged(init, rate):
        said.append(f"diverged in {lost} of {view.draws} draws, which are left out")
    return f" ({'; '.join(said)})" if said else ""


def how_alike(found: Estimate, above: bool) -> str:
    """In words, where the interval is all on one side; one draw decides nothing.

    Alike is said of what is ``above`` every null alone.
    """
    if found.kind not in ("draws", "tasks"):
        return "a change"
    if found.high < 0.2:
        return "another change"
    if not above or found.low < 0.2:
        return "a change"
    return "much the same change" if found.low >= 0.7 else "a related change"


# for one query


def worst(view: View, init: str) -> tuple[str, float, float] | None:
    """The finest arithmetic that was run, its largest residual of a block, and what another query's patch leaves."""
    for precision in TOLERANCES:
        arrays = view.study.arrays(init=init, part="exact", precision=precision)
        known = {(one.labels.get("quantity"), one.labels.get("patch"), one.labels.get("form")): one for one in arrays}
        if known:
            block = max(float(one.values.max()) for (q, who, _), one in known.items() if (q, who) == ("block", "own"))
            left, gap = (known[what, "another query's", "C"].values.mean() for what in ("logits", "gap"))
            return precision, block, float(left / gap)
    return None


def identity(view: View) -> str:
    first, *others = view.spec.init
    found = worst(view, first)
    if found is None:
        return ""
    precision, block, another = found
    exact = "exact" if block <= TOLERANCES[precision] else "not exact"
    beside = [f"{significant(one[1], 2)} with {init} weights" for init in others if (one := worst(view, init))]
    sizes = ", ".join([f"{significant(block, 2)} in {precision}", *beside])
    return (
        f"For one query a patch is {exact} (largest residual of a block {sizes}); for another it leaves "
        f"{Number(another, digits=2)} of the gap in the logits."
    )
