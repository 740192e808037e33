"""Training: one finetuning, or many at once, each with its own demonstrations, order, rate and targets.

Step s takes the s-th text of every replica in one pass. Losses, norms and checks stay on the device until the end, and
a replica that ends in numbers that are not finite disturbs no other: all they share is weights that do not change.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Float
from torch import Tensor

from iclgd.errors import out_of_memory
from iclgd.learners.course import Batch, Step, Trainable, on_device
from iclgd.learners.outcome import outcome
from iclgd.learners.vocabulary import Desk
from iclgd.models.budget import free_memory
from iclgd.models.layout import Part, Slot
from iclgd.models.replicas import InPlace, Stacked, norms, replicas_that_fit, stackable
from iclgd.models.subject import Subject
from iclgd.models.traces import Predictor, Training
from iclgd.models.unpadded import WORTH, packs, row_wise, unpadded
from iclgd.prompts import Ids, Prompts

Note = Callable[[str], None]
WAIT = 2  # trained weights wait on the host where the device has not so many times their size to spare


@dataclass(frozen=True)
class Job:
    """A learner and what it is to be trained on; ``vectors``: whether its query projections are kept."""

    learner: Trainable
    prompts: Prompts
    vectors: bool = True


@dataclass(frozen=True)
class Trained:
    """A learner after its training: how that went, and the weights, which wait until they are installed."""

    subject: Subject
    part: Part
    bos: Ids
    training: Training
    weights: list[Tensor] = field(repr=False)  # one for each slot of the part

    @contextmanager
    def installed(self) -> Iterator[Predictor]:
        """The subject with these weights; as it was on the way out, whatever happens."""
        with ExitStack() as stack:
            if stackable(self.subject, self.part):
                slots = self.slots
                stacked = Stacked(self.subject, self.part, [slot.parameter.detach()[None] for slot in slots])
                stack.enter_context(stacked.running())
            else:
                slots = stack.enter_context(self.subject.training(self.part))
                for slot, weight in zip(slots, self.weights, strict=True):
                    slot.parameter.data.copy_(weight)
            yield Predictor(self.subject, self.subject.encode(self.bos), self.training, slots=slots)

    @property
    def slots(self) -> list[Slot]:
        """The slots of the part: what their weights are after training, and what they were before."""
        return [
            replace(slot, parameter=weight.to(slot.parameter.device), before=slot.parameter.detach())
            for slot, weight in zip(self.subject.layout.slots(self.part), self.weights, strict=True)
        ]


def train_together(subject: Subject, jobs: Sequence[Job], note: Note = lambda _what: None) -> list[Trained]:
    """Train every job; those of one kin (type of learner, part that it trains) as many at once as memory holds."""
    kin: dict[tuple[type, Part], list[int]] = {}
    for i, job in enumerate(jobs):
        kin.setdefault((type(job.learner), job.learner.trains), []).append(i)
    found: dict[int, Trained] = {}
    for members in kin.values():
        courses = {i: jobs[i].learner.course(jobs[i].prompts) for i in members}
        todo = sorted(members, key=lambda i: -len(courses[i]))  # whoever is done first comes last, and is dropped
        size = _how_many(subject, jobs[members[0]].learner.trains, [step for i in members for step in courses[i]])
        while todo:
            some = todo[:size]
            try:
                made = _train(subject, [jobs[i] for i in some], [courses[i] for i in some], note)
            except RuntimeError as error:
                if not out_of_memory(error) or len(some) == 1:
                    raise
                size = len(some) // 2
                note(f"out of memory: {size} finetunings at once from here on")
                continue
            found |= dict(zip(some, made, strict=True))
            todo = todo[size:]
    return [found[i] for i in range(len(jobs))]


def trained_bytes(subject: Subject, part: Part) -> int:
    """What the weights of one finetuning take."""
    return sum(slot.parameter.nbytes for slot in subject.layout.slots(part))


def _how_many(subject: Subject, part: Part, steps: Sequence[Step]) -> int:
    if not steps or not stackable(subject, part):
        return 1
    longest, rows = max(len(step.ids) for step in steps), max(len(step.targets) for step in steps)
    return replicas_that_fit(subject, part, longest, rows)


def _batches(subject: Subject, steps: Sequence[Sequence[Step]]) -> list[Batch]:
    """A batch for each step; without padding, where there would be much of it and the model allows that."""
    lengths = [[len(step.ids) for step in some] for some in steps]
    sparse = [sum(some) < WORTH * len(some) * max(some) and _mask_fits(subject, some) for some in lengths]
    pack = any(sparse) and packs(subject)
    return on_device([Batch.of(some, pack and s) for some, s in zip(steps, sparse, strict=True)], subject.device)


def _mask_fits(subject: Subject, lengths: Sequence[int]) -> bool:
    """Whether a mask over all texts in a row is smaller than the scores that a backward pass keeps of all layers.

    It grows with the square of the number of texts: of thousands of a small model it would be more than all the rest.
    """
    scores = subject.layout.heads * subject.layout.layers * len(lengths) * max(lengths) ** 2
    return sum(lengths) ** 2 <= scores


def _train(subject: Subject, jobs: Sequence[Job], courses: Sequence[list[Step]], note: Note) -> list[Trained]:
    """Jobs of one kin at once, those with more steps first."""
    many = f"training {len(jobs)} at once" if len(jobs) > 1 else "training"
    learner = jobs[0].learner
    part, guess = learner.trains, learner.predictions(subject) * math.log(subject.layout.config.vocab_size)
    if courses[0]:
        learner.check(subject, courses[0][0])
    steps = [[course[s] for course in courses if s < len(course)] for s in range(len(courses[0]))]
    batches = _batches(subject, steps)
    with ExitStack() as stack:
        if stackable(subject, part):
            stacked = Stacked.copies(subject, part, len(jobs))
            stack.enter_context(stacked.running())
            weights: Stacked | InPlace = stacked
        else:
            weights = InPlace(stack.enter_context(subject.training(part)))
        loop = _Loop(subject, jobs, weights)
        for i, (some, batch) in enumerate(zip(steps, batches, strict=True), 1):
            note(f"{many}, step {i} of {len(steps)}")
            loop.step(some, batch)
        met, moves, kept = loop.met(), weights.moves().cpu().tolist(), weights.kept()
    if subject.device.type != "cpu" and WAIT * sum(weight.nbytes for weight in kept) > (
        free_memory(subject.device) or 0
    ):
        kept = [weight.cpu() for weight in kept]
    return [
        Trained(
            subject,
            part,
            job.prompts.bos,
            outcome(course, met[: len(course), r], loop.vectors[r], moves[r], guess),
            [weight[r] for weight in kept],
        )
        for r, (job, course) in enumerate(zip(jobs, courses, strict=True))
    ]


class _Loop:
    """The steps of a training and what they meet, which stays on the device."""

    def __init__(self, subject: Subject, jobs: Sequence[Job], weights: Stacked | InPlace):
        self.subject, self.jobs, self.weights, self.learner = subject, jobs, weights, jobs[0].learner
        self.vectors: list[dict[int, Tensor]] = [{} for _ in jobs]
        self._desk = Desk()
        self._rates = self._numbers([job.learner.rate for job in jobs])
        self._clips = self._numbers([job.learner.clip or math.inf for job in jobs])
        self._met: list[Float[Tensor, "replica _"]] = []
        self._row_wise = row_wise(subject.layout, subject.layout.slots(self.learner.trains))
        layers, places = _places([slot.layer for slot in weights.slots], subject.layout.layers)
        self._table = (layers.to(subject.device), places.to(subject.device))
        self._columns = int(places.max()) + 1
        self._kept: dict[tuple[int, ...], Tensor] = {}  # replicas by number, on the device

    def _numbers(self, values: Sequence[float]) -> Float[Tensor, " replica"]:
        return torch.tensor(values, dtype=torch.float64).to(self.subject.device)

    def step(self, steps: Sequence[Step], batch: Batch) -> None:
        """w ← w − rate·g for the first replicas, as many as there are steps; g scaled to ``clip`` where longer."""
        count, seen = len(steps), dict[int, Tensor]()
        self.weights.take(count, batch.packed)
        kept = tuple(r for r, step in enumerate(steps) if step.first and self.jobs[r].vectors)
        with ExitStack() as stack:
            if kept:
                keep = self.subject.watched_queries(lambda i, y: seen.update({i: self._some(batch.padded(y), kept)}))
                stack.enter_context(keep)
            stack.enter_context(unpadded(self._row_wise, batch.text, (len(batch.ids), batch.ids.shape[1])))
            losses, found = self.learner.gradients(self.subject, batch, self.weights.leaves, self._desk)
        gradients = self.weights.restricted(found)
        squares = self._by_layer([length.square() for length in norms(gradients)])
        total = squares.sum(1).sqrt()
        scale = torch.where(total > self._clips[:count], self._clips[:count] / total, 1.0)
        self.weights.descend(gradients, self._rates[:count] * scale)
        finite = (total * self._rates[:count]).isfinite()  # a weight that overflows shows in the next loss
        met = torch.cat([losses.to(total)[:, None], finite.to(total)[:, None], squares[:, :-1].sqrt()], 1)
        self._met.append(torch.nn.functional.pad(met, (0, 0, 0, len(self.jobs) - count)))
        self._keep(seen, kept, steps)

    def _by_layer(self, squares: list[Float[Tensor, " replica"]]) -> Float[Tensor, "replica layer_and_outside"]:
        """Sums over the slots of each layer; the last one is outside the blocks (layer −1)."""
        stacked = torch.stack([square.to(self.subject.device) for square in squares])
        table = stacked.new_zeros(self.subject.layout.layers + 1, self._columns, stacked.shape[1])
        return table.index_put(self._table, stacked).sum(1).T

    def _some(self, states: Float[Tensor, "replica token dim"], kept: tuple[int, ...]) -> Tensor:
        if kept not in self._kept:
            self._kept[kept] = torch.tensor(kept).to(states.device)
        return states.detach().index_select(0, self._kept[kept].to(states.device))

    def _keep(self, seen: dict[int, Tensor], kept: Sequence[int], steps: Sequence[Step]) -> None:
        """Each demonstration's query projections as it was learned, without what stands before it."""
        whole = torch.stack([seen[i].to(self.subject.device) for i in sorted(seen)]) if seen else torch.empty(0)
        for i, r in enumerate(kept):
            own = slice(len(self.jobs[r].prompts.bos), len(steps[r].ids))
            self.vectors[r][steps[r].demo] = whole[:, i, own]

    def met(self) -> Float[Tensor, "step replica _"]:
        """Loss, whether weights were finite, norms by layer: one copy to the host for all of them."""
        width = 2 + self.subject.layout.layers
        return torch.stack(self._met).cpu() if self._met else torch.empty(0, len(self.jobs), width)


def _places(layers: Sequence[int], count: int) -> tuple[Tensor, Tensor]:
    """Row and column for each slot in a table of layers, the row after the last one for what is outside them."""
    rows = [layer % (count + 1) for layer in layers]
    return torch.tensor(rows), torch.tensor([rows[:i].count(row) for i, row in enumerate(rows)])
