"""Gradient descent on all demonstrations at once: the learner for which their order cannot matter."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from iclgd.learners.course import Batch, on_device
from iclgd.learners.descent import GradientDescent
from iclgd.learners.vocabulary import Desk
from iclgd.models.replicas import InPlace
from iclgd.models.subject import Subject
from iclgd.models.traces import Predictor
from iclgd.prompts import Prompts


@dataclass(frozen=True)
class FullBatch:
    """Steps on the sum of the demonstrations' losses, all gradients taken at the same weights.

    The sum rather than the mean, so that at one rate a step is as long as one pass of ``single`` to first order. What
    order leaves is the rounding of the sums.
    """

    single: GradientDescent

    @contextmanager
    def learn(self, subject: Subject, prompts: Prompts) -> Iterator[Predictor]:
        one = self.single
        with subject.training(one.trains) as slots:
            weights, desk = InPlace(slots), Desk()
            steps = one.course(prompts)[: len(prompts.demos)]
            (batch,) = on_device([Batch.of(steps)], subject.device)
            for _ in range(one.epochs):
                _, gradients = one.gradients(subject, batch, weights.leaves, desk)
                weights.descend(weights.restricted(gradients), torch.tensor([one.rate]))
            yield Predictor(subject, subject.encode(prompts.bos), slots=slots)
