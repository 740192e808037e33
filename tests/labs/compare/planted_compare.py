"""A comparison whose numbers are planted, so that what the page must say is known."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from iclgd.lab import Cell
from iclgd.labs.compare.spec import CompareSpec
from iclgd.labs.compare.view import Comparison
from iclgd.results import Array, Result, array
from iclgd.study import Study

QUERIES, LAYERS = 30, 3
Plant = Callable[[Cell, np.random.Generator], list[Array]]


def likeness(mean: float, random: np.random.Generator, spread: float = 0.05, **labels: Any) -> Array:
    """Values around a mean, at both positions; the label position is .1 above the prompt's."""
    values = mean + spread * random.standard_normal((2, QUERIES, LAYERS)) + np.array([0, 0.1])[:, None, None]
    return array(
        np.clip(values, -1, 1), "position", "query", "layer", coordinates={"position": ("prompt", "label")}, **labels
    )


def answers(share: float, random: np.random.Generator, **labels: Any) -> Array:
    """Right answers, as many as the share says."""
    right = np.arange(QUERIES) < round(share * QUERIES)
    return array(random.permutation(right).astype(float), "query", **labels)


def planted(plant: Plant, facts: Mapping[str, Any] | None = None, **fields: Any) -> Comparison:
    spec = CompareSpec.of({"model": "smollm2-135m", **fields})
    cells = spec.cells()
    results = {}
    for place, cell in enumerate(cells):
        shown = {"demonstrations": spec.k, "demonstrations_dropped": 0, "queries": QUERIES, "labels": ["a", "b"]}
        results[str(place)] = Result({**shown, **(facts or {})}, plant(cell, np.random.default_rng(place)))
    return Comparison(Study("compare", spec, cells, list(results), results))
