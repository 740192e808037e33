"""The figure of `causal`: the share of an effect that each layer carries from one run into another."""

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from iclgd.labs.causal.ground import SWAPS, WHERE
from iclgd.labs.causal.view import View, by_layer
from iclgd.report.figures import COLOURS, band, figure, legend, styled

TITLES = {"attention": "attention of one layer", "blocks": "the stream after a block"}


@styled
def draw_layers(view: View) -> Figure:
    """Shares by layer, attention and stream, at the last rate; for reading into the zero-shot run its nulls, too."""
    made, grid = figure(columns=2, width=4.4, height=3.4)
    init, rate = view.spec.init[0], view.spec.rates[-1]
    for panel, site in zip(grid[0], WHERE, strict=True):
        for (source, into), colour in zip(SWAPS, COLOURS, strict=False):
            found = by_layer(view.layer_shares(init, rate, source, into, False, site=site))
            middle, low, high = ([getattr(one, name) for one in found] for name in ("mean", "low", "high"))
            band(panel, list(map(float, range(len(found)))), middle, low, high, colour, f"{source} into {into}")
        for null, style in (("other query", "--"), ("random", ":")):
            found = by_layer(view.layer_shares(init, rate, "icl", "zero-shot", False, site=site, null=null))
            name = f"icl into zero-shot, {null}"
            panel.plot(range(len(found)), [one.mean for one in found], color="#777777", linestyle=style, label=name)
        panel.axhline(0, color="#999999", linewidth=0.6)
        panel.axhline(1, color="#999999", linewidth=0.6)
        panel.set(title=TITLES[site], xlabel="layer")
        panel.xaxis.set_major_locator(MaxNLocator(integer=True))
    grid[0, 0].set_ylabel("share of the way between the runs")
    legend(made, grid[0])
    return made
