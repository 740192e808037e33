"""Cells on what is trained from scratch or known in closed form: regressions, regular languages, modified attention."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from iclgd.labs.languages import run as languages
from iclgd.metrics.nulls import noise_score

Arrays = dict[str, Tensor]


def flat(name: str, tree: Any) -> dict[str, Any]:
    """Nested dicts as one, names joined by a slash."""
    if not isinstance(tree, dict):
        return {name: tree}
    return {key: value for part, inner in tree.items() for key, value in flat(f"{name}/{part}", inner).items()}


def numbers(values: Any) -> Tensor:
    """Nested lists of Python numbers as an array: in float32 if that holds them exactly, else in float64."""
    wide = torch.tensor(np.asarray(values, dtype=np.float64))
    narrow = wide.float()
    return narrow if torch.equal(narrow.double().nan_to_num(), wide.nan_to_num()) else wide


# languages

COLUMNS = ("accuracy", "shuffled", "loss", "cosine", "cosine_shuffled", "mse")


def language_arrays(**given: Any) -> Arrays:
    """Everything a run gives; a learner's array has a row for each of `COLUMNS`, by seed."""
    usual = languages.usual(given.get("labels", "fixed"), given["encoder"])
    small_one = {"seeds": 2, "steps": 60, "batch": 16, "episodes": 100, "encoder_steps": 60, "dims": 5}
    given = {"language": "((a|b)c)*", "max_length": 6, "demos": 6, **given}
    result = languages.run(languages.Experiment(**usual | small_one | given))
    found: dict[str, Any] = {f"learner/{name}": [row[c] for c in COLUMNS] for name, row in result.learners.items()}
    found |= {f"curve/{name}": values for name, values in result.curves.items()}
    found |= {f"autoencoder/{name}": values for name, values in result.autoencoder.items()}
    return {name: numbers(values) for name, values in (found | flat("weights", result.weights)).items()}


RANDOM = {"language": "random", "labels": "language", "min_length": 5, "max_length": 5, "languages": 20}


# claims


def noise() -> Arrays:
    """Scores of random updates, which the first claims are about."""
    return {m: noise_score(m, 3**0.5, dim=64, draws=20, seed=1) for m in ("SimAOU", "SimAOU_norm")}
