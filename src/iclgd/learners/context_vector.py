"""In-context vectors: one direction a layer, from demonstrations read one by one (Liu 2024)."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from iclgd.models.edits import EditedSubject, steered
from iclgd.models.patches import read
from iclgd.models.subject import Subject
from iclgd.models.traces import Predictor
from iclgd.prompts import Prompts


@dataclass(frozen=True)
class ContextVector:
    """Every block's output moved along the main direction from what is asked to what is answered.

    Liu 2024: for pairs (x, y) the states of all layers at the last tokens of x and of y, read apart; the vector
    is the first principal direction of h(y) − h(x) over the pairs. It is added to every token in every layer, and each
    state is brought back to its length. Their pairs are two texts; a demonstration here is a text and its label word,
    so x is the text and y the text with the label, and the direction points from x to y. Differences are not centred,
    as the direction would then be one between demonstrations. ``strength`` is the vector's length as a share of the
    layer's mean state.
    """

    strength: Annotated[float, Field(ge=0)] = 0.1
    version: ClassVar[int] = 1

    @contextmanager
    def learn(self, subject: Subject, prompts: Prompts) -> Iterator[Predictor]:
        asked = [prompts.bos + demo.ids[: len(demo.ids) - len(demo.label)] for demo in prompts.demos]
        answered = [prompts.bos + demo.ids for demo in prompts.demos]
        before, after = (read(subject, texts, None).blocks for texts in (asked, answered))
        vectors = main_direction(after - before) * before.norm(dim=-1).mean(0)[:, None]
        yield Predictor(EditedSubject(subject, steered(vectors, self.strength)), subject.encode(prompts.bos))


def main_direction(moves: Float[Tensor, "demo layer dim"]) -> Float[Tensor, "layer dim"]:
    """The first principal direction over demonstrations of all layers together, each layer's part of length one."""
    flat = moves.flatten(1).double()
    first = torch.linalg.svd(flat, full_matrices=False).Vh[0]
    first = first * torch.sign((flat @ first).sum())
    return torch.nn.functional.normalize(first.reshape(moves.shape[1:]), dim=-1).to(moves)
