"""Gradient descent on the demonstrations: the learner that in-context learning is compared with."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from iclgd.learners.course import Batch, Gradients, Step
from iclgd.learners.together import Job, train_together
from iclgd.learners.vocabulary import Desk, answers_plainly, beside_unembedding, cross_entropies, of_unembedding
from iclgd.models.layout import Part
from iclgd.models.subject import Subject
from iclgd.models.traces import Predictor
from iclgd.prompts import Demo, Ids, Prompts
from iclgd.spec import Seed


@dataclass(frozen=True)
class GradientDescent:
    """Plain SGD on the demonstrations, one at a time and in order (Dai 2022, §4.1: K and V projections only).

    The loss is the causal language model's, mean per token, over all tokens of the demonstration, or over its label
    word alone. ``order`` trains in another order, by seed; ``dropped_too`` trains also on demonstrations that did not
    fit the context: the two departures in the papers' code, where finetuning and prompting saw different things.

    Steps are taken in float32 or better, whatever the model's format (see replicas.py).
    """

    rate: Annotated[float, Field(ge=0)] = 1e-3
    trains: Part = "kv"
    epochs: Annotated[int, Field(ge=1)] = 1
    clip: Annotated[float, Field(gt=0)] | None = None
    target: Literal["all", "label"] = "all"
    order: Seed | None = None
    dropped_too: bool = False
    version: ClassVar[int] = 2  # rises when the same options would give other weights

    @contextmanager
    def learn(self, subject: Subject, prompts: Prompts) -> Iterator[Predictor]:
        (trained,) = train_together(subject, [Job(self, prompts)])
        with trained.installed() as predictor:
            yield predictor

    # how it is trained, by itself or beside others

    def course(self, prompts: Prompts) -> list[Step]:
        """Every demonstration by itself, from bos, without the separator."""
        demos = prompts.demos + (prompts.dropped if self.dropped_too else ())
        order = range(len(demos)) if self.order is None else np.random.RandomState(self.order).permutation(len(demos))
        return [
            step for _ in range(self.epochs) for i in map(int, order) for step in self.steps(prompts.bos, demos[i], i)
        ]

    def steps(self, bos: Ids, demo: Demo, index: int) -> list[Step]:
        """The steps taken on one demonstration, here one."""
        ids = bos + demo.ids
        first = len(ids) - len(demo.label) if self.target == "label" else 1
        return [Step(ids, range(first, len(ids)), index)]

    def check(self, subject: Subject, step: Step) -> None:
        """The model's own loss is right by itself; how it answers is asked while no replica's weights run."""
        answers_plainly(subject)

    def predictions(self, subject: Subject) -> int:
        return 1

    def gradients(
        self, subject: Subject, batch: Batch, leaves: Sequence[Tensor], desk: Desk
    ) -> tuple[Float[Tensor, " replica"], Gradients]:
        """∇ of the mean cross-entropy of the model's own prediction of the next token."""
        states: list[Tensor] = []
        plain = answers_plainly(subject) and not of_unembedding(subject, leaves)

        def asked(_module: nn.Module, args: tuple[Tensor, ...]) -> tuple[Tensor]:
            states.append(batch.pick(args[0])[None])
            return (states[0][:, :0] if plain else states[0],)  # the vocabulary at the rows that predict, or later

        handle = subject.layout.unembedding.register_forward_pre_hook(asked)
        try:
            logits = subject.model(batch.ids, use_cache=False, **batch.extra).logits[0]
        finally:
            handle.remove()
        if not plain:
            precise = logits.to(torch.promote_types(logits.dtype, torch.float32))
            losses = batch.means(cross_entropy(precise, batch.wanted.to(logits.device), reduction="none"))
            return losses.detach(), list(torch.autograd.grad(losses, leaves, torch.ones_like(losses)))
        (normed,) = beside_unembedding(subject, states[0])
        shares, wanted = (part.to(normed.device) for part in (batch.shares, batch.wanted))
        entropies, slopes, _ = cross_entropies(subject, normed.detach(), wanted, shares, [], desk)
        return batch.means(entropies), list(torch.autograd.grad(normed, leaves, slopes))
