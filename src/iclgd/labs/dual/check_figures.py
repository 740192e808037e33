"""The figures of `dual check`: quantities by layer and head, parts of demonstrations, errors of random features."""

from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from torch import Tensor

from iclgd.report.figures import COLOURS, band, figure, legend, styled

# quantity → its colours and their ends; one that is not here is not drawn
DRAWN: dict[str, tuple[str, float, float | None]] = {
    "share": ("viridis", 0.0, 1.0),
    "cosine": ("RdBu_r", -1.0, 1.0),
    "directions": ("viridis", 1.0, None),
    "label words": ("viridis", 0.0, 1.0),
    "same step": ("viridis", 0.0, 1.0),
}


@styled
def heads_figure(shown: Mapping[str, Tensor]) -> Figure:
    made, grid = figure(columns=len(DRAWN), width=2.5, height=5.2)
    for axes, (name, (colours, low, high)) in zip(grid[0], DRAWN.items(), strict=True):
        _map(made, axes, shown[name], name, colours, (low, high), "head")
    grid[0, 0].set_ylabel("layer")
    return made


@styled
def parts_figure(parts: Tensor, features: Mapping[int, Mapping[str, Tensor]]) -> Figure:
    """Each demonstration's part of a layer's step and, where there are any, random features' errors."""
    made, grid = figure(columns=1 + bool(features), width=4.2, height=4.2)
    reach = float(parts.abs().max())
    _map(made, grid[0, 0], parts, "part of the layer's step", "RdBu_r", (-reach, reach), "demonstration")
    demos = range(parts.shape[1])
    grid[0, 0].set(ylabel="layer", xticks=demos, xticklabels=[str(demo + 1) for demo in demos])
    if features:
        _errors(grid[0, 1], features)
        legend(made, [grid[0, 1]])
    return made


def _errors(axes: Axes, features: Mapping[int, Mapping[str, Tensor]]) -> None:
    sizes = list(features)
    for name, colour in zip(features[sizes[0]], COLOURS, strict=False):
        errors = [features[size][name] for size in sizes]
        low, middle, high = ([float(one.nanquantile(q)) for one in errors] for q in (0.1, 0.5, 0.9))
        band(axes, [float(size) for size in sizes], middle, low, high, colour, name)
    axes.set(xscale="log", xlabel="random features", title="relative error, median head, 10% to 90%")
    axes.set_xticks(sizes, [str(size) for size in sizes])
    axes.minorticks_off()
    axes.set_ylim(bottom=0)


def _map(
    made: Figure, axes: Axes, values: Tensor, title: str, colours: str, limits: tuple[float, float | None], across: str
) -> None:
    image = axes.imshow(values.numpy(), aspect="auto", cmap=colours, vmin=limits[0], vmax=limits[1], origin="lower")
    axes.set(title=title, xlabel=across)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(integer=True))
    made.colorbar(image, ax=axes, location="bottom", pad=0.02)
