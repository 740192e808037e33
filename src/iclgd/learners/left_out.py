"""Demonstrations as queries: each asked behind the others, so that nothing but demonstrations is needed."""

from collections.abc import Iterator
from dataclasses import replace

import torch

from iclgd.errors import Refusal
from iclgd.models.patches import Reading, read
from iclgd.models.subject import Subject
from iclgd.prompts import Ids, Prompts


def left_out(prompts: Prompts) -> Iterator[tuple[Ids, Ids]]:
    """For each demonstration the context of all others, and its own text without the label."""
    if len(prompts.demos) < 2:
        raise Refusal("this learner asks each demonstration behind the others: `k` must be at least 2.")
    for place, demo in enumerate(prompts.demos):
        others = prompts.demos[:place] + prompts.demos[place + 1 :]
        yield replace(prompts, demos=others).context, demo.ids[: len(demo.ids) - len(demo.label)]


def read_left_out(subject: Subject, prompts: Prompts) -> tuple[list[Ids], Reading]:
    """Each demonstration's text from bos on, and what the model does at its end behind the others."""
    queries, found = [], []
    for context, query in left_out(prompts):
        queries.append(prompts.bos + query)
        found.append(read(subject, [query], subject.encode(context)))
    parts = ([getattr(one, name) for one in found] for name in ("blocks", "inputs", "logits"))
    return queries, Reading(*(torch.cat(part) for part in parts))
