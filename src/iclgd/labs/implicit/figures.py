"""The figures of `implicit`: recovery by the number of calibration queries and by depth, and likeness by layer."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from iclgd.labs.implicit.view import WHOLE, View, mean
from iclgd.report.figures import COLOURS, STYLE_OF_INIT, band, figure, legend, styled


@styled
def draw_curve(view: View) -> Figure:
    """How much of reading's effect comes back, by kind of patch and number of queries it was fitted on."""
    made, grid = figure(columns=2, width=4.2, height=3.2)
    init, counts = view.spec.init[0], view.spec.calibration
    kinds = ["vector", *(f"rank {rank}" for rank in view.spec.ranks), WHOLE]
    for panel, centred, title in zip(grid[0], (False, True), ("raw", "without the mean shift"), strict=True):
        for patch, colour in zip(kinds, COLOURS, strict=False):
            found = {n: mean(view.recovery(init, centred, patch=patch, fitted=n)) for n in counts}
            known = {n: one for n, one in found.items() if np.isfinite(one.mean)}
            if known:
                middle, low, high = ([getattr(e, name) for e in known.values()] for name in ("mean", "low", "high"))
                band(panel, list(map(float, known)), middle, low, high, colour, patch)
        panel.axhline(1, color="#999999", linewidth=0.6)
        panel.axhline(0, color="#999999", linewidth=0.6)
        panel.set(title=title, xlabel="calibration queries", xscale="log")
        panel.set_xticks(counts, [str(n) for n in counts])
        panel.minorticks_off()
    grid[0, 0].set_ylabel("share of the effect on label margins")
    legend(made, grid[0])
    return made


DEPTHS = {"up to": "all layers up to here", "alone": "a part alone"}


@styled
def draw_depth(view: View) -> Figure:
    """How much comes back with the patch in all layers up to one, and in a part of the layers alone."""
    made, grid = figure(columns=2, width=4.2, height=3.2)
    init, parts = view.spec.init[0], view.depths()
    for panel, centred, title in zip(grid[0], (False, True), ("raw", "without the mean shift"), strict=True):
        for (where, name), colour in zip(DEPTHS.items(), COLOURS, strict=False):
            whole: dict[str, Any] = {"patch": WHOLE, "fitted": view.most, "layers": where}
            found = [mean(view.recovery(init, centred, **whole, first=first, last=last)) for first, last in parts]
            middle, low, high = ([getattr(e, end) for e in found] for end in ("mean", "low", "high"))
            band(panel, [float(last) for _, last in parts], middle, low, high, colour, name)
        panel.axhline(1, color="#999999", linewidth=0.6)
        panel.axhline(0, color="#999999", linewidth=0.6)
        panel.set(title=title, xlabel="last layer that is patched")
        panel.set_xticks([last for _, last in parts])
    grid[0, 0].set_ylabel("share of the effect on label margins")
    legend(made, grid[0])
    return made


LINES = {
    None: "gd",
    "wrong": "gd, wrong labels",
    "other demos": "gd, other demonstrations",
    "other task": "gd, another task",
    "reading filler": "reading filler",
}


@styled
def draw_layers(view: View) -> Figure:
    """Cosine of patches and training by layer, at the answer's rate; nulls and other weights beside."""
    made, grid = figure(columns=2, width=4.2, height=3.2)
    rate = view.most_alike(view.spec.init[0])
    if rate is None:  # training diverged at every rate: the answer says so
        return made
    for panel, patch, title in zip(grid[0], ("own", WHOLE), ("own patches", "one matrix for all"), strict=True):
        for (null, name), colour in zip(LINES.items(), COLOURS, strict=False):
            for init in view.spec.init if null is None else view.spec.init[:1]:
                found = view.by_layer(init, "cosine", patch, rate, null)
                label = name if init == view.spec.init[0] else f"{name}, {init} weights"
                panel.plot(range(len(found)), found, color=colour, linestyle=STYLE_OF_INIT[init], label=label)
        labels = view.by_layer(view.spec.init[0], "contrast", patch, rate)
        panel.plot(range(len(labels)), labels, color=COLOURS[len(LINES)], label="labels' part")
        panel.axhline(0, color="#999999", linewidth=0.6)
        panel.set(title=title, xlabel="layer")
        panel.xaxis.set_major_locator(MaxNLocator(integer=True))
    grid[0, 0].set_ylabel(f"cosine with gd {rate:g}")
    legend(made, grid[0])
    return made
