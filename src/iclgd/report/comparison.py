"""The cells of a study brought together: values over seeds, queries and layers, their means and intervals."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from iclgd.metrics.prediction import agreement, batch_calibration, contextual_calibration, kl_divergence, rec2ftp, right
from iclgd.metrics.statistics import corrected, intervals, paired_p_values
from iclgd.prompts import POSITIONS
from iclgd.run import CellResult
from iclgd.spec import Init, StudySpec

NULLS = ("random", "uniform", "other query", "shuffled labels", "other task")
FLOORS = ("other batch", "other precision")
Values = np.ndarray  # (seed, query, layer), nan where there is nothing


@dataclass(frozen=True)
class Estimate:
    """A mean, its 95% interval over queries and demonstration seeds, and its spread over seeds."""

    mean: float
    low: float
    high: float
    seed_std: float  # standard deviation of the seeds' means (ddof 1), as the papers print it


NOTHING = Estimate(*[float("nan")] * 4)


@dataclass(frozen=True)
class Paired:
    """One learner against another on the same queries: mean difference, p-value, layers that differ."""

    difference: float
    p_value: float
    layers: int  # layers whose corrected p-value is below 0.05
    of: int


@dataclass(frozen=True)
class Comparison:
    """A study and the results of its cells."""

    study: StudySpec
    results: Mapping[str, CellResult]  # by the cell's key

    @cached_property
    def _found(self) -> dict[tuple[Init, str], list[CellResult]]:
        """The results of each initialisation and task, seed by seed."""
        found: dict[tuple[Init, str], list[CellResult]] = {}
        for cell in self.study.cells():
            found.setdefault((cell.model.init, cell.task), []).append(self.results[cell.key()])
        return found

    def first_seed(self) -> "Comparison":
        """The same of the first seed alone, for which every null was run."""
        return Comparison(self.study.model_copy(update={"seeds": self.study.seeds[:1]}), self.results)

    def arrays(self, init: Init, task: str, name: str) -> list[torch.Tensor]:
        """An array of every seed that has it."""
        return [result.arrays[name] for result in self._found[init, task] if name in result.arrays]

    def diverged(self, init: Init, task: str, learner: str) -> int:
        """In how many seeds a learner's training diverged."""
        return sum(learner in result.facts["diverged"] for result in self._found[init, task])  # type: ignore[operator]

    # likeness

    def values(self, init: Init, tasks: Sequence[str], name: str, position: str) -> Values:
        """A likeness over (seed, query, layer), queries of several tasks side by side; empty where it was not run.

        nan in the seeds that do not have it, so that a seed is the same one in every task and for every learner.
        """
        index = POSITIONS.index(position)
        stacks = []
        for task in tasks:
            if found := self.arrays(init, task, name):
                nothing = torch.full_like(found[0], torch.nan)
                stacks.append(np.stack([r.arrays.get(name, nothing)[index].numpy() for r in self._found[init, task]]))
        return np.concatenate(stacks, axis=1) if stacks else np.empty((0, 0, 0))

    def likeness(self, init: Init, tasks: Sequence[str], name: str, position: str) -> Estimate:
        """Mean over layers, queries, seeds."""
        values = _known_seeds(self.values(init, tasks, name, position))
        return estimate(_mean(values, -1)) if values.size else NOTHING

    def by_layer(self, init: Init, tasks: Sequence[str], name: str, position: str) -> list[Estimate]:
        values = self.values(init, tasks, name, position)
        return estimates(_known_seeds(values)) if values.size else []

    def paired(self, init: Init, tasks: Sequence[str], a: str, b: str, position: str) -> Paired:
        """Two arrays query by query, averaged over seeds first, and layer by layer with correction.

        Only where both are known: a seed in which one of them diverged is left out of the other, too.
        """
        both = [task for task in tasks if all(self.arrays(init, task, name) for name in (a, b))]
        one, two = (self.values(init, both, name, position) for name in (a, b))
        if one.shape != two.shape or not one.size:
            return Paired(float("nan"), float("nan"), 0, 0)
        known = np.isfinite(one) & np.isfinite(two)
        one, two = (_mean(np.where(known, values, np.nan), 0) for values in (one, two))
        by_layer = corrected(paired_p_values(one, two))
        one, two = _mean(one, -1)[:, None], _mean(two, -1)[:, None]
        p_value = float(paired_p_values(one, two)[0])
        return Paired(float(_mean(one - two, 0)[0]), p_value, int((by_layer < 0.05).sum()), len(by_layer))

    # prediction

    def predictions(self, init: Init, task: str, learner: str, measure: "Measure") -> Estimate:
        """A measure of a learner's label scores over (seed, query)."""
        rows = []
        for arrays in (result.arrays for result in self._found[init, task]):
            if f"{learner}/scores" in arrays:
                rows.append(measure(arrays, learner).double().numpy())
        return estimate(np.stack(rows)) if rows else NOTHING

    def recall(self, init: Init, task: str, learner: str) -> tuple[int, int, int, int]:
        """Rec2FTP's four counts, added up over seeds."""
        counts = np.zeros(4, dtype=int)
        for arrays in (result.arrays for result in self._found[init, task]):
            if f"{learner}/scores" in arrays:
                zero, icl, tuned = (arrays[f"{name}/scores"] for name in ("zero-shot", "icl", learner))
                found = rec2ftp(zero, icl, tuned, arrays["answers"])
                counts += np.array([found.both, found.corrected, found.base_both, found.base_wrong])
        return tuple(int(count) for count in counts)  # type: ignore[return-value]


