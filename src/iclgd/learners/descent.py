"""Gradient descent on the demonstrations: the learner that in-context learning is compared with."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor
from torch.nn.functional import cross_entropy

from iclgd.models.layout import Part, Slot
from iclgd.models.subject import Subject
from iclgd.models.traces import Predictor, Training
from iclgd.prompts import Demo, Ids, Prompts
from iclgd.spec import Seed

Gradients = list[Tensor]
LONGEST_UPDATE = 1.0  # × the norm of the weights it changes
LARGEST_LOSS = 2.0  # × the larger of the first loss and that of guessing every token evenly


@dataclass(frozen=True)
class Lesson:
    """One demonstration as training text: bos and its tokens, and which of them are targets."""

    ids: Int[Tensor, "1 token"]
    targets: range


@dataclass(frozen=True)
class GradientDescent:
    """Plain SGD on the demonstrations, one at a time and in order (Dai 2022, §4.1: K and V projections only).

    The loss is the causal language model's, mean per token, over all tokens of the demonstration, or over its label
    word alone. ``order`` trains in another order, by seed; ``dropped_too`` trains also on demonstrations that did not
    fit the context: the two departures in the papers' code, where finetuning and prompting saw different things.

    Steps are taken in float32 or better, whatever the model's format (see `Slot`).
    """

    rate: Annotated[float, Field(ge=0)] = 1e-3
    trains: Part = "kv"
    epochs: Annotated[int, Field(ge=1)] = 1
    clip: Annotated[float, Field(gt=0)] | None = None
    target: Literal["all", "label"] = "all"
    order: Seed | None = None
    dropped_too: bool = False
    version: ClassVar[int] = 1  # rises when the same options would give other weights

    @contextmanager
    def learn(self, subject: Subject, prompts: Prompts) -> Iterator[Predictor]:
        with subject.training(self.trains) as slots:
            training = self.train(subject, prompts, slots)
            yield Predictor(subject, subject.encode(prompts.bos), training, slots=slots)

    def train(self, subject: Subject, prompts: Prompts, slots: Sequence[Slot]) -> Training:
        """Change the slots in place, step by step."""
        demos = prompts.demos + (prompts.dropped if self.dropped_too else ())
        order = range(len(demos)) if self.order is None else np.random.RandomState(self.order).permutation(len(demos))
        losses: list[float] = []
        norms = torch.zeros(subject.layout.layers, len(demos), dtype=torch.float64)
        vectors: dict[int, Tensor] = {}
        for _ in range(self.epochs):
            for index in map(int, order):
                lesson = self.lesson(subject, prompts.bos, demos[index])
                seen: dict[int, Tensor] = {}  # of the first pass, before this demonstration has changed anything
                with subject.watched_queries(lambda layer, y, seen=seen: seen.setdefault(layer, y.detach()[0].cpu())):  # type: ignore[misc]
                    steps = list(self.steps(subject, lesson, slots))
                losses += [loss for loss, _ in steps]
                norms[:, index] = torch.stack([norm for _, norm in steps]).mean(0)
                vectors[index] = torch.stack([seen[layer] for layer in sorted(seen)])[:, len(prompts.bos) :]
                if why := _not_finite(losses, slots):
                    return Training(tuple(losses), norms, (), moved_share(slots), why)
        guess = self.predictions(subject) * math.log(subject.layout.config.vocab_size)
        found = tuple(vectors[i] for i in range(len(demos)))
        return Training(tuple(losses), norms, found, moved_share(slots), _diverged(losses, guess, slots))

    def predictions(self, subject: Subject) -> int:
        """How many predictions of each token a loss adds up."""
        return 1

    def lesson(self, subject: Subject, bos: Ids, demo: Demo) -> Lesson:
        """A demonstration by itself, from bos, without the separator."""
        ids = bos + demo.ids
        first = len(ids) - len(demo.label) if self.target == "label" else 1
        return Lesson(subject.tensor([ids]), range(first, len(ids)))

    def steps(
        self, subject: Subject, lesson: Lesson, slots: Sequence[Slot]
    ) -> Iterator[tuple[float, Float[Tensor, " layer"]]]:
        """The steps taken on one demonstration, here one: its loss and gradient norms."""
        loss, gradients = self.gradients(subject, lesson, slots)
        yield loss, step(slots, gradients, self.rate, self.clip, subject.layout.layers)

    def gradients(self, subject: Subject, lesson: Lesson, slots: Sequence[Slot]) -> tuple[float, Gradients]:
        """∇ of the mean cross-entropy of the model's own prediction of the next token."""
        loss = lesson_loss(subject.model(lesson.ids, use_cache=False).logits[0], lesson)
        return float(loss.detach()), list(torch.autograd.grad(loss, [slot.parameter for slot in slots]))


