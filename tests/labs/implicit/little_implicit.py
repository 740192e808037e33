"""What tests of the cells of `implicit` share: prompts, scores of a result, training by itself."""

import numpy as np
import torch

from iclgd.lab import Cell
from iclgd.learners.descent import GradientDescent
from iclgd.models.subject import Subject
from iclgd.noise import normal
from iclgd.prompts import Prompts, build_prompts
from iclgd.results import Result
from iclgd.spec import PromptSpec
from iclgd.tools import Tools

SEED = 3  # of the draw: nothing that is drawn by a seed is drawn by another one


def prompts_of(subject: Subject, cell: Cell) -> Prompts:
    episode = Tools().episode(cell.spec.task, cell.spec.episode)
    return build_prompts(subject.tokenizer, episode, PromptSpec(), subject.room)


def scores(result: Result, **labels: object) -> np.ndarray:
    usual = dict.fromkeys(("fitted", "null", "layers", "first", "last", "demos"))
    (found,) = result.select(**{**usual, "quantity": "scores", "asked": "held", **labels})
    return found.values


def alike(a: torch.Tensor, b: torch.Tensor) -> float:
    return float(torch.cosine_similarity(a.double().ravel(), b.double().ravel(), 0))


def trained_alone(subject: Subject, prompts: Prompts, layer: int) -> torch.Tensor:
    """What the package's learner makes of one layer's last map, trained by itself."""
    before = subject.layout.mlps()[layer].last.weight.detach().clone()
    with GradientDescent(rate=0.3, trains="down").learn(subject, prompts) as predictor:
        return predictor.slots[layer].parameter.detach() - before


def noise_of(change: torch.Tensor, layer: int) -> torch.Tensor:
    return normal(change.shape, (SEED, layer), dtype=torch.float32)