Measure = Callable[[Mapping[str, torch.Tensor], str], torch.Tensor]


def raw_accuracy(arrays: Mapping[str, torch.Tensor], learner: str) -> torch.Tensor:
    return right(arrays[f"{learner}/scores"], arrays["answers"])


def contextual_accuracy(arrays: Mapping[str, torch.Tensor], learner: str) -> torch.Tensor:
    scores, blanks = arrays[f"{learner}/scores"], arrays[f"{learner}/blanks"]
    if not len(blanks):  # a template that has no tokens without content: nothing to calibrate with
        return torch.full((len(scores),), torch.nan)
    return right(contextual_calibration(scores, blanks), arrays["answers"])


def batch_accuracy(arrays: Mapping[str, torch.Tensor], learner: str) -> torch.Tensor:
    return right(batch_calibration(arrays[f"{learner}/scores"]), arrays["answers"])


def agrees_with_icl(arrays: Mapping[str, torch.Tensor], learner: str) -> torch.Tensor:
    return agreement(arrays["icl/scores"], arrays[f"{learner}/scores"])


def kl_from_icl(arrays: Mapping[str, torch.Tensor], learner: str) -> torch.Tensor:
    return kl_divergence(arrays["icl/scores"], arrays[f"{learner}/scores"])


def estimate(values: np.ndarray) -> Estimate:
    """Of (seed, query) values."""
    return estimates(values[..., None])[0]


def estimates(values: np.ndarray) -> list[Estimate]:
    """Of (seed, query, column) values, one for each column."""
    lows, highs = intervals(values)
    found = []
    for column, (low, high) in enumerate(zip(lows, highs, strict=True)):
        means = _mean(values[..., column], -1)
        std = float(np.nanstd(means, ddof=1)) if np.isfinite(means).sum() > 1 else float("nan")
        found.append(Estimate(float(_mean(values[..., column].ravel(), 0)), float(low), float(high), std))
    return found


def _known_seeds(values: Values) -> Values:
    """The seeds in which anything is known; all of them where nothing is."""
    known = np.isfinite(values).any((1, 2))
    return values[known] if known.any() else values


def _mean(values: np.ndarray, axis: int) -> np.ndarray:
    """The mean of what is known; nan where nothing is."""
    known = np.isfinite(values)
    count = known.sum(axis)
    total = np.where(known, values, 0).sum(axis)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)
