"""An episode that the reader can move: what a step of GD, ridge and the layers, constructed and trained, answer."""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from iclgd.labs.linear.spec import TrainSpec
from iclgd.report.colours import slots
from iclgd.report.heat import HEAT
from iclgd.report.page import Section
from iclgd.report.widgets import CHARTS, WEB, Widget
from iclgd.small.streams import generator
from iclgd.study import Study

SCRIPTS = (*CHARTS, WEB / "regression.js", HEAT, Path(__file__).parent / "play.js")
DRAWN = 3  # what the generator of this episode is for: those before it draw what seeds are judged on
TOLD = (
    "An episode of this family. Move a demonstration or the query with the mouse, or with arrow keys once it has the "
    "focus. Lines are answers along one coordinate of the query, its others as drawn. The constructed layer is the "
    "best preconditioned step; the gradient step has the best rate of this family, not of this episode."
)
ABOUT = "Demonstrations that can be moved, and the answers of a gradient step, ridge regression and attention layers."


def played(study: Study) -> list[Section]:
    """For one linear layer of a linear family with one output, whose weights are in the cells."""
    spec = study.spec
    assert isinstance(spec, TrainSpec)
    if spec.dy != 1 or not study.arrays(quantity="weights"):
        return []
    widget = Widget("linear play", lambda: _data(study), ABOUT, SCRIPTS)
    return [Section("Move a demonstration", TOLD, widget=widget)]


def _data(study: Study) -> dict[str, Any]:
    spec = study.spec
    assert isinstance(spec, TrainSpec)
    episode = spec.family.draw(1, generator(DRAWN), dtype=torch.float64)
    rate = study.arrays(quantity="rate / N", learner="gd ×1")[0].values
    return {
        "x": _rounded(episode.x[0]),
        "y": _rounded(episode.y[0, :, 0]),
        "query": _rounded(episode.query[0, 0]),
        "rate": float(rate),
        "slots": slots(["one gradient step", "ridge", "constructed layer", "trained layer"]),
        "constructed": _weights(study, "constructed", spec.seeds[0]),
        "trained": {str(seed): _weights(study, "learned", seed) for seed in spec.seeds},
    }


def _weights(study: Study, side: str, seed: int) -> dict[str, Any]:
    found = study.arrays(quantity="weights", side=side, seed=seed)
    return {str(one.labels["matrix"]): _rounded(one.values) for one in found}


def _rounded(values: Any) -> list[Any]:
    return np.round(np.asarray(values, dtype=float), 6).tolist()
