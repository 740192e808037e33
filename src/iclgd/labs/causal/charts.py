"""The chart of `causal`: the share of an effect that each layer carries from one run into another, to choose among."""

from collections.abc import Iterator

from iclgd.labs.causal.figures import SITES
from iclgd.labs.causal.ground import SWAPS, WHERE
from iclgd.labs.causal.tables import NULLS
from iclgd.labs.causal.view import View, by_layer
from iclgd.metrics.estimates import Estimate
from iclgd.report.charts import NULL, OWN, Looks, Series, lines
from iclgd.report.widgets import Widget

ABOUT = "Shares of an effect by layer, a panel for each exchange; exchanges with the zero-shot run have their nulls."
CHOOSE = {"site": "what is exchanged", "rate": "rate"}


def layers(view: View) -> Widget | None:
    """A panel for each exchange of two runs, at every rate."""
    found = list(_series(view))
    count = max((len(one.values) for one in found), default=0)
    looks = Looks(choose=CHOOSE, colour="learner", x="layer")
    return lines(lambda: found, range(count), looks, ABOUT) if count else None


def _series(view: View) -> Iterator[Series]:
    init = view.spec.init[0]
    for rate in view.spec.rates:
        for site in WHERE:
            for source, into in SWAPS:
                labels = {"panel": f"{source} into {into}", "site": SITES[site], "rate": f"{rate:g}", "learner": source}
                for null in (None, *NULLS) if into == "zero-shot" else (None,):
                    which = {"site": site, "null": null} if null else {"site": site}
                    estimates = by_layer(view.layer_shares(init, rate, source, into, False, **which))
                    if estimates:
                        name = f"{source}: {NULLS[null]}" if null else source
                        yield _one({**labels, "name": name, "role": NULL if null else OWN}, estimates)


def _one(labels: dict[str, str], found: list[Estimate]) -> Series:
    return Series(labels, *([getattr(one, end) for one in found] for end in ("mean", "low", "high")))
