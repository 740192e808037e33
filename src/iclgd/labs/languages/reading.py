"""The numbers of a study by setting: what every seed found, side by side."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from iclgd.lab import Label
from iclgd.labs.languages.measures import TRAINED
from iclgd.labs.languages.spec import AllSpec, RunSpec, Setting
from iclgd.results import Result
from iclgd.study import Study


@dataclass(frozen=True, eq=False)
class Reading:
    """One setting of a study, with the results of its seeds."""

    setting: Setting
    seeds: tuple[int, ...]
    results: Sequence[Result]

    @cached_property
    def _index(self) -> dict[frozenset[tuple[str, Label]], list[np.ndarray]]:
        """Every array by its labels, over seeds."""
        found: dict[frozenset[tuple[str, Label]], list[np.ndarray]] = {}
        for result in self.results:
            for one in result.arrays:
                found.setdefault(frozenset(one.labels.items()), []).append(one.values)
        return found

    def _values(self, **labels: Label) -> np.ndarray:
        """[seed, …]; empty where there is no such array."""
        known = self._index.get(frozenset(labels.items()))
        return np.stack(known) if known else np.empty((0,))

    @cached_property
    def learners(self) -> list[str]:
        """The learners that the layers are held against."""
        known = self.results[0].select(part="learner", shuffled=False)
        return [name for name in dict.fromkeys(str(one.labels["learner"]) for one in known) if name != TRAINED]

    def called(self, kind: str) -> str:
        """The learner of a kind, whatever its number of steps: `gd ×2` for gd; empty if there is none."""
        return next((name for name in self.learners if name.split(" ×")[0] == kind), "")

    def of(self, learner: str, quantity: str, shuffled: bool = False) -> np.ndarray:
        """[seed]"""
        return self._values(part="learner", learner=learner, quantity=quantity, shuffled=shuffled)

    def reads_labels(self) -> np.ndarray:
        """Accuracy of the layers less their accuracy with shuffled labels. [seed]"""
        return self.of(TRAINED, "accuracy") - self.of(TRAINED, "accuracy", shuffled=True)

    def training(self, learner: str, quantity: str) -> np.ndarray:
        """[seed, step]"""
        return self._values(part="training", learner=learner, quantity=quantity)

    def encoding(self, quantity: str) -> np.ndarray:
        """[seed, step]; empty where the encoder was not trained."""
        return self._values(part="encoder", quantity=quantity)

    def steps(self, part: str) -> Sequence[int]:
        known = self.results[0].select(part=part)
        return [int(step) for step in known[0].coordinates["step"]] if known else []

    def matrix(self, learner: str, matrix: str) -> np.ndarray:
        """qk or pv, [seed, row, column]; empty for what is not one layer on codes."""
        return self._values(part="weights", learner=learner, matrix=matrix)

    def layer(self, learner: str, place: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """qk and pv of a seed as they are shown, each scaled to its largest entry.

        Both signs of a layer are the same layer; this is the one whose pv has a negative label entry, as GD's has.
        """
        qk, pv = (self.matrix(learner, name)[place] for name in ("qk", "pv"))
        sign = -1.0 if pv[-1, -1] > 0 else 1.0
        return sign * qk / (np.abs(qk).max() or 1), sign * pv / (np.abs(pv).max() or 1)

    def weights(self, quantity: str) -> np.ndarray:
        """[seed]; empty for what is not one layer on codes."""
        return self._values(part="weights", quantity=quantity)

    @property
    def facts(self) -> dict[str, Any]:
        """Of the first seed."""
        return dict(self.results[0].facts)


def readings(study: Study) -> list[Reading]:
    """The settings of a study, in the order in which they are shown."""
    spec = study.spec
    assert isinstance(spec, RunSpec | AllSpec)
    places = {tuple(cell.labels.items()): name for cell, name in zip(study.cells, study.keys, strict=True)}

    def result(setting: Setting, seed: int) -> Result:
        return study.results[places[tuple({**setting.where(), "seed": seed}.items())]]

    return [Reading(one, spec.seeds, [result(one, seed) for seed in spec.seeds]) for one in spec.settings()]
