"""Cells of the languages lab: what a run gives, as it was written down before the lab had cells."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from iclgd.labs.languages.measures import BYPASS, TRAINED
from iclgd.labs.languages.run import together
from iclgd.labs.languages.spec import RunSpec
from iclgd.tools import Tools

COLUMNS = (
    ("accuracy", False),
    ("accuracy", True),
    ("loss", False),
    ("cosine", False),
    ("cosine", True),
    ("mse", False),
)
SELF = {"cosine": 1.0, "mse": 0.0}  # the layers were once compared with themselves
RANDOM = {"language": "random", "labels": "language", "min_length": 5, "max_length": 5, "languages": 20}
SMALL = {"seeds": 2, "steps": 60, "batch": 16, "episodes": 100, "dims": 5}


def language_arrays(**given: Any) -> dict[str, Tensor]:
    """A learner's array has a row for each of `COLUMNS`, by seed; a curve has a row for each step."""
    if given["encoder"] == "autoencoder":
        given["encoder"] = "autoencoder:steps=60"
    spec = RunSpec.of({"language": "((a|b)c)*", "max_length": 6, "k": 6, **SMALL, **given})
    results = list(together(spec.cells(), Tools()))

    def by_seed(**labels: Any) -> np.ndarray:
        return np.stack([np.asarray(result.select(**labels)[0].values) for result in results], -1)

    found: dict[str, Any] = {}
    learners = dict.fromkeys(a.labels["learner"] for a in results[0].select(part="learner"))
    for later in ("stored × hits", BYPASS):
        learners.pop(later, None)
    for name in learners:
        rows = [
            np.full(len(results), SELF[what])
            if name == TRAINED and what in SELF
            else by_seed(part="learner", learner=name, quantity=what, shuffled=mixed)
            for what, mixed in COLUMNS
        ]
        found[f"learner/{name}"] = rows
        for what in ("accuracy", "loss") if name == TRAINED else ("mse", "cosine"):
            curve = by_seed(part="training", learner=name, quantity=what)
            if name == TRAINED or not np.isnan(by_seed(part="training", learner=name, quantity="cosine")).all():
                found[f"curve/{what}" + ("" if name == TRAINED else f" {name}")] = curve
    found["curve/step"] = results[0].select(part="training")[0].coordinates["step"]
    for one in results[0].select(part="encoder"):
        found["autoencoder/step"] = one.coordinates["step"]
        found[f"autoencoder/{one.labels['quantity']}"] = by_seed(part="encoder", quantity=one.labels["quantity"])
    for one in results[0].select(part="weights"):
        if "matrix" in one.labels:
            name = "learned" if one.labels["learner"] == TRAINED else one.labels["learner"]
            found[f"weights/matrices/{name}/{one.labels['matrix']}"] = one.values
        else:
            name = one.labels["quantity"]
            found[f"weights/{name}"] = by_seed(part="weights", quantity=name)
    return {name: numbers(values) for name, values in found.items()}


def numbers(values: Any) -> Tensor:
    """In float32 if that holds the values exactly, else in float64."""
    wide = torch.tensor(np.asarray(values, dtype=np.float64))
    narrow = wide.float()
    return narrow if torch.equal(narrow.double().nan_to_num(), wide.nan_to_num()) else wide
