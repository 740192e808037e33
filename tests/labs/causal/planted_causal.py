"""Studies of `causal` whose numbers are planted, so that what the page must say is known."""

from typing import Any

import numpy as np

from iclgd.lab import Cell
from iclgd.labs.causal.ground import SWAPS, WHERE
from iclgd.labs.causal.spec import CausalSpec
from iclgd.labs.causal.view import View
from iclgd.results import Result, array
from iclgd.study import Study

QUERIES, LAYERS, HEADS = 12, 4, 3
ANSWERS = np.arange(QUERIES) % 2
LEAN = np.array([-0.4, 0.4])  # what taking heads out does whether or not demonstrations are read
SHUFFLED = np.random.RandomState(0).permutation(LAYERS * HEADS)
AT = {"zero-shot": -1.0, "icl": 1.0, "gd": 0.0}  # margins of every run; queries differ a little


def margins(value: float, seed: int = 0) -> np.ndarray:
    """Scores of two labels that far apart, their mean without meaning; queries move farther or less far."""
    moved = value + (value + 1) * 0.1 * np.cos(np.arange(QUERIES) + seed)
    return np.stack([-moved / 2, moved / 2], -1) - 3.0


class Plant:
    """Layer 2's attention carries a half, the others a tenth; the stream carries all from layer 2 on."""

    def __init__(self, layers: tuple[float, ...] = (0.1, 0.1, 0.5, 0.1), left: dict[str, float] | None = None):
        self.layers = layers
        self.left = {"function vector": 0.2, "induction": 0.8, "dual step": 0.9} if left is None else left
        self.random, self.diverged = 0.8, False
        self.at = dict(AT)
        self.sets = [[[0, 1]]]  # of heads, drawn in turn
        # what training's heads carry of its own effect, in the order of reading's: as those do, and what nulls carry
        heads = np.arange(LAYERS * HEADS) / 100
        self.trained = {None: heads, "other query": heads[SHUFFLED], "random": -heads}

    def __call__(self, cell: Cell) -> Result:
        seed = int(cell.labels["seed"])
        facts = {"demonstrations": 8, "queries": QUERIES, "layers": LAYERS, "heads": HEADS}
        facts["diverged"] = "the loss rose" if self.diverged else None
        parts = {"swaps": self._swaps, "exchanged": self._exchanged}
        found = parts[part](seed) if (part := str(cell.labels["part"])) in parts else self._heads(cell, seed)
        return Result(facts, [array(ANSWERS, "query", quantity="answers"), *found])

    def _between(self, into: str, source: str, share: float, seed: int) -> np.ndarray:
        one, two = margins(self.at[into], seed), margins(self.at[source], seed)
        return one + share * (two - one)

    def _swaps(self, seed: int):
        for run, at in self.at.items():
            if run != "gd" or not self.diverged:
                yield scores(margins(at, seed), run=run)
        for source, into in SWAPS:
            if self.diverged and "gd" in (source, into):
                continue
            for site in WHERE:
                shares = self.layers if site == "attention" else (0, 0.2, 1, 1)
                for null in (None, "other query", "random") if into == "zero-shot" else (None,):
                    scale = {None: 1.0, "other query": 0.6, "random": 0.0}[null]
                    labels = {"source": source, "into": into, "site": site} | ({"null": null} if null else {})
                    found = [self._between(into, source, scale * share, seed) for share in shares]
                    yield array(np.stack(found), "layer", "query", "label", quantity="scores", **labels)
                    yield scores(self._between(into, source, scale, seed), layers="all", **labels)

        if not self.diverged:
            yield from self._trained_heads(seed)

    def _trained_heads(self, seed: int):
        for null, shares in self.trained.items():
            found = [self._between("zero-shot", "gd", x, seed) for x in shares]
            labels = {"source": "gd", "into": "zero-shot", "site": "heads"} | ({"null": null} if null else {})
            values = np.array(found).reshape(LAYERS, HEADS, QUERIES, 2)
            yield array(values, "layer", "head", "query", "label", quantity="scores", **labels)

    def _exchanged(self, seed: int):
        """Reading's heads carry twice as much in the finetuned model as in the zero-shot run; its own the reverse."""
        for run in ("icl", "gd"):
            if run != "gd" or not self.diverged:
                yield scores(margins(self.at[run], seed), run=run)
        if self.diverged:
            return
        heads = np.arange(LAYERS * HEADS) / 100
        for source, into, shares in (("icl", "gd", 2 * heads), ("gd", "icl", heads[::-1])):
            found = [self._between(into, source, x, seed) for x in shares]
            values = np.array(found).reshape(LAYERS, HEADS, QUERIES, 2)
            labels = {"source": source, "into": into, "site": "heads"}
            yield array(values, "layer", "head", "query", "label", quantity="scores", **labels)

    def _heads(self, cell: Cell, seed: int):
        for run in ("zero-shot", "icl"):
            yield scores(margins(self.at[run], seed), run=run)
        carried = np.arange(LAYERS * HEADS).reshape(LAYERS, HEADS) / 100
        found = [[self._between("zero-shot", "icl", x, seed) for x in row] for row in carried]
        yield array(np.array(found), "layer", "head", "query", "label", quantity="scores", by="head")
        for name, sign in (("function vector", 1), ("induction", -1), ("dual step", 1)):
            yield array(sign * carried, "layer", "head", quantity="head score", score=name)
            for draw in (None, *range(cell.spec.sets)):
                spread = 0 if draw is None else (draw / (cell.spec.sets - 1) - 0.5) * 0.2
                left = self.left[name] if draw is None else self.random + spread
                labels: dict[str, Any] = {"score": name} | ({} if draw is None else {"draw": draw})
                yield array(self.sets[(draw or 0) % len(self.sets)], "place", "which", quantity="heads", **labels)
                yield scores(margins(self.at["zero-shot"], seed) + LEAN, run="zero-shot", **labels)
                yield scores(self._between("zero-shot", "icl", left, seed) + LEAN, run="icl", **labels)


def scores(values: np.ndarray, **labels: Any):
    return array(values, "query", "label", quantity="scores", **labels)


def planted(plant: Plant | None = None, **given: Any) -> View:
    spec = CausalSpec.of({"sets": 5} | given)
    cells = spec.cells()
    keys = [str(i) for i in range(len(cells))]
    results = {key: (plant or Plant())(cell) for key, cell in zip(keys, cells, strict=True)}
    return View(Study("causal", spec, cells, keys, results))
