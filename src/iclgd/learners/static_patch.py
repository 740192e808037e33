"""The static patch as a learner: one change of weights that stands in for the demonstrations, for all queries."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from iclgd.learners.left_out import read_left_out
from iclgd.models.added import written
from iclgd.models.static import RIDGE, Static, fit
from iclgd.models.subject import Subject
from iclgd.models.traces import Predictor
from iclgd.prompts import Prompts


@dataclass(frozen=True)
class StaticPatch:
    """Every block's last map changed so that each demonstration, without the others, is read as behind them.

    Fitted on the demonstrations themselves, each asked behind the others (see models/static.py): no other text is
    used, and no label but those that the others have.
    """

    kind: Literal["vector", "matrix"] = "matrix"
    rank: Annotated[int, Field(ge=1)] | None = None
    ridge: Annotated[float, Field(ge=0)] = RIDGE
    version: ClassVar[int] = 2  # what a norm behind the MLP is given

    @contextmanager
    def learn(self, subject: Subject, prompts: Prompts) -> Iterator[Predictor]:
        queries, target = read_left_out(subject, prompts)
        added = fit(subject, queries, target, Static(self.kind, self.rank, self.ridge))
        with written(subject, added):
            yield Predictor(subject, subject.encode(prompts.bos))
