"""How a training went: what its steps met, and whether there is anything to measure afterwards."""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor

from iclgd.learners.course import Step
from iclgd.models.traces import Training

LONGEST_UPDATE = 1.0  # × the norm of the weights it changes
LARGEST_LOSS = 2.0  # × the larger of the first loss and that of guessing every token evenly


def outcome(
    course: Sequence[Step],
    met: Float[Tensor, "step _"],
    vectors: Mapping[int, Tensor],
    moves: Sequence[float],
    guess: float,
) -> Training:
    """The record of one training.

    ``met`` has for each step the loss, whether all weights were finite after it, and the gradient's norm in every
    layer; ``vectors`` each demonstration's query projections; ``moves`` what `Slot.moves` adds up to. A training that
    met a number that is not finite ends with the demonstration it was met on.
    """
    losses, norms, why = [], torch.zeros(met.shape[1] - 2, _demos(course), dtype=torch.float64), None
    for visit in _visits(course):
        losses += met[visit, 0].tolist()
        norms[:, course[visit.start].demo] = met[visit, 2:].mean(0)
        if not all(map(math.isfinite, losses)):
            why = "the loss is not a finite number"
        elif not met[visit.stop - 1, 1]:
            why = "a trained weight is not a finite number"
        if why:
            break
    why, changed = why or diverged(losses, guess, moves), moves[0] / moves[1]
    return Training(tuple(losses), norms, () if why else tuple(vectors[i] for i in sorted(vectors)), changed, why)


def diverged(losses: Sequence[float], guess: float, moves: Sequence[float]) -> str | None:
    """Why a training that ended in finite numbers is none all the same.

    A norm in the model can hide any size of weight, so finite answers prove nothing: at a rate of 1e38 they were all
    right by chance. Either the update is longer than the weights it changed, so that hardly anything of the model is
    left; or the loss, in the mean over all steps after the first, is far above both where it began and ``guess``, the
    loss of a model that knows nothing.
    """
    _, _, update, weights = moves
    if not update <= LONGEST_UPDATE**2 * weights:
        return f"the update is {math.sqrt(update / weights) if weights else math.inf:.2g} times as long as the weights"
    bound = LARGEST_LOSS * max(losses[0], guess) if losses else math.inf
    if len(losses) > 1 and (mean := sum(losses[1:]) / (len(losses) - 1)) > bound:
        return f"the loss rose from {losses[0]:.3g} to {mean:.3g}, and guessing evenly has {guess:.3g}"
    return None


def _demos(course: Sequence[Step]) -> int:
    return 1 + max((step.demo for step in course), default=-1)


def _visits(course: Sequence[Step]) -> list[slice]:
    """The steps on one demonstration, each time that it comes."""
    starts = [i for i, step in enumerate(course) if step.first] + [len(course)]
    return [slice(start, stop) for start, stop in pairwise(starts)]
