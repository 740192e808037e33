"""Two changes of the same matrices beside each other, layer by layer: patches and training, and the nulls of both."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch

from iclgd.labs.implicit.ground import READ, Demos, Ground, random_like
from iclgd.labs.implicit.spec import TrainedCell
from iclgd.labs.implicit.weights import (
    Directions,
    Matrix,
    best_step,
    by_layer,
    cosine,
    directions,
    overlap,
    own_best_steps,
    own_contrasts,
    own_cosines,
    own_overlap,
)
from iclgd.models.added import Outer
from iclgd.models.mlps import matrix
from iclgd.models.static import Static
from iclgd.results import Array, array

SIDES = ("outputs", "inputs")
# the nulls of `compare` in which training, or what stands in for it, is another one; and those of another reading
OF_TRAINING: tuple[Demos, ...] = ("wrong", "shuffled", "other demos", "other task")
OF_READING: dict[str, Demos] = {"reading wrong": "wrong", "reading filler": "filler"}
NOISE = "noise"


class Change:
    """A change of every layer's matrix, with its first singular directions, found once."""

    def __init__(self, matrices: Sequence[Matrix], rank: int):
        self.matrices, self.rank = matrices, rank

    @cached_property
    def directions(self) -> list[Directions]:
        return [directions(one, self.rank) for one in self.matrices]


@dataclass(frozen=True)
class Pair:
    """Patches of single queries and of all, and what they are compared with."""

    own: Sequence[Outer]
    fit: Change
    change: Change


def alike(ground: Ground, changes: Mapping[Demos, Sequence[Matrix]], spec: TrainedCell) -> Iterator[Array]:
    """Cosines and subspaces of patches and training; of right minus wrong labels in both; of every null; sizes."""
    rank, static, seed = spec.ranks[-1], Static(ridge=spec.ridge), spec.episode.seed
    fits = {
        demos: Change([one.last for one in ground.static(demos, static, spec.calibration[-1])], rank)  # type: ignore[misc]  # matrices, no vectors
        for demos in READ
    }
    own: dict[Demos, list[Outer]] = {
        demos: [layer.last for layer in layers]  # type: ignore[misc]  # form C has it
        for demos, layers in ground.owned.items()
    }
    trained = {demos: Change(one, rank) for demos, one in changes.items()}
    trained_like = Change(random_like(changes["right"], seed), rank)
    base = Pair(own["right"], fits["right"], trained["right"])
    pairs: dict[str | None, Pair] = {None: base}
    pairs |= {demos: replace(base, change=trained[demos]) for demos in OF_TRAINING if demos in trained}
    pairs |= {null: Pair(own[demos], fits[demos], trained["right"]) for null, demos in OF_READING.items()}
    pairs[NOISE] = replace(base, change=trained_like)
    for null, pair in pairs.items():
        yield from _compared(pair, spec.ranks, {} if null is None else {"null": null})
    yield from _labels(own, fits, trained, trained_like, spec.ranks)
    yield from _sizes(ground, base, spec.ranks)
    yield from _steps(own, fits, trained)


def _compared(pair: Pair, ranks: Sequence[int], labels: dict[str, str]) -> Iterator[Array]:
    """The cosine of each query's own patch and of the one for all with a change, and the subspaces of either."""
    updates = pair.change.matrices
    found = [own_cosines(last, change) for last, change in zip(pair.own, updates, strict=True)]
    yield array(by_layer(found), "query", "layer", quantity="cosine", patch="own", **labels)
    values = [cosine(fit, change) for fit, change in zip(pair.fit.matrices, updates, strict=True)]
    yield array([values], "query", "layer", quantity="cosine", patch="matrix", **labels)
    yield _shared(overlap, pair.fit.directions, pair.change.directions, ranks, **labels)
    yield _shared(own_overlap, pair.own, pair.change.directions, ranks, patch="own", **labels)


def _labels(
    own: Mapping[Demos, Sequence[Outer]],
    fits: Mapping[Demos, Change],
    trained: Mapping[Demos, Change],
    noise: Change,
    ranks: Sequence[int],
) -> Iterator[Array]:
    """What labels change, right minus wrong, in the patches and in training; in training on other demonstrations."""
    made = _less(fits["right"], fits["wrong"])
    others: dict[str | None, Change] = {None: _less(trained["right"], trained["wrong"])}
    if "other demos" in trained and "other demos, wrong" in trained:
        others["other demos"] = _less(trained["other demos"], trained["other demos, wrong"])
    others[NOISE] = noise
    for null, change in others.items():
        labels = {} if null is None else {"null": null}
        three = zip(own["right"], own["wrong"], change.matrices, strict=True)
        found = [own_contrasts(*one) for one in three]
        yield array(by_layer(found), "query", "layer", quantity="contrast", patch="own", **labels)
        values = [cosine(a, b) for a, b in zip(made.matrices, change.matrices, strict=True)]
        yield array([values], "query", "layer", quantity="contrast", patch="matrix", **labels)
        yield _shared(overlap, made.directions, change.directions, ranks, patch="labels", **labels)


def _less(one: Change, two: Change) -> Change:
    return Change([a - b for a, b in zip(one.matrices, two.matrices, strict=True)], one.rank)


def _sizes(ground: Ground, pair: Pair, ranks: Sequence[int]) -> Iterator[Array]:
    """Chance, and sizes beside the weights."""
    fits, changes = pair.fit.matrices, pair.change.matrices
    chance = [[min(1.0, rank / size) for size in fits[0].shape] for rank in ranks]
    yield array(chance, "rank", "side", quantity="chance", coordinates={"rank": ranks, "side": SIDES})
    weights = [matrix(mlp.last) for mlp in ground.subject.layout.mlps()]
    for name, parts in (("matrix", fits), ("gd", changes)):
        sizes = [float(a.norm() / w.norm()) for a, w in zip(parts, weights, strict=True)]
        yield array(sizes, "layer", quantity="length", patch=name)


def _steps(
    own: Mapping[Demos, Sequence[Outer]], fits: Mapping[Demos, Change], trained: Mapping[Demos, Change]
) -> Iterator[Array]:
    """The number by which training would have to be scaled: for patches whole, and for what labels change in both."""
    labels = _less(trained["right"], trained["wrong"])
    for patch, fit, change in (
        (None, fits["right"], trained["right"]),
        ("labels", _less(fits["right"], fits["wrong"]), labels),
    ):
        found = [best_step(a, b) for a, b in zip(fit.matrices, change.matrices, strict=True)]
        yield array(found, "layer", quantity="step", **({} if patch is None else {"patch": patch}))
    whole = [own_best_steps(*one) for one in zip(own["right"], trained["right"].matrices, strict=True)]
    yield array(by_layer(whole), "query", "layer", quantity="step", patch="own")
    parts = zip(own["right"], labels.matrices, own["wrong"], strict=True)
    yield array(by_layer(own_best_steps(*one) for one in parts), "query", "layer", quantity="step", patch="own, labels")


def _shared(measure: Any, ours: Sequence[Any], theirs: Sequence[Any], ranks: Sequence[int], **labels: Any) -> Array:
    """An overlap by rank, layer and side."""
    found = [[measure(a, b, rank) for a, b in zip(ours, theirs, strict=True)] for rank in ranks]
    places = {"rank": ranks, "side": SIDES}
    return array(torch.tensor(found), "rank", "layer", "side", quantity="overlap", coordinates=places, **labels)
