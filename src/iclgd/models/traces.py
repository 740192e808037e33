"""Traces: what a predictor did on each query, at the named positions."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from iclgd.errors import Refusal
from iclgd.models.budget import BATCH_COST, attempt, batch_tokens, batches
from iclgd.models.capture import Modification, Prefix
from iclgd.models.copies import sent
from iclgd.models.layout import Slot
from iclgd.models.own import OwnLogits
from iclgd.models.subject import Subject
from iclgd.prompts import Ids, Prompts

Progress = Callable[[int], None]  # told how many queries were just finished
RANKED = 100  # queries whose attention to training tokens is ranked: as many as Dai 2022's code takes


@dataclass(frozen=True)
class Trace:
    """What one predictor did on the queries of an episode, on the device that made it.

    The position axis is `prompt`, `label` (see prompts.py). Keys are the query's own tokens followed by the class-0
    label word; ``keys`` says which of them exist at a position, and ``own`` is 0 where they do not. What only the
    ranking of training tokens needs is kept of the first queries alone (``ranked``; `RANKED` of them unless the trace
    was asked for more).
    """

    scores: Float[Tensor, "query label"]  # log p(label word | prompt), mean over its tokens
    outputs: Float[Tensor, "query layer position dim"]
    own: OwnLogits
    keys: Bool[Tensor, "query position key"]
    context: Float[Tensor, "ranked layer position context"]  # logits over the context's tokens, summed over heads
    vectors: Float[Tensor, "ranked layer position qdim"]  # query projections, before any rotation by position
    blocks: Float[Tensor, "query layer position dim"]  # the residual stream after each block
    blanks: Float[Tensor, "blank label"]  # scores of queries without content
    answers: tuple[int, ...]
    lowered: int | None = None  # tokens of a batch, where memory did not hold what was asked for

    @cached_property
    def scores_here(self) -> Float[np.ndarray, "query label"]:
        """The scores on the host, in float64."""
        return self.scores.double().cpu().numpy()

    @property
    def right(self) -> Bool[Tensor, " query"]:
        return self.scores.argmax(-1) == sent(self.answers, self.scores.device)

    @property
    def logits(self) -> Float[Tensor, "query layer position head key"]:
        """Attention logits over the query's own tokens, padded to the longest of all queries."""
        return torch.stack([self.own.padded(position) for position in range(self.own.entries.shape[1])], 2)

    @property
    def accuracy(self) -> float:
        return float(self.right.double().mean())

    def first(self, count: int) -> "Trace":
        """The trace of the first queries."""
        names, own = ("scores", "outputs", "context", "vectors", "blocks", "answers"), self.own.first(count)
        parts = {name: getattr(self, name)[:count] for name in names}
        return replace(self, own=own, keys=self.keys[:count, :, : own.width], **parts)


class NotFinite(Refusal):
    """A predictor answered with NaN or infinite numbers: there is nothing to measure."""


@dataclass(frozen=True)
class Training:
    """What happened while a finetuned learner trained."""

    losses: tuple[float, ...]  # one for each step
    gradient_norms: Float[Tensor, "layer demo"]  # before clipping, of the trained parameters; mean over a demo's steps
    vectors: tuple[Float[Tensor, "layer _ qdim"], ...]  # each demonstration's query projections as it was learned
    moved: float  # share of the trained weights that are not what they were
    diverged: str | None  # why there is nothing to measure, where there is not


@dataclass(frozen=True)
class Predictor:
    """A subject, as it is now, behind a context that every query shares, its attention modified or not."""

    subject: Subject
    prefix: Prefix | None
    training: "Training | None" = None
    modification: Modification | None = None
    slots: Sequence[Slot] = ()  # what was trained, with what it was before

    def trace(
        self, prompts: Prompts, tokens: int | None = None, progress: Progress | None = None, ranked: int = RANKED
    ) -> Trace:
        """The trace of every query; ``tokens`` bounds a batch, padding and label word included.

        None takes as many as free memory holds. A batch that does not fit is halved. Queries without content run in
        the same batches. What ranks training tokens is kept of the first ``ranked`` queries.
        """
        subject, asked = self.subject, prompts.queries + prompts.blanks
        longest = max(map(len, prompts.labels))
        if tokens is None:
            context = self.prefix.length if self.prefix else 0
            tokens = batch_tokens(subject.layout, subject.dtype, subject.device, context, prompts.longest)
        kept, lowered = Kept(self, prompts, ranked), None
        cost = BATCH_COST.get(subject.device.type, 0)
        waiting = batches([len(query) + longest for query in asked], tokens, cost)[::-1]
        while waiting:
            batch = waiting.pop()
            if attempt(kept.add, batch, tokens):
                if progress is not None:
                    progress(sum(index < len(prompts.queries) for index in batch))
            elif len(batch) == 1:
                raise Refusal(
                    f"a single query does not fit the memory of {subject.device} behind its context: "
                    "use fewer demonstrations, a smaller model or a lower precision."
                )
            else:
                tried = len(batch) * max(len(asked[index]) + longest for index in batch)
                tokens = lowered = max(1, min(tokens, tried) // 2)
                rest = [index for part in [batch, *waiting[::-1]] for index in part]
                lengths = [len(asked[index]) + longest for index in rest]
                waiting = [[rest[i] for i in part] for part in batches(lengths, tokens, cost)][::-1]
        return kept.trace(lowered)

    def scores(self, queries: Sequence[Ids], labels: Sequence[Ids], tokens: int = 1024) -> Float[Tensor, "query label"]:
        """Mean log-probability of label words of any length, each read behind its query, in batches of their own.

        A label's last token predicts nothing that is asked for, so labels of one token share the query alone.
        """
        starts = sorted({label[:-1] for label in labels})
        read = [(query, start) for start in starts for query in queries]
        words = sorted({word for label in labels for word in label})
        parts, order, longest = [], [], max(map(len, labels))
        cost = BATCH_COST.get(self.subject.device.type, 0)
        for batch in batches([len(query) + len(start) for query, start in read], tokens, cost):
            ids = self.subject.tensor([read[i][0] + read[i][1] for i in batch])
            # the token at row r predicts the one after it: len(label) rows from the prompt's last token on
            ends = sent([[len(read[i][0]) - 1, len(sum(read[i], ())) - 1] for i in batch], ids.device)
            rows = (ends[:, :1] + torch.arange(longest, device=ids.device)).minimum(ends[:, 1:])
            none = torch.empty(0, dtype=torch.long, device=ids.device)
            found = self.subject.run(ids, rows, self.prefix, self.modification, ranked=none).vocabulary
            parts.append(log_probabilities(found, words))  # batch longest word
            order += batch
        logs = torch.cat(parts)[torch.tensor(order).argsort()].unflatten(0, (len(starts), len(queries)))
        columns = [
            sum(logs[starts.index(label[:-1]), :, i, words.index(word)] for i, word in enumerate(label)) / len(label)
            for label in labels
        ]
        return torch.stack(columns, -1)


class Kept:
    """A trace in the making: room for every query on the device of the predictions, filled batch by batch."""

    def __init__(self, predictor: Predictor, prompts: Prompts, ranked: int):
        self.predictor, self.prompts = predictor, prompts
        self.ranked = min(ranked, len(prompts.queries))
        self.lengths = [len(query) + len(prompts.labels[0]) for query in prompts.queries]
        self.own: OwnLogits | None = None
        self.dtype = torch.promote_types(predictor.subject.dtype, torch.float32)
        self.parts: dict[str, Tensor] = {}

    def add(self, batch: Sequence[int], tokens: int) -> None:
        """Run one batch of queries and queries without content, and keep what it gave."""
        subject, labels, total = self.predictor.subject, self.prompts.labels, len(self.prompts.queries)
        batch = sorted(batch, key=lambda index: (index >= self.ranked) + (index >= total))  # ranked, others, blank
        texts = [(self.prompts.queries + self.prompts.blanks)[index] for index in batch]
        ids = subject.tensor([text + labels[0] for text in texts])
        last = sent([[len(t) - 1, len(t) + len(labels[0]) - 1] for t in texts], ids.device)
        ranked, real = sum(index < self.ranked for index in batch), sum(index < total for index in batch)
        captured = subject.run(
            ids,
            last,
            self.predictor.prefix,
            self.predictor.modification,
            predicted=last[:, :1],
            ranked=torch.arange(ranked, device=ids.device),
        )
        if max(map(len, labels)) == 1:
            scores = log_probabilities(captured.vocabulary[:, 0], [label[0] for label in labels])
        else:
            scores = self.predictor.scores(texts, labels, tokens)
        device = scores.device
        last, own = last.to(device), captured.logits.shape[-1]
        there = torch.arange(own, device=device) <= last[..., None]  # batch position key
        logits = captured.logits * there[:, None, :, None, :]
        place = sent(batch, device)
        self._put("scores", place, scores, total + len(self.prompts.blanks))
        self._put("outputs", place[:real], captured.outputs[:real], total)
        self._put("blocks", place[:real], captured.blocks[:real], total)
        self._put_logits(batch[:real], logits[:real])
        self._put("keys", place[:real], there[:real, :, : max(self.lengths)], total)
        self._put("context", place[:ranked], captured.context[:ranked], self.ranked)
        self._put("vectors", place[:ranked], captured.vectors[:ranked], self.ranked)

    def _put(self, name: str, place: Tensor, values: Tensor, total: int) -> None:
        """Rows of a part of the trace; a batch that is narrower than all queries has False for the keys beyond it."""
        width = max(self.lengths) if name == "keys" else values.shape[-1]
        if name not in self.parts:
            dtype = torch.bool if name == "keys" else self.dtype
            self.parts[name] = torch.zeros(total, *values.shape[1:-1], width, dtype=dtype, device=values.device)
        self.parts[name][..., : values.shape[-1]][place] = values.to(self.parts[name].dtype)

    def _put_logits(self, queries: Sequence[int], logits: Float[Tensor, "some layer position head key"]) -> None:
        if self.own is None:
            self.own = OwnLogits.empty(self.lengths, logits.shape[1:4], self.dtype, logits.device)
        self.own.scatter(logits, queries)

    def trace(self, lowered: int | None) -> Trace:
        """The whole, once every query is in it."""
        scores, total, subject = self.parts.pop("scores"), len(self.prompts.queries), self.predictor.subject
        finite = self.parts["outputs"].isfinite().all() & scores.isfinite().all()
        if not bool(finite):  # the one wait for the device
            raise NotFinite(f"{subject.name} gives NaN or infinite numbers in {subject.precision}.")
        assert self.own is not None
        whole = {"own": self.own, "answers": self.prompts.answers, "lowered": lowered, **self.parts}
        return Trace(scores=scores[:total], blanks=scores[total:], **whole)  # type: ignore[arg-type]  # `add` put them


def log_probabilities(
    vocabulary: Float[Tensor, "*batch token"], words: Sequence[int]
) -> Float[Tensor, "*batch {len(words)}"]:
    """log p of some tokens, in float32 or better, without a table of all."""
    precise = torch.promote_types(vocabulary.dtype, torch.float32)
    chosen = vocabulary[..., sent(words, vocabulary.device)].to(precise)
    return chosen - vocabulary.to(precise).logsumexp(-1, keepdim=True)
