"""The two learners that change no weight: ask as it is, or read the demonstrations first."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from iclgd.models.subject import Subject
from iclgd.models.traces import Predictor
from iclgd.prompts import Prompts


@dataclass(frozen=True)
class ZeroShot:
    """The model as it is, asked without demonstrations: what every update is measured from."""

    @contextmanager
    def learn(self, subject: Subject, prompts: Prompts) -> Iterator[Predictor]:
        yield Predictor(subject, subject.encode(prompts.bos))


@dataclass(frozen=True)
class InContext:
    """The model as it is, after reading the demonstrations, which are encoded once for all queries."""

    @contextmanager
    def learn(self, subject: Subject, prompts: Prompts) -> Iterator[Predictor]:
        yield Predictor(subject, subject.encode(prompts.context))
