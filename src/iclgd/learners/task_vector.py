"""Task vectors: one hidden state that stands in for the demonstrations (Hendel 2023)."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import Field

from iclgd.errors import Refusal
from iclgd.learners.left_out import read_left_out
from iclgd.models.edits import EditedSubject, replaced
from iclgd.models.subject import Subject
from iclgd.models.traces import Predictor
from iclgd.prompts import Prompts


@dataclass(frozen=True)
class TaskVector:
    """The state θ after one block at the last token behind the demonstrations, put in that place without them.

    Hendel 2023: f(x; θ) is the model whose state after block L at the prompt's last token is θ(S), taken from the
    demonstrations S with a dummy query. Their dummy is one further example; here θ is the mean over the demonstrations,
    each asked behind the others. They choose L by accuracy on other queries; here it is the middle unless it is given.
    """

    layer: Annotated[int, Field(ge=0)] | None = None
    version: ClassVar[int] = 1

    @contextmanager
    def learn(self, subject: Subject, prompts: Prompts) -> Iterator[Predictor]:
        layer = subject.layout.layers // 2 if self.layer is None else self.layer
        if layer >= subject.layout.layers:
            raise Refusal(f"the task vector's `layer` is {layer}, and the model's last is {subject.layout.layers - 1}.")
        state = read_left_out(subject, prompts)[1].blocks[:, layer].mean(0)
        yield Predictor(EditedSubject(subject, replaced(layer, state)), subject.encode(prompts.bos))
