"""What a training is made of: steps, each with a text, and one step of many replicas as a batch."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol

import torch
from jaxtyping import Float, Int
from torch import Tensor

from iclgd.learners.vocabulary import Desk
from iclgd.models.layout import Part
from iclgd.models.packed import Packed
from iclgd.models.subject import Subject
from iclgd.prompts import Ids, Prompts

Gradients = list[Tensor]


@dataclass(frozen=True)
class Step:
    """One step of a training: a text, and which of its tokens are to be predicted, each from those before it."""

    ids: Ids
    targets: range
    demo: int
    first: bool = True  # of the steps on this demonstration, in this pass over all of them


@dataclass(frozen=True)
class Batch:
    """The texts of one step, one of each replica; and the rows that predict a target."""

    ids: Int[Tensor, "sequence token"]  # a text each, padded on the right; or one sequence, packed
    rows: Int[Tensor, " row"]  # in the flattened batch
    wanted: Int[Tensor, " row"]  # the token that follows
    replica: Int[Tensor, " row"]
    place: Int[Tensor, " row"]  # among the replica's targets
    counts: Int[Tensor, " replica"]  # targets of each replica
    text: Int[Tensor, " text"]  # in the flattened batch, all that is no padding
    packed: Packed | None = None

    @classmethod
    def of(cls, steps: Sequence[Step], pack: bool = False) -> "Batch":
        """Padding on the right needs no mask: attention is causal, and no row is asked about padding."""
        lengths = tuple(len(step.ids) for step in steps)
        width = max(lengths)
        packed = Packed(lengths) if pack else None
        starts = [r * width for r in range(len(steps))] if packed is None else packed.starts
        asked = [
            (start + target - 1, step.ids[target], r, place)
            for r, (start, step) in enumerate(zip(starts, steps, strict=True))
            for place, target in enumerate(step.targets)
        ]
        if packed is None:
            ids = torch.tensor([step.ids + (0,) * (width - len(step.ids)) for step in steps])
        else:
            ids = torch.tensor([[token for step in steps for token in step.ids]])
        counts = torch.tensor([len(step.targets) for step in steps])
        rows, wanted, replica, place = torch.tensor(asked, dtype=torch.long).view(-1, 4).T
        text = torch.cat([start + torch.arange(length) for start, length in zip(starts, lengths, strict=True)])
        return cls(ids, rows, wanted, replica, place, counts, text, packed)

    @property
    def extra(self) -> dict[str, Any]:
        """What a model is to be told beside the ids."""
        return {} if self.packed is None else {"position_ids": self.packed.positions, "packed": self.packed}

    @property
    def width(self) -> int:
        return self.ids.shape[1] if self.packed is None else self.packed.width

    @property
    def shares(self) -> Float[Tensor, " row"]:
        """Of each prediction in the mean over its replica's targets."""
        return self.counts.double().reciprocal()[self.replica]

    def padded(self, states: Float[Tensor, "sequence token dim"]) -> Float[Tensor, "replica width dim"]:
        return states if self.packed is None else self.packed.padded(states)

    def pick(self, states: Float[Tensor, "sequence token dim"]) -> Float[Tensor, "row dim"]:
        """What stands at the rows that predict."""
        return states.flatten(0, 1).index_select(0, self.rows.to(states.device))

    def means(self, losses: Float[Tensor, " row"]) -> Float[Tensor, " replica"]:
        """The mean over each replica's targets; each has a place of its own, so that the order of the sum is one."""
        table = losses.new_zeros(len(self.counts), self.width)
        table = table.index_put((self.replica.to(losses.device), self.place.to(losses.device)), losses)
        return table.sum(1) / self.counts.to(losses)


def on_device(batches: Sequence[Batch], device: torch.device) -> list[Batch]:
    """The batches on a device, brought there in one copy: each copy would wait for all work before it."""
    names = [part.name for part in fields(Batch) if part.name != "packed"]
    parts = [getattr(batch, name) for batch in batches for name in names]
    if not parts:
        return []
    there = torch.cat([part.reshape(-1) for part in parts]).to(device).split([part.numel() for part in parts])
    views = iter([flat.view(part.shape) for flat, part in zip(there, parts, strict=True)])
    return [replace(batch, **{name: next(views) for name in names}) for batch in batches]


class Trainable(Protocol):
    """A learner that can be trained beside others of its type that train the same part.

    The methods are the same for all of them but for the options, which come in through the course, the rate and the
    longest gradient (``clip``).
    """

    @property
    def rate(self) -> float: ...
    @property
    def trains(self) -> Part: ...
    @property
    def clip(self) -> float | None: ...

    def course(self, prompts: Prompts) -> list[Step]:
        """The steps of the training, in order."""
        ...

    def check(self, subject: Subject, step: Step) -> None:
        """Refuse a subject that cannot be trained so."""
        ...

    def predictions(self, subject: Subject) -> int:
        """How many predictions of each token a loss adds up."""
        ...

    def gradients(
        self, subject: Subject, batch: Batch, leaves: Sequence[Tensor], desk: Desk
    ) -> tuple[Float[Tensor, " replica"], Gradients]:
        """Each replica's loss, and the gradient of their sum with respect to the leaves.

        The gradients are good until the next call: what they stand in is used again.
        """
        ...
