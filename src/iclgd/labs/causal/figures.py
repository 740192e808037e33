"""The figure of `causal`: the share of an effect that each layer carries from one run into another."""

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from iclgd.labs.causal.ground import SWAPS, WHERE
from iclgd.labs.causal.view import View, by_layer
from iclgd.report.figures import COLOURS, band, figure, legend, styled

SITES = {"attention": "attention of one layer", "blocks": "stream after a block"}
NULLS = (("other query", "--"), ("random", ":"))


@styled
def draw_layers(view: View) -> Figure:
    """Shares by layer at the last rate: a column for each exchange, a row for attention and one for the stream.

    Rows have one scale. Reading into the zero-shot run has its nulls, too.
    """
    made, grid = figure(columns=len(SWAPS), rows=len(WHERE), width=2.3, height=2.3)
    init, rate = view.spec.init[0], view.spec.rates[-1]
    for row, site in zip(grid, WHERE, strict=True):
        for panel, (source, into), colour in zip(row, SWAPS, COLOURS, strict=False):
            panel.sharey(row[0])
            found = by_layer(view.layer_shares(init, rate, source, into, False, site=site))
            middle, low, high = ([getattr(one, name) for one in found] for name in ("mean", "low", "high"))
            band(panel, list(map(float, range(len(found)))), middle, low, high, colour, f"{source} into {into}")
            panel.axhline(0, color="#999999", linewidth=0.6)
            panel.axhline(1, color="#999999", linewidth=0.6)
            panel.xaxis.set_major_locator(MaxNLocator(4, integer=True))
        for null, style in NULLS:
            found = by_layer(view.layer_shares(init, rate, "icl", "zero-shot", False, site=site, null=null))
            name = f"icl into zero-shot, {null}"
            row[0].plot(range(len(found)), [one.mean for one in found], color="#777777", linestyle=style, label=name)
        row[0].set_ylabel(SITES[site], fontsize=8)
    for panel, (source, into) in zip(grid[0], SWAPS, strict=True):
        panel.set_title(f"{source} into {into}", fontsize=9)
    for panel in grid[-1]:
        panel.set_xlabel("layer")
    legend(made, grid[0, :1])
    return made
