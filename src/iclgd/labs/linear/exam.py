"""What a seed of a study is judged on: fresh and shifted episodes of its own, and the learners it is held against.

Every seed has its own episodes, so that an interval over seeds covers which of them were drawn. The learners are tuned
once, on a sample that all seeds share, and answer each seed's episodes: differences from them stay paired.
"""

from dataclasses import dataclass, replace

import torch

from iclgd.labs.linear.spec import TrainCell
from iclgd.metrics import functions as compare
from iclgd.metrics.functions import Predict, View
from iclgd.results import Label
from iclgd.small.fast import RULES
from iclgd.small.known import REFERENCES
from iclgd.small.models import DeepFeatures, predictor
from iclgd.small.references import ONLINE, candidates, zero
from iclgd.small.streams import generator, stream
from iclgd.small.train import Adam, member, stack, train
from iclgd.tasks.laws import Inputs, Law
from iclgd.tasks.regression import Episodes, LinearMap, Regression, corrupt

EVALUATION, SHIFTED, TUNING, REPLACED = 1, 2, 4, 5  # what a generator is for: the first part of its key
FEATURES_SEED = 2**32 - 1  # the largest there is: not among the first seeds, which people take
LAWS: tuple[Law, ...] = ("uniform", "normal", "laplace", "exponential", "sphere")


@dataclass(frozen=True, eq=False)
class Learners:
    """Tuned once for all seeds."""

    references: dict[str, Predict]
    candidates: dict[str, Predict]
    """Every learner at every number of steps tried; none behind an MLP."""


@dataclass(frozen=True, eq=False)
class Exam:
    """One seed's, made before any seed is trained, so that what is refused is refused first."""

    held: Episodes
    probes: Episodes  # many queries an episode, for implied weights
    references: dict[str, Predict]
    views: dict[str, View]
    """Of the references, on ``held``."""
    probed: dict[str, View]
    """Of the references, on ``probes``."""
    candidates: dict[str, View]
    """Of all learners tried, on ``probes``."""


def evaluation(seed: int) -> torch.Generator:
    """Draws what a seed is judged on, whoever is judged beside it."""
    return generator(EVALUATION, seed)


def exam(cell: TrainCell, tuned: Learners) -> Exam:
    task, fresh = cell.family, evaluation(cell.seed)
    held = task.draw(cell.episodes, fresh)
    probes = task.draw(min(cell.episodes, 500), fresh, queries=2 * cell.dx)
    return Exam(
        held,
        probes,
        tuned.references,
        {name: compare.view(p, held) for name, p in tuned.references.items()},
        {name: compare.view(p, probes) for name, p in tuned.references.items()},
        {name: compare.view(p, probes) for name, p in tuned.candidates.items()},
    )


def at_their_best(cell: TrainCell) -> Learners:
    """The learners of a study, which its seeds have in common."""
    task = cell.family
    sample = tuning_sample(task, cell.dx)
    named = references(cell, task, sample)
    few = Episodes(*(part[:500] for part in sample))  # enough to tune learners that are only told apart
    every = {} if cell.width else named | candidates(task, few)
    if every and cell.attention in RULES:
        every |= {name: p for rule in ONLINE for name, p in REFERENCES[rule](task, few, cell.layers).items()}
    return Learners(named, every)


def tuning_sample(task: Regression, dx: int) -> Episodes:
    return task.draw(tuning_episodes(task, dx), generator(TUNING), dtype=torch.float64)


def tuning_episodes(task: Regression, dx: int) -> int:
    """Enough to tune on: a linear family's risk is exact given the inputs, others have dx² parameters to fit."""
    return 2000 if isinstance(task.function, LinearMap) else max(2000, 200 * dx * dx)


def references(cell: TrainCell, task: Regression, sample: Episodes) -> dict[str, Predict]:
    """Learners by name, as many steps as the model has layers; behind an MLP a step on learned features; and zero."""
    found = features(cell, task) if cell.width else {}
    for learner in cell.learners:
        found |= learner.make()(task, sample, cell.layers)
    return found | zero(task, sample, cell.layers)


def features(cell: TrainCell, task: Regression) -> dict[str, Predict]:
    """The model's own reference behind an MLP: a gradient step on features that are trained for it."""
    network = DeepFeatures(cell.dx, cell.dy, cell.width, cell.hidden)
    batches, adam = stream([(FEATURES_SEED, task.draw)], cell.batch), Adam(torch.tensor([cell.rate]), clip=cell.clip)
    trained = train(network.loss, stack([network.init(FEATURES_SEED)]), batches, cell.steps, adam)
    return {"gd ×1 on learned features": predictor(network, member(trained.params, 0))}


def shifts(cell: TrainCell) -> dict[str, dict[Label, Episodes]]:
    """Input scale, label scale (the weights' scale of a linear family), other laws at the same Σ, random labels."""
    task = cell.family

    def drawn(of: Regression) -> Episodes:
        return of.draw(cell.episodes, generator(SHIFTED, cell.seed))

    base = drawn(task)
    replaced = range(0, cell.k + 1, max(1, cell.k // 5))
    return {
        "input scale": {
            f: drawn(replace(task, inputs=task.inputs.scaled(f))) for f in (0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0)
        },
        "label scale": {f: base._replace(y=base.y * f, target=base.target * f) for f in (0.5, 1.0, 2.0, 3.0, 4.0, 5.0)},
        "law": {law: drawn(replace(task, inputs=Inputs(task.inputs.covariance, law))) for law in LAWS},
        "random labels": {count: corrupt(base, count, generator(REPLACED, cell.seed)) for count in replaced},
    }
