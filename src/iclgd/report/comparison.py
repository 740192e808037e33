"""The cells of a study brought together: values over seeds, queries and layers, their means and intervals."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from iclgd.metrics.prediction import agreement, batch_calibration, contextual_calibration, kl_divergence, rec2ftp, right
from iclgd.metrics.statistics import corrected, interval, paired_p_value
from iclgd.prompts import POSITIONS
from iclgd.run import CellResult
from iclgd.spec import CellSpec, Init, StudySpec

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

    def cells(self, init: Init, task: str) -> list[CellSpec]:
        return [cell for cell in self.study.cells() if cell.model.init == init and cell.task == task]

    def arrays(self, init: Init, task: str, name: str) -> list[torch.Tensor]:
        """An array of every seed that has it."""
        found = [self.results[cell.key()].arrays for cell in self.cells(init, task)]
        return [arrays[name] for arrays in found if name in arrays]

    def diverged(self, init: Init, task: str, learner: str) -> int:
        """In how many seeds a learner's training diverged."""
        facts = [self.results[cell.key()].facts for cell in self.cells(init, task)]
        return sum(learner in fact["diverged"] for fact in facts)  # type: ignore[operator]

    # likeness

    def values(self, init: Init, tasks: Sequence[str], name: str, position: str) -> Values:
        """A likeness over (seed, query, layer), queries of several tasks side by side; empty where it was not run."""
        index = POSITIONS.index(position)
        stacks = [
            np.stack([a[index].numpy() for a in found]) for task in tasks if (found := self.arrays(init, task, name))
        ]
        if not stacks:
            return np.empty((0, 0, 0))
        seeds = min(len(stack) for stack in stacks)
        return np.concatenate([stack[:seeds] for stack in stacks], axis=1)

    def likeness(self, init: Init, tasks: Sequence[str], name: str, position: str) -> Estimate:
        """Mean over layers, queries, seeds."""
        values = self.values(init, tasks, name, position)
        return estimate(_mean(values, -1)) if values.size else NOTHING

    def by_layer(self, init: Init, tasks: Sequence[str], name: str, position: str) -> list[Estimate]:
        values = self.values(init, tasks, name, position)
        return [estimate(values[..., layer]) for layer in range(values.shape[-1])] if values.size else []

    def paired(self, init: Init, tasks: Sequence[str], a: str, b: str, position: str) -> Paired:
        """Two arrays query by query, averaged over seeds first, and layer by layer with correction."""
        one, two = (_mean(self.values(init, tasks, name, position), 0) for name in (a, b))
        if one.shape != two.shape or not one.size:
            return Paired(float("nan"), float("nan"), 0, 0)
        by_layer = corrected([paired_p_value(one[:, i], two[:, i]) for i in range(one.shape[-1])])
        one, two = _mean(one, -1), _mean(two, -1)
        return Paired(
            float(np.nanmean(one - two)), paired_p_value(one, two), int((by_layer < 0.05).sum()), len(by_layer)
        )

    # prediction

    def predictions(self, init: Init, task: str, learner: str, measure: "Measure") -> Estimate:
        """A measure of a learner's label scores over (seed, query)."""
        rows = []
        for cell in self.cells(init, task):
            arrays = self.results[cell.key()].arrays
            if f"{learner}/scores" in arrays:
                rows.append(measure(arrays, learner).double().numpy())
        return estimate(np.stack(rows)) if rows else NOTHING

    def recall(self, init: Init, task: str, learner: str) -> tuple[int, int, int, int]:
        """Rec2FTP's four counts, added up over seeds."""
        counts = np.zeros(4, dtype=int)
        for cell in self.cells(init, task):
            arrays = self.results[cell.key()].arrays
            if f"{learner}/scores" in arrays:
                zero, icl, tuned = (arrays[f"{name}/scores"] for name in ("zero-shot", "icl", learner))
                found = rec2ftp(zero, icl, tuned, arrays["answers"])
                counts += np.array([found.both, found.corrected, found.base_both, found.base_wrong])
        return tuple(int(count) for count in counts)  # type: ignore[return-value]


Measure = Callable[[Mapping[str, torch.Tensor], str], torch.Tensor]


def raw_accuracy(arrays: Mapping[str, torch.Tensor], learner: str) -> torch.Tensor:
    return right(arrays[f"{learner}/scores"], arrays["answers"])


def contextual_accuracy(arrays: Mapping[str, torch.Tensor], learner: str) -> torch.Tensor:
    return right(contextual_calibration(arrays[f"{learner}/scores"], arrays[f"{learner}/blanks"]), arrays["answers"])


def batch_accuracy(arrays: Mapping[str, torch.Tensor], learner: str) -> torch.Tensor:
    return right(batch_calibration(arrays[f"{learner}/scores"]), arrays["answers"])


def agrees_with_icl(arrays: Mapping[str, torch.Tensor], learner: str) -> torch.Tensor:
    return agreement(arrays["icl/scores"], arrays[f"{learner}/scores"])


def kl_from_icl(arrays: Mapping[str, torch.Tensor], learner: str) -> torch.Tensor:
    return kl_divergence(arrays["icl/scores"], arrays[f"{learner}/scores"])


def estimate(values: np.ndarray) -> Estimate:
    """Of (seed, query) values."""
    means = _mean(values, -1)
    std = float(np.nanstd(means, ddof=1)) if np.isfinite(means).sum() > 1 else float("nan")
    return Estimate(float(_mean(values.ravel(), 0)), *interval(values), std)


def _mean(values: np.ndarray, axis: int) -> np.ndarray:
    """The mean of what is known; nan where nothing is."""
    known = np.isfinite(values)
    count = known.sum(axis)
    total = np.where(known, values, 0).sum(axis)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)
