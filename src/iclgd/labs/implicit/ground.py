"""An episode on a subject, as this lab asks about it: readings, patches and training, each computed once."""

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from iclgd.errors import Refusal
from iclgd.learners.descent import GradientDescent
from iclgd.learners.together import Job, Trained, train_together
from iclgd.models.added import Added, Own, written
from iclgd.models.capture import Prefix
from iclgd.models.mlps import is_transposed
from iclgd.models.patches import Reading, patches, read
from iclgd.models.static import Static, fit
from iclgd.models.subject import Subject
from iclgd.noise import normal
from iclgd.nulls.reading import filler
from iclgd.nulls.trained import OtherDemos
from iclgd.prompts import Ids, Prompts, build_prompts, first_tokens
from iclgd.spec import PromptSpec
from iclgd.tasks.episodes import Episode
from iclgd.tools import Progress

# which demonstrations are read or trained on: the episode's own, with other labels, others, or their tokens mixed
Demos = Literal["right", "wrong", "shuffled", "other demos", "other demos, wrong", "other task", "filler"]
Asked = Literal["calibration", "held", "others"]  # which queries: of the task (two sets), of another task
READ: tuple[Demos, ...] = ("right", "wrong", "filler")  # behind which each query's own patch is asked for
OWN = 16  # held-out queries whose own patches are computed


@dataclass(frozen=True)
class Tuned:
    """What finetuning the last maps did: their changes by layer, and the answers to queries of the task."""

    change: list[Float[Tensor, "out in"]]
    scores: dict[Asked, Float[Tensor, "query label"]]
    losses: tuple[float, ...]
    diverged: str | None


