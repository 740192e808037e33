"""Function vectors: what a few heads write, in place of the demonstrations (Todd 2024)."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from typing import Annotated, ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Float
from pydantic import Field
from torch import Tensor

from iclgd.errors import Refusal
from iclgd.learners.left_out import left_out
from iclgd.models.edits import EditedSubject, added
from iclgd.models.heads import written_by
from iclgd.models.last_token import Edits, LastToken
from iclgd.models.subject import Subject
from iclgd.models.traces import Predictor
from iclgd.prompts import Demo, Prompts


@dataclass(frozen=True)
class FunctionVector:
    """The sum of what the ``heads`` of largest causal effect write, added after one block at the prompt's last token.

    Todd 2024, §2: ā is a head's mean output at the last token of prompts with demonstrations; its effect is
    p(y | a := ā) − p(y) for the right answer y of prompts whose labels were permuted, in the mean over prompts; the
    vector is Σ W_O ā of the heads whose effect is largest (they take 10), added a third of the way up. Their prompts
    are drawn anew and heads chosen over many tasks; here a prompt is one of the first ``prompts`` demonstrations,
    asked behind the others, and nothing else is used.
    """

    heads: Annotated[int, Field(ge=1)] = 10
    layer: Annotated[int, Field(ge=0)] | None = None
    prompts: Annotated[int, Field(ge=1)] = 8
    version: ClassVar[int] = 1

    @contextmanager
    def learn(self, subject: Subject, prompts: Prompts) -> Iterator[Predictor]:
        layers = subject.layout.layers
        layer = layers // 3 if self.layer is None else self.layer
        if layer >= layers:
            raise Refusal(f"the function vector's `layer` is {layer}, and the model's last is {layers - 1}.")
        found = mediation(subject, prompts, self.prompts)
        vector = written_by(subject, found.mean, largest(found.effects, self.heads))
        yield Predictor(EditedSubject(subject, added(layer, vector)), subject.encode(prompts.bos))


@dataclass(frozen=True)
class Mediation:
    """Every head's mean output behind demonstrations, and the effect it has where labels were permuted."""

    mean: Float[Tensor, "layer width"]
    effects: Float[Tensor, "layer head"]


def mediation(subject: Subject, prompts: Prompts, most: int) -> Mediation:
    """Average indirect effects (Todd 2024, eqs. 3 and 4) on the first ``most`` demonstrations, each asked."""
    clean = islice(left_out(prompts), most)
    heads = [LastToken(subject, subject.encode(context), query).plain().heads for context, query in clean]
    mean = torch.cat(heads).mean(0)
    effects = [effects_of(subject, prompts, place, mean) for place in range(len(heads))]
    return Mediation(mean, torch.stack(effects).mean(0))


def effects_of(
    subject: Subject, prompts: Prompts, place: int, mean: Float[Tensor, "layer width"]
) -> Float[Tensor, "layer head"]:
    """p(y | a := ā) − p(y) for each head, for one demonstration asked behind others whose labels are permuted."""
    context, query = next(islice(left_out(shuffled(prompts, place)), place, None))
    last, word = LastToken(subject, subject.encode(context), query), prompts.demos[place].label[0]
    layers, heads = subject.layout.layers, subject.layout.heads
    none_and_each = torch.cat([torch.zeros(1, layers * heads), torch.eye(layers * heads)]).bool()
    logits = last.edited(Edits("heads", none_and_each.unflatten(1, (layers, heads)), mean[None]))
    chances = logits.double().softmax(-1)[:, word].cpu()
    return (chances[1:] - chances[0]).view(layers, heads)


def shuffled(prompts: Prompts, seed: int) -> Prompts:
    """The demonstrations' labels permuted among them, by a seed."""
    order = np.random.RandomState(seed).permutation(len(prompts.demos))
    given = zip(prompts.demos, (prompts.demos[i].label for i in order), strict=True)
    demos = tuple(Demo(demo.ids[: len(demo.ids) - len(demo.label)] + label, label) for demo, label in given)
    return replace(prompts, demos=demos)


def largest(scores: Float[Tensor, "layer head"], count: int) -> Bool[Tensor, "layer head"]:
    """Where the largest scores are; of equal ones, the first."""
    order = scores.flatten().argsort(descending=True, stable=True)[:count]
    chosen = torch.zeros(scores.numel(), dtype=torch.bool)
    chosen[order.cpu()] = True
    return chosen.view(scores.shape)