def lesson_loss(logits: Float[Tensor, "token vocabulary"], lesson: Lesson) -> Float[Tensor, ""]:
    """Mean cross-entropy of the targets, each predicted from the tokens before it."""
    first, stop = lesson.targets.start, lesson.targets.stop
    wanted = lesson.ids[0, first:stop].to(logits.device)
    return cross_entropy(logits[first - 1 : stop - 1].to(torch.promote_types(logits.dtype, torch.float32)), wanted)


@torch.no_grad()
def step(
    slots: Sequence[Slot], gradients: Gradients, rate: float, clip: float | None, layers: int
) -> Float[Tensor, " layer"]:
    """w ← w − rate·g on each slot, g scaled down to global norm ``clip`` where it is longer; the norms by layer.

    The norms are brought to the CPU in one go: on a GPU, asking for one number at a time is what takes the time.
    """
    gradients = [slot.restrict(gradient) for slot, gradient in zip(slots, gradients, strict=True)]
    lengths = torch.stack(
        [torch.linalg.vector_norm(gradient.double()).to(gradients[0].device) for gradient in gradients]
    )
    squares = torch.zeros(layers + 1, dtype=torch.float64)  # the last one: outside the blocks (layer −1)
    squares.index_add_(0, torch.tensor([slot.layer % (layers + 1) for slot in slots]), lengths.cpu().square())
    total = float(squares.sum().sqrt())
    scale = min(1.0, clip / total) if clip and total > 0 else 1.0
    for slot, gradient in zip(slots, gradients, strict=True):
        slot.descend(gradient, rate * scale)
    return squares[:layers].sqrt()


def moved_share(slots: Sequence[Slot]) -> float:
    """The share of the trained weights that are not what they were."""
    changed, entries, _, _ = _moves(slots)
    return changed / entries


def _not_finite(losses: Sequence[float], slots: Sequence[Slot]) -> str | None:
    """Why training cannot go on: a loss or a weight is no number. All weights are asked about at once."""
    if not all(map(math.isfinite, losses)):
        return "the loss is not a finite number"
    checks = [torch.isfinite(slot.parameter).all() for slot in slots]
    if not bool(torch.stack([check.to(checks[0].device) for check in checks]).all()):
        return "a trained weight is not a finite number"
    return None


def _diverged(losses: Sequence[float], guess: float, slots: Sequence[Slot]) -> str | None:
    """Why a training that ended in finite numbers is none all the same.

    A norm in the model can hide any size of weight, so finite answers prove nothing: at a rate of 1e38 they were all
    right by chance. Either the update is longer than the weights it changed, so that hardly anything of the model is
    left; or the loss, in the mean over all steps after the first, is far above both where it began and ``guess``, the
    loss of a model that knows nothing.
    """
    _, _, update, weights = _moves(slots)
    if not update <= LONGEST_UPDATE**2 * weights:
        return f"the update is {math.sqrt(update / weights) if weights else math.inf:.2g} times as long as the weights"
    bound = LARGEST_LOSS * max(losses[0], guess) if losses else math.inf
    if len(losses) > 1 and (mean := sum(losses[1:]) / (len(losses) - 1)) > bound:
        return f"the loss rose from {losses[0]:.3g} to {mean:.3g}, and guessing evenly has {guess:.3g}"
    return None


def _moves(slots: Sequence[Slot]) -> list[float]:
    return torch.stack([slot.moves().cpu() for slot in slots]).sum(0).tolist()
