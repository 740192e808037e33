"""Charts of `dual check`, to be pointed at: quantities by layer and head, parts of demonstrations, errors."""

from collections.abc import Iterator, Mapping

from torch import Tensor

from iclgd.report.charts import OWN, Looks, Series, lines
from iclgd.report.maps import maps
from iclgd.report.widgets import Widget

QUANTILES = (0.5, 0.1, 0.9)  # of heads: the line, and the ends of its band


def heads(shown: Mapping[str, Tensor]) -> Widget:
    """Every quantity that one head has one number of, [layer, head], where there are any."""
    known = {name: values.numpy() for name, values in shown.items() if values.isfinite().any()}
    columns = range(next(iter(shown.values())).shape[1])
    return maps(known, columns, "head", "layer", "What the step of every head is like: means over queries.")


def parts(given: Tensor) -> Widget:
    """What each demonstration, counted from 1, gives to a layer's steps."""
    columns = range(1, given.shape[1] + 1)
    about = "The part of a layer's step that each demonstration gives; those of a layer sum to 1."
    return maps({"part of the layer's step": given.numpy()}, columns, "demonstration", "layer", about)


def errors(features: Mapping[int, Mapping[str, Tensor]]) -> Widget | None:
    """The relative error of a head's output by number of random features; none where scores are not k·q."""
    if not features:
        return None

    def made() -> Iterator[Series]:
        for name in next(iter(features.values())):
            ends = ([float(of[name].nanquantile(q)) for of in features.values()] for q in QUANTILES)
            yield Series({"name": name, "role": OWN}, *ends)

    about = "The relative error of the median head by number of random features; bands hold 10% to 90% of heads."
    return lines(lambda: list(made()), list(features), Looks(colour="name", x="random features", apart=True), about)
