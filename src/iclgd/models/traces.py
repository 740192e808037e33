"""Traces: what a predictor did on each query, at the named positions."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from iclgd.errors import Refusal
from iclgd.models.capture import Modification, Prefix
from iclgd.models.layout import Slot
from iclgd.models.subject import Subject
from iclgd.prompts import Ids, Prompts

Progress = Callable[[int], None]  # told how many queries were just finished


@dataclass(frozen=True)
class Trace:
    """What one predictor did on the queries of an episode, on the CPU.

    The position axis is `prompt`, `label` (see prompts.py). Keys are the query's own tokens followed by the class-0
    label word; ``keys`` says which of them exist at a position, and ``logits`` is 0 where they do not.
    """

    scores: Float[Tensor, "query label"]  # log p(label word | prompt), mean over its tokens
    outputs: Float[Tensor, "query layer position dim"]
    logits: Float[Tensor, "query layer position head key"]
    keys: Bool[Tensor, "query position key"]
    context: Float[Tensor, "query layer position context"]  # logits over the context's tokens, summed over heads
    vectors: Float[Tensor, "query layer position qdim"]  # query projections, before any rotation by position
    blocks: Float[Tensor, "query layer position dim"]  # the residual stream after each block
    blanks: Float[Tensor, "blank label"]  # scores of queries without content
    answers: tuple[int, ...]

    @property
    def right(self) -> Bool[Tensor, " query"]:
        return self.scores.argmax(-1) == torch.tensor(self.answers)

    @property
    def accuracy(self) -> float:
        return float(self.right.double().mean())


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

    def trace(self, prompts: Prompts, tokens: int = 1024, progress: Progress | None = None) -> Trace:
        """The trace of every query; ``tokens`` bounds a batch, padding and label word included."""
        total = len(prompts.queries)
        width = max(map(len, prompts.queries)) + len(prompts.labels[0])
        layers, heads = self.subject.layout.layers, self.subject.layout.heads
        keep = torch.promote_types(self.subject.dtype, torch.float32)
        scores = torch.empty(total, len(prompts.labels), dtype=keep)
        context = torch.empty(total, layers, 2, self.prefix.length if self.prefix else 0, dtype=keep)
        logits = torch.zeros(total, layers, 2, heads, width, dtype=keep)
        keys = torch.zeros(total, 2, width, dtype=torch.bool)
        whole: dict[str, Tensor] = {}
        longest = max(map(len, prompts.labels))
        for batch in batches([len(query) + longest for query in prompts.queries], tokens):
            queries = [prompts.queries[i] for i in batch]
            ids = self.subject.tensor([query + prompts.labels[0] for query in queries])
            last = torch.tensor([[len(q) - 1, len(q) + len(prompts.labels[0]) - 1] for q in queries])
            captured = self.subject.run(ids, last.to(ids.device), self.prefix, self.modification)
            for name in ("outputs", "vectors", "blocks"):
                part = getattr(captured, name).to("cpu", keep)
                whole.setdefault(name, torch.empty(total, *part.shape[1:], dtype=keep))[batch] = part
            context[batch] = captured.context.to("cpu", keep)
            own = captured.logits.shape[-1]
            exist = torch.arange(own) <= last[..., None]  # batch position key
            keys[batch, :, :own] = exist
            logits[batch, ..., :own] = captured.logits.to("cpu", keep) * exist[:, None, :, None, :]
            if longest == 1:
                words = torch.tensor([label[0] for label in prompts.labels], device=captured.vocabulary.device)
                scores[batch] = captured.vocabulary[:, 0].to(keep).log_softmax(-1)[:, words].cpu()
            else:
                scores[batch] = self.scores(queries, prompts.labels)
            if progress is not None:
                progress(len(batch))
        blanks = self.scores(prompts.blanks, prompts.labels) if prompts.blanks else scores.new_empty(0, scores.shape[1])
        if not (whole["outputs"].isfinite().all() and scores.isfinite().all()):
            raise NotFinite(f"{self.subject.name} gives NaN or infinite numbers in {self.subject.precision}.")
        return Trace(
            scores=scores,
            logits=logits,
            keys=keys,
            context=context,
            blanks=blanks,
            answers=prompts.answers,
            **whole,
        )

    def scores(self, queries: Sequence[Ids], labels: Sequence[Ids]) -> Float[Tensor, "query label"]:
        """Mean log-probability of label words of any length, each read behind its query."""
        keep = torch.promote_types(self.subject.dtype, torch.float32)
        columns = []
        for label in labels:
            ids = self.subject.tensor([query + label for query in queries])
            # the token at row r predicts the one after it: len(label) rows from the prompt's last token on
            rows = torch.tensor(
                [[len(query) - 1 + i for i in range(len(label))] for query in queries], device=ids.device
            )
            vocabulary = self.subject.run(ids, rows, self.prefix, self.modification).vocabulary.to(keep).log_softmax(-1)
            targets = torch.tensor(label, device=vocabulary.device).expand(len(queries), -1)
            columns.append(vocabulary.gather(-1, targets[..., None])[..., 0].mean(-1).cpu())
        return torch.stack(columns, -1)


def batches(lengths: Sequence[int], tokens: int) -> Iterator[list[int]]:
    """Indices in batches of similar length, at most ``tokens`` each after padding; at least one a batch."""
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lambda i: (lengths[i], i)):
        if batch and (len(batch) + 1) * lengths[index] > tokens:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch
