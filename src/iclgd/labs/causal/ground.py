"""An episode on a subject, ready for its last tokens to be run again: three runs, and what goes from one to another."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from iclgd.learners.descent import GradientDescent
from iclgd.learners.prompted import InContext, ZeroShot
from iclgd.models.last_token import Activity, Edits, LastToken
from iclgd.models.subject import Subject
from iclgd.models.traces import Predictor, Training, log_probabilities
from iclgd.noise import normal
from iclgd.prompts import Prompts, build_prompts, first_tokens
from iclgd.spec import PromptSpec
from iclgd.tasks.episodes import Episode
from iclgd.tools import Progress

Run = Literal["zero-shot", "icl", "gd"]
RUNS: tuple[Run, ...] = ("zero-shot", "icl", "gd")
Where = Literal["attention", "blocks"]
WHERE: tuple[Where, ...] = ("attention", "blocks")
# from which run into which: reading's layers into both others, training's into both others, none's into reading
SWAPS: tuple[tuple[Run, Run], ...] = (
    ("icl", "zero-shot"),
    ("gd", "zero-shot"),
    ("icl", "gd"),
    ("gd", "icl"),
    ("zero-shot", "icl"),
)


@dataclass(frozen=True)
class Seen:
    """What one run did at the last token of every query."""

    heads: Float[Tensor, "query layer width"]
    attention: Float[Tensor, "query layer dim"]
    blocks: Float[Tensor, "query layer dim"]
    scores: Float[Tensor, "query label"]  # log p of the label words' first tokens


class Ground:
    """A subject and an episode."""

    def __init__(self, subject: Subject, episode: Episode, prompt: PromptSpec, seed: int, progress: Progress):
        self.subject, self.episode, self.seed, self.progress = subject, episode, seed, progress
        self.prompts: Prompts = build_prompts(subject.tokenizer, episode, prompt, subject.room)
        self.words = first_tokens(self.prompts.labels, episode.task.name)
        self._read: dict[Run, tuple[list[LastToken], Seen]] = {}

    def of_words(self, logits: Float[Tensor, "run token"]) -> Float[Tensor, "run label"]:
        return log_probabilities(logits, self.words).cpu()

    def read(self, run: Run) -> tuple[list[LastToken], Seen]:
        """A run on the subject's own weights, computed once."""
        if run not in self._read:
            learner = InContext() if run == "icl" else ZeroShot()
            with learner.learn(self.subject, self.prompts) as predictor:
                self._read[run] = self.ready(run, predictor)
        return self._read[run]

    def ready(self, what: str, predictor: Predictor) -> tuple[list[LastToken], Seen]:
        """Every query up to its last token, and that token's own run."""
        self.progress(what, 0)
        lasts, seen = [], []
        for query in self.prompts.queries:
            lasts.append(LastToken(self.subject, predictor.prefix, query))
            seen.append(lasts[-1].plain())
            self.progress(what, 1)
        return lasts, self._seen(seen)

    def _seen(self, found: Sequence[Activity]) -> Seen:
        names = ("heads", "attention", "blocks", "logits")
        heads, attention, blocks, logits = (torch.cat([getattr(one, name) for one in found]) for name in names)
        return Seen(heads, attention, blocks, self.of_words(logits))

    @contextmanager
    def trained(self, rate: float) -> Iterator[tuple[Training, list[LastToken], Seen | None]]:
        """The run of a model whose key and value projections were finetuned, while it has those weights.

        With these weights alone changed, everything that differs between two runs reaches the last token through its
        attention outputs: exchanging all of them exchanges the runs.
        """
        self.progress(f"gd {rate:g}", 0)
        with GradientDescent(rate=rate).learn(self.subject, self.prompts) as predictor:
            assert predictor.training is not None
            if predictor.training.diverged:
                yield predictor.training, [], None
            else:
                yield predictor.training, *self.ready(f"gd {rate:g}", predictor)

    def swapped(
        self, what: str, lasts: Sequence[LastToken], values: Sequence[Float[Tensor, "query layer dim"]], site: Where
    ) -> Float[Tensor, "source layer_and_all query label"]:
        """Label scores with another run's values in one layer, for each layer; the last with those in all of them.

        A query's swaps are one batch, whatever layer they are of and wherever their values come from.
        """
        self.progress(what, 0)
        layers = self.subject.layout.layers
        each_and_all = torch.cat([torch.eye(layers), torch.ones(1, layers)]).bool()[..., None]
        where = each_and_all.repeat(len(values), 1, 1)
        found = []
        for last, value in zip(lasts, torch.stack(list(values), 1), strict=True):
            edits = Edits(site, where, value.repeat_interleave(layers + 1, 0))
            found.append(self.of_words(last.edited(edits)).unflatten(0, (len(values), layers + 1)))
            self.progress(what, 1)
        return torch.stack(found, 2)


# nulls


def other_query(into: Float[Tensor, "query layer dim"], source: Float[Tensor, "query layer dim"]) -> Tensor:
    """The update of another query, the next one, on top of this one's own values."""
    return into + (source - into).roll(1, 0)


def random_update(
    into: Float[Tensor, "query layer dim"], source: Float[Tensor, "query layer dim"], seed: int, heads: int = 1
) -> Tensor:
    """An update as long, in a random direction, layer by layer; or head by head, where a layer's are side by side."""
    noise = normal(into.shape, seed, into.device).to(into).unflatten(-1, (heads, -1))
    length = (source - into).unflatten(-1, (heads, -1)).norm(dim=-1, keepdim=True)
    return into + (noise * (length / noise.norm(dim=-1, keepdim=True))).flatten(-2)
