"""Whether the lab can work with a model: what it is, how it is captured, and whether capturing changes anything."""

from dataclasses import dataclass

import torch

from iclgd.models.subject import Subject
from iclgd.prompts import tokenize
from iclgd.tasks.text import all_tasks


@dataclass(frozen=True)
class Parity:
    """Next-token logits with captured attention against the model's own eager attention.

    Captured without a prefix the sums are the same ones, whatever the precision. Behind a shared prefix they are
    taken in another order, which a precision of 2⁻⁸ shows: there the bound is 16 of its steps, or 1e-5.
    """

    difference: float  # max |Δlogits|
    behind: float  # the same, with the first half of the tokens as a shared prefix
    scale: float  # max |logits|
    step: float  # the precision's relative step

    @property
    def holds(self) -> bool:
        return self.difference <= 1e-5 * self.scale and self.behind <= max(1e-5, 16 * self.step) * self.scale


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
        step=torch.finfo(own.dtype).eps,
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
