"""Whether the lab can work with a model: what it is, how it is captured, and whether capturing changes anything."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from iclgd.errors import Refusal
from iclgd.models.precision import WIDER, CannotWiden, tolerance
from iclgd.models.subject import Subject
from iclgd.prompts import build_prompts, label_ids
from iclgd.spec import EpisodeSpec, PromptSpec
from iclgd.tasks.episodes import load_episode
from iclgd.tasks.text import all_tasks

SHORT = 48
LONGEST = 4352  # tokens: past a window of 4096; eager attention over more takes minutes and gigabytes
COMPARED = 48  # tokens at the end of a text whose predictions are compared


@dataclass(frozen=True)
class Parity:
    """Next-token logits with captured attention against the model's own eager attention."""

    difference: float  # max |Δlogits|
    behind: float  # the same, with the first half of the tokens as a shared prefix
    scale: float  # max |logits|
    bound: float  # how far they may be apart, relative to the scale

    @property
    def holds(self) -> bool:
        return all(apart <= self.bound * self.scale for apart in (self.difference, self.behind))


def parity(subject: Subject, length: int = SHORT, seed: int = 0) -> Parity:
    """Captured against eager on random tokens: the whole sequence at once, and its second half behind a prefix.

    Two sequences that share their first half, or one where they are long; compared at their last tokens.
    """
    random = torch.Generator().manual_seed(seed)
    count, half = 2 if length <= SHORT else 1, length // 2
    last = min(COMPARED, length)
    ids = torch.randint(subject.layout.config.vocab_size, (count, length), generator=random)
    ids[-1, :half] = ids[0, :half]
    ids = ids.to(subject.device)
    own = subject.own_logits(ids, last)
    rows = torch.arange(length - last, length, device=ids.device).expand(count, -1)
    whole = subject.run(ids, rows, None).vocabulary
    rows = rows[:, -min(last, length - half) :] - half
    behind = subject.run(ids[:, half:], rows, subject.encode(ids[0, :half].tolist())).vocabulary
    return Parity(
        difference=float((whole - own).abs().max()),
        behind=float((behind - own[:, -behind.shape[1] :]).abs().max()),
        scale=float(own.abs().max()),
        bound=tolerance(own.dtype),
    )


def parities(subject: Subject) -> Iterator[tuple[str, Parity]]:
    """Parity on a short text, beyond the sliding window where there is one, and at the length of a real prompt."""
    room = min(subject.room or LONGEST, LONGEST)
    yield f"{SHORT} tokens", parity(subject, min(SHORT, room))
    window = subject.layout.window
    if window is not None and window + SHORT <= room:
        yield f"{window + SHORT} tokens, beyond the window of {window}", parity(subject, window + SHORT)
    length = min(prompt_length(subject), room)
    if length > SHORT:
        yield f"{length} tokens, a prompt of 32 demonstrations", parity(subject, length)


def prompt_length(subject: Subject) -> int:
    """Tokens of 32 demonstrations of the default task and a query, or of as many as fit."""
    episode = load_episode("sentiment", EpisodeSpec(k=32, queries=1))
    prompts = build_prompts(subject.tokenizer, episode, PromptSpec(truncate=True), subject.room)
    return len(prompts.context) + prompts.longest


def no_layer_causal(subject: Subject) -> str | None:
    """Why layer-causal descent cannot be had; None where it can: the unembedding gives the model's own predictions."""
    outputs: dict[int, Tensor] = {}
    ids = torch.arange(8, device=subject.device)[None] + 3
    with torch.no_grad(), subject.watched_blocks(outputs.__setitem__):
        final = subject.model(ids, use_cache=False).logits[0]
    try:
        subject.check_unembedding(outputs[subject.layout.layers - 1][0], final)
    except Refusal as refusal:
        return str(refusal)
    return None


def noise_floor(subject: Subject) -> tuple[str | None, tuple[str, ...]]:
    """Why a noise floor in wider precision cannot be had (None where it can), and what of it would stay narrower."""
    if subject.dtype not in WIDER:
        return "there is no wider format.", ()
    try:
        with subject.in_precision(WIDER[subject.dtype]) as widening:
            return None, tuple(sorted(widening.narrow))
    except CannotWiden as refusal:
        return str(refusal), ()


def long_labels(subject: Subject) -> list[str]:
    """Label words of the library's tasks that this tokenizer splits or confuses, as `task: word (n tokens)`."""
    found = []
    for task in all_tasks():
        try:
            labels = label_ids(subject.tokenizer, task)
        except Refusal as refusal:
            found.append(f"{task.name}: {refusal}")
            continue
        for word, ids in zip(task.labels, labels, strict=True):
            if len(ids) > 1:
                found.append(f"{task.name}: {word} ({len(ids)} tokens)")
    return found
