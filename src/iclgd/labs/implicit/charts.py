"""Charts of `implicit`, to be pointed at: recovery by calibration queries and by depth, and likeness by layer."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from iclgd.labs.implicit.figures import DEPTHS, LINES
from iclgd.labs.implicit.view import WHOLE, View, mean
from iclgd.metrics.estimates import Estimate
from iclgd.report.charts import NULL, OWN, Looks, Series, lines
from iclgd.report.widgets import Widget

MARGINS = {False: "raw", True: "without the mean shift"}  # panels of what comes back of reading's effect
PATCHES = {"own": "own patches", WHOLE: "one matrix for all"}


def curve(view: View) -> Widget:
    """How much of reading's effect comes back, by kind of patch and number of queries it was fitted on."""
    init, counts = view.spec.init[0], view.spec.calibration
    kinds = ["vector", *(f"rank {rank}" for rank in view.spec.ranks), WHOLE]

    def make() -> Iterator[Series]:
        for centred, panel in MARGINS.items():
            for kind in kinds:
                found = [mean(view.recovery(init, centred, patch=kind, fitted=n)) for n in counts]
                if any(np.isfinite(one.mean) for one in found):
                    yield _one({"panel": panel, "name": kind, "role": OWN}, found)

    about = "The share of reading's effect on label margins that a patch recovers, by queries it was fitted on."
    return _lines(list(make()), counts, "calibration queries", about, apart=True)


def depth(view: View) -> Widget | None:
    """How much comes back with the patch in all layers up to one, and in a part of the layers alone."""
    init, parts = view.spec.init[0], view.depths()

    def make() -> Iterator[Series]:
        for centred, panel in MARGINS.items():
            for where, name in DEPTHS.items():
                whole: dict[str, Any] = {"patch": WHOLE, "fitted": view.most, "layers": where}
                found = [mean(view.recovery(init, centred, **whole, first=first, last=last)) for first, last in parts]
                yield _one({"panel": panel, "name": name, "role": OWN}, found)

    about = "The share of reading's effect on label margins that patches in some of the layers recover."
    return _lines(list(make()), [last for _, last in parts], "last layer that is patched", about) if parts else None


def layers(view: View) -> Widget | None:
    """Cosine of patches and training by layer, at the answer's rate; nulls and other weights beside."""
    rate = view.most_alike(view.spec.init[0])
    if rate is None:  # training diverged at every rate: the answer says so
        return None
    found = [one for patch in PATCHES for one in _likeness(view, patch, rate) if len(one.values)]
    count = max((len(one.values) for one in found), default=0)
    return _lines(found, range(count), "layer", f"Cosines of patches with gd {rate:g} by layer.") if count else None


def _likeness(view: View, patch: str, rate: float) -> Iterator[Series]:
    first, panel = view.spec.init[0], PATCHES[patch]
    for null, name in LINES.items():
        for init in view.spec.init if null is None else (first,):
            role = OWN if null is None and init == first else NULL
            title = name if init == first else f"{name}, {init} weights"
            yield Series(
                {"panel": panel, "name": title, "role": role}, view.by_layer(init, "cosine", patch, rate, null)
            )
    labels = {"panel": panel, "name": "labels' part", "role": OWN}
    yield Series(labels, view.by_layer(first, "contrast", patch, rate))


def _one(labels: dict[str, str], found: Sequence[Estimate]) -> Series:
    return Series(labels, *([getattr(one, end) for one in found] for end in ("mean", "low", "high")))


def _lines(found: Sequence[Series], points: Sequence[float], x: str, about: str, apart: bool = False) -> Widget:
    return lines(lambda: found, points, Looks(colour="name", x=x, apart=apart), about)
