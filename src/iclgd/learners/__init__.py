"""Learners: what turns demonstrations into a changed predictor.

A learner has one method, ``learn(subject, prompts)``: a context manager that yields a predictor and leaves the
subject's weights as they were.
"""

from contextlib import AbstractContextManager
from typing import Protocol

from iclgd.models.subject import Subject
from iclgd.models.traces import Predictor
from iclgd.prompts import Prompts
from iclgd.spec import LearnerSpec


class Learner(Protocol):
    def learn(self, subject: Subject, prompts: Prompts) -> AbstractContextManager[Predictor]: ...


def make_learner(spec: LearnerSpec) -> Learner:
    """The finetuned learner a spec describes."""
    from iclgd.learners.descent import GradientDescent
    from iclgd.learners.layercausal import LayerCausal, LayerCausalPaper

    kinds = {"gd": GradientDescent, "lcgd": LayerCausal, "lcgd-paper": LayerCausalPaper}
    return kinds[spec.kind](**spec.model_dump(exclude={"kind"}))
