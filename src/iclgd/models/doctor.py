"""Whether the lab can work with a model: what it is, how it is captured, and whether capturing changes anything."""

from dataclasses import dataclass

import torch

from iclgd.models.subject import Subject, tolerance
from iclgd.prompts import tokenize
from iclgd.tasks.text import all_tasks


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


def parity(subject: Subject, length: int = 48, seed: int = 0) -> Parity:
    """Captured against eager on random tokens: the whole sequence at once, and its second half behind a prefix."""
    random = torch.Generator().manual_seed(seed)
    half = length // 2
    ids = torch.randint(subject.layout.config.vocab_size, (2, length), generator=random)
    ids[1, :half] = ids[0, :half]
    ids = ids.to(subject.device)
    own = subject.own_logits(ids)
    rows = torch.arange(length, device=ids.device).expand(2, -1)
    whole = subject.run(ids, rows, None).vocabulary
    behind = subject.run(ids[:, half:], rows[:, : length - half], subject.encode(ids[0, :half].tolist())).vocabulary
    return Parity(
        difference=float((whole - own).abs().max()),
        behind=float((behind - own[:, half:]).abs().max()),
        scale=float(own.abs().max()),
        bound=tolerance(own.dtype),
    )


def long_labels(subject: Subject) -> list[str]:
    """Label words of the library's tasks that this tokenizer splits, as `task: word (n tokens)`."""
    found = []
    for task in all_tasks():
        for label, word in enumerate(task.labels):
            count = len(tokenize(subject.tokenizer, task.completion(label)))
            if count > 1:
                found.append(f"{task.name}: {word} ({count} tokens)")
    return found
