"""Studies of `implicit` whose numbers are planted, so that what the page must say is known."""

from typing import Any

import numpy as np

from iclgd.lab import Cell
from iclgd.labs.implicit.spec import ImplicitSpec
from iclgd.labs.implicit.view import View
from iclgd.results import Array, Result, array
from iclgd.study import Study

QUERIES, LAYERS = 12, 3
Effect = tuple[float, float]  # shares of reading's shift, and of what it does by the query
ANSWERS = np.arange(QUERIES) % 2


def labelled(margin: np.ndarray) -> np.ndarray:
    """Scores of two labels that far apart; what they have in common says nothing."""
    return np.stack([-margin / 2, margin / 2], -1) - 1.5


class Plant:
    """What reading does: a shift of 2 for every query and 1 either way by the query; patches bring back parts of it."""

    def __init__(self, shift: float = 0.8, by_query: float = 0.25, cosine: float = 0.02, block: float = 1e-15):
        self.shift, self.by_query, self.cosine, self.block = shift, by_query, cosine, block
        self.nulls = {"wrong labels": (0.7, 0.1), "other task": (0.2, 0.05), "filler": (0.4, 0.02), "random": (0, 0)}
        self.trained = {"wrong": 0.01, "shuffled": 0.011, "other demos": 0.012, "other task": 0.005}
        self.trained |= {"reading wrong": 0.004, "reading filler": 0.003, "noise": 0.0}
        self.contrasts = {"other demos": 0.013, "noise": 0.001}
        self.gd: dict[float, tuple[Effect, Effect]] = {}  # by rate: on held-out and on calibration queries
        self.contrast, self.untrained, self.diverged = 0.03, -0.01, False
        self.gap, self.left = [4.0, 4.0], [3.0, 3.0]  # of logits without a patch, with another query's
        self.base = 0.0  # what zero-shot already says by the query

    def __call__(self, cell: Cell) -> Result:
        part = str(cell.labels["part"])
        return getattr(self, f"_{part}")(cell)

    def _read(self, shift: float, by_query: float) -> np.ndarray:
        """Margins that lean to class 0 before reading, with as much of reading's effect."""
        return labelled(-1 + 2 * shift + (self.base + by_query) * (2 * ANSWERS - 1))

    def _static(self, cell: Cell) -> Result:
        arrays = [array(ANSWERS, "query", quantity="answers")]
        for asked in ("held", "calibration", "others"):
            twice = 2 if asked == "others" else 1  # reading does more to another task's queries
            for name, parts in {"zero-shot": (0, 0), "icl": (1, 1), "icl, wrong labels": (1, -1)}.items():
                arrays.append(scores(self._read(*(twice * part for part in parts)), patch=name, asked=asked))
        for count in cell.spec.calibration:
            for patch in ("vector", *(f"rank {r}" for r in cell.spec.ranks if r < count), "matrix"):
                part = self.by_query if patch == "matrix" else 0
                arrays.append(scores(self._read(self.shift, part), patch=patch, fitted=count, asked="held"))
        whole = {"patch": "matrix", "fitted": cell.spec.calibration[-1]}
        arrays.append(scores(self._read(0.5, 0.1), asked="others", **whole))
        arrays += [scores(self._read(*parts), asked="held", null=null, **whole) for null, parts in self.nulls.items()]
        if cell.spec.depth:
            for first, last in ((0, 1), (2, 3)):
                for layers, part in (("alone", 0.1), ("up to", 0.1 * (1 + last))):
                    labels = {"layers": layers, "first": first, "last": last}
                    arrays.append(scores(self._read(0.3, part), asked="held", **labels, **whole))
        return Result({"demonstrations": 8, "queries": QUERIES}, arrays)

    def _trained(self, cell: Cell) -> Result:
        facts = {"demonstrations": 8, "queries": QUERIES, "diverged": "the loss rose" if self.diverged else None}
        loss = array([3.0, 2.0, 1.0], "step", quantity="loss", demos="right")
        if self.diverged:
            return Result(facts, [loss])
        alike = self.cosine * (1 + float(cell.labels["rate"])) if cell.labels["init"] == "trained" else self.untrained
        arrays = [loss]
        for patch, queries in (("own", QUERIES), ("matrix", 1)):
            for null, value in {None: alike, **self.trained}.items():
                labels = {"patch": patch} | ({"null": null} if null else {})
                values = np.full((queries, LAYERS), value)
                arrays.append(array(values, "query", "layer", quantity="cosine", **labels))
            for null, value in {None: self.contrast, **self.contrasts}.items():
                labels = {"patch": patch} | ({"null": null} if null else {})
                values = np.full((queries, LAYERS), value)
                arrays.append(array(values, "query", "layer", quantity="contrast", **labels))
        held, asked = self.gd.get(float(cell.labels["rate"]), ((0.4, 0.5), (0.4, 0.5)))
        nulls = {"wrong": (0.4, 0.2), "other demos": (0.4, 0.3), "other task": (0.4, 0.1)}
        for demos, parts in ({"right": held} | nulls).items():
            arrays.append(scores(self._read(*parts), patch="gd", asked="held", demos=demos))
            arrays.append(scores(self._read(*asked), patch="gd", asked="calibration", demos=demos))
        return Result(facts, arrays + self._matrices(cell))

    def _matrices(self, cell: Cell) -> list[Array]:
        ranks = cell.spec.ranks
        places = {"rank": ranks, "side": ("outputs", "inputs")}
        planted = {(None, None): 0.2, ("own", None): 0.4, ("labels", None): 0.5, ("labels", "other demos"): 0.45}
        planted |= {(None, null): 0.1 + value for null, value in self.trained.items()}
        planted |= {("own", null): 0.3 + value for null, value in self.trained.items()}
        arrays = []
        for (patch, null), value in planted.items():
            labels = ({"patch": patch} if patch else {}) | ({"null": null} if null else {})
            values = np.full((len(ranks), LAYERS, 2), value)
            named = {"quantity": "overlap", "coordinates": places, **labels}
            arrays.append(array(values, "rank", "layer", "side", **named))
        arrays += [
            array(np.full((len(ranks), 2), 0.01), "rank", "side", quantity="chance", coordinates=places),
            array(np.full(LAYERS, 4.0), "layer", quantity="step"),
            array(np.full(LAYERS, -0.5), "layer", quantity="step", patch="labels"),
            array(np.full((2, LAYERS), 3.0), "query", "layer", quantity="step", patch="own"),
            array(np.full((2, LAYERS), 0.25), "query", "layer", quantity="step", patch="own, labels"),
        ]
        lengths = (("matrix", 0.3), ("gd", 0.05))
        return arrays + [array(np.full(LAYERS, x), "layer", quantity="length", patch=name) for name, x in lengths]

    def _exact(self, cell: Cell) -> Result:
        block = self.block * (1e8 if cell.labels["precision"] == "float32" else 1)
        arrays = []
        for form in "ABC":
            logits_of = {"own": [10 * block] * 2, "another query's": self.left}
            for patch, logits in list(logits_of.items())[: 2 if form == "C" else 1]:
                labels = {"form": form, "patch": patch}
                left = block if patch == "own" else 0.5
                arrays.append(array(np.full((2, LAYERS), left), "query", "layer", quantity="block", **labels))
                arrays.append(array(logits, "query", quantity="logits", **labels))
                arrays.append(array(self.gap, "query", quantity="gap", **labels))
        for quantity, value in (("size", 0.13), ("along W", 0.0)):
            arrays.append(array(np.full((2, LAYERS), value), "query", "layer", quantity=quantity))
        arrays.append(array(np.full(LAYERS, 0.6), "layer", quantity="between queries"))
        falls = np.repeat(1 / np.array([2.0, 4.0, 8.0]), LAYERS).reshape(3, LAYERS)
        if cell.spec.settling:
            arrays.append(array(falls, "size", "layer", quantity="settling", coordinates={"size": (2, 4, 8)}))
        facts = {"tokens": 4, "same_tokens": 4, "random_path": 2e-16, "attention_alone": -0.98, "normed": False}
        return Result({**facts, "narrow": [], "layers": LAYERS}, arrays)


class Diverges(Plant):
    """Training at some rates, in some draws."""

    def __init__(self, *where: tuple[float, int]):
        super().__init__()
        self.where = where

    def _trained(self, cell):
        self.diverged = (cell.labels["rate"], cell.labels["seed"]) in self.where
        return super()._trained(cell)


def scores(values: np.ndarray, **labels: Any) -> Array:
    return array(values, "query", "label", quantity="scores", **labels)


def planted(plant: Plant | None = None, **fields: Any) -> View:
    spec = ImplicitSpec.of({"model": "smollm2-135m", "rates": (0.01,), "calibration": (1, 4, 16), **fields})
    cells = spec.cells()
    keys = [str(i) for i in range(len(cells))]
    results = {key: (plant or Plant())(cell) for key, cell in zip(keys, cells, strict=True)}
    return View(Study("implicit", spec, cells, keys, results))


def row(table, first: str) -> list[str]:
    (found,) = [line for line in table.texts() if line[0].strip() == first]
    return found