class Ground:
    """A subject, an episode with right labels and with others, other demonstrations, and another task's."""

    def __init__(
        self,
        subject: Subject,
        episode: Episode,
        other: Episode,
        prompt: PromptSpec,
        seed: int,
        calibration: int,
        progress: Progress,
    ):
        self.subject, self.episode, self.progress = subject, episode, progress
        drawn = other_demos(episode, seed)
        asked: dict[Demos, Episode] = {
            "right": episode,
            "wrong": episode.with_wrong_labels(seed),
            "shuffled": episode.with_shuffled_labels(seed),
            "other demos": drawn,
            "other demos, wrong": drawn.with_wrong_labels(seed),
            "other task": other,
        }
        self.prompts: dict[Demos, Prompts] = {
            name: build_prompts(subject.tokenizer, one, prompt, subject.room) for name, one in asked.items()
        }
        right = self.prompts["right"]
        self.prompts["filler"] = replace(right, demos=filler(right, seed))
        own, others = self.prompts["right"].queries, self.prompts["other task"].queries
        refuse_few(episode, calibration)
        self.queries: dict[str, tuple[Ids, ...]] = {
            "calibration": own[:calibration],
            "held": own[calibration:],
            "others": others,
        }
        self.answers = self.prompts["right"].answers[calibration:]
        self.words = first_tokens(self.prompts["right"].labels, episode.task.name)
        self._readings: dict[tuple[Demos | None, Asked], Reading] = {}
        self._prefixes: dict[Demos, Prefix | None] = {}
        self._static: dict[tuple[Demos, Static, int], list[Added]] = {}

    def whole(self, asked: Asked) -> list[Ids]:
        """Queries from bos on, as they are read without demonstrations."""
        return [self.prompts["right"].bos + query for query in self.queries[asked]]

    # reading

    def reading(self, demos: Demos | None, asked: Asked) -> Reading:
        """What the model does behind demonstrations, or without any."""
        if (demos, asked) not in self._readings:
            self.progress(f"reading, {demos or 'no'} demonstrations", len(self.queries[asked]))
            if demos is None:
                found = read(self.subject, self.whole(asked), None)
            else:
                found = read(self.subject, self.queries[asked], self.prefix(demos))
            self._readings[demos, asked] = found
        return self._readings[demos, asked]

    def prefix(self, demos: Demos) -> Prefix | None:
        if demos not in self._prefixes:
            self._prefixes[demos] = self.subject.encode(self.prompts[demos].context)
        return self._prefixes[demos]

    def scores(self, reading: Reading) -> Float[Tensor, "query label"]:
        """log p of each label word's first token."""
        precise = torch.promote_types(reading.logits.dtype, torch.float32)
        return reading.logits.to(precise).log_softmax(-1)[:, list(self.words)].cpu()

    # patches

    def own(self, demos: Demos) -> list[Own]:
        """The exact patches of the first held-out queries, form C."""
        self.progress(f"own patches, {demos} demonstrations", 0)
        target = self.reading(demos, "held").of(slice(OWN))
        return patches(self.subject, self.whole("held")[:OWN], target, "C")

    @cached_property
    def owned(self) -> dict[Demos, list[Own]]:
        return {demos: self.own(demos) for demos in READ}

    def static(self, demos: Demos, static: Static, count: int, layers: Container[int] | None = None) -> list[Added]:
        """One change for all queries, fitted on the first ones of the calibration."""
        if layers is None and (demos, static, count) in self._static:
            return self._static[demos, static, count]
        self.progress(f"{static.label} fitted on {count}, {demos} demonstrations", count)
        target = self.reading(demos, "calibration").of(slice(count))
        found = fit(self.subject, self.whole("calibration")[:count], target, static, layers)
        if layers is None:
            self._static[demos, static, count] = found
        return found

    def patched(self, added: Sequence[Added], asked: Asked = "held") -> Float[Tensor, "query label"]:
        """Label scores with a change in the weights and no demonstrations."""
        with written(self.subject, added):
            return self.scores(read(self.subject, self.whole(asked), None))

    # training

    def tuned(self, which: Sequence[Demos], rate: float, scored: Container[Demos] = ()) -> dict[Demos, Tuned]:
        """Gradient descent on the last maps alone, on each of these demonstrations, all at once.

        Only after those that are ``scored`` are queries asked.
        """
        self.progress(f"gd {rate:g} on the last maps, {len(which)} trainings", 0)
        learner = GradientDescent(rate=rate, trains="down")
        jobs = [Job(learner, self.prompts[demos], vectors=False) for demos in which]
        found = train_together(self.subject, jobs)
        return {demos: self._tuned(one, demos in scored) for demos, one in zip(which, found, strict=True)}

    @torch.no_grad()
    def _tuned(self, trained: Trained, scored: bool) -> Tuned:
        losses, diverged = trained.training.losses, trained.training.diverged
        if diverged:
            return Tuned([], {}, losses, diverged)
        lasts = [mlp.last for mlp in self.subject.layout.mlps()]
        moved = [slot.parameter - slot.before for slot in trained.slots if slot.before is not None]
        change = [one.T if is_transposed(m) else one for m, one in zip(lasts, moved, strict=True)]
        if not scored:
            return Tuned(change, {}, losses, None)
        asked: tuple[Asked, ...] = ("calibration", "held")
        with trained.installed():
            scores = {some: self.scores(read(self.subject, self.whole(some), None)) for some in asked}
        return Tuned(change, scores, losses, None)


def other_demos(episode: Episode, seed: int) -> Episode:
    """Other demonstrations of the same task: those of the null of that name in `compare`."""
    return OtherDemos().others(episode, seed)


def random_like(matrices: Sequence[Float[Tensor, "out in"]], seed: int) -> list[Float[Tensor, "out in"]]:
    """Matrices of random directions, as long as those given, block by block; the same on every device."""

    def turned(place: int, one: Tensor) -> Tensor:
        noise = normal(one.shape, (seed, place), one.device, torch.float32).to(one)
        return noise * (one.norm() / noise.norm())

    return [turned(place, one) for place, one in enumerate(matrices)]


def refuse_few(episode: Episode, calibration: int) -> None:
    """Queries have to be left once one patch for all was fitted: known as soon as the episode is drawn."""
    if len(episode.queries) < calibration + 2:
        raise Refusal(
            f"{episode.task.name} has {len(episode.queries)} queries, too few to calibrate on {calibration} and hold "
            "out two: lower `calibration`."
        )
