"""Demonstrations and queries as token ids, piece by piece, so that positions can be named.

The context is ``[bos] + demo + separator + demo + separator + …`` and a query follows it; without demonstrations the
context is ``[bos]`` alone, or nothing where the tokenizer has no bos (and `PromptSpec.start` names no other token).
Each demonstration, each separator, each query and each label word is tokenised on its own and the ids are joined: a
query has the same tokens in every setting. Label words and separators follow a text, so they are tokenised as what
follows one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from iclgd.errors import Refusal
from iclgd.spec import PromptSpec
from iclgd.tasks.episodes import Episode
from iclgd.tasks.text import TextTask

Ids = tuple[int, ...]
POSITIONS = ("prompt", "label")
WHERE = {"prompt": "at the prompt's last token", "label": "at the class-0 label word after the prompt"}
ANCHORS = (":", "\n")
CONTENT_FREE = ("N/A", "[MASK]", "")  # Zhao et al. 2021


@dataclass(frozen=True)
class Demo:
    """One demonstration: all its tokens, the last ``len(label)`` of which are the label word."""

    ids: Ids
    label: Ids


@dataclass(frozen=True)
class Prompts:
    """An episode in tokens.

    A query's tokens are followed by the class-0 label word, so that two positions can be named: `prompt`, the
    prompt's last token, where the label is predicted; and `label`, the last token of that label word, where the code
    of Dai 2022 and Deutch 2023 measured.
    """

    bos: Ids  # what every prompt starts with, if anything
    demos: tuple[Demo, ...]
    separator: Ids
    queries: tuple[Ids, ...]
    labels: tuple[Ids, ...]
    answers: tuple[int, ...]
    blanks: tuple[Ids, ...] = ()  # queries without content, for contextual calibration
    dropped: tuple[Demo, ...] = ()  # demonstrations left out of the context because they did not fit

    @property
    def context(self) -> Ids:
        """What stands before a query when the demonstrations are read."""
        return self.bos + tuple(token for demo in self.demos for token in demo.ids + self.separator)

    @property
    def context_demos(self) -> tuple[range, ...]:
        """Where each demonstration's own tokens lie in the context."""
        spans, start = [], len(self.bos)
        for demo in self.demos:
            spans.append(range(start, start + len(demo.ids)))
            start += len(demo.ids) + len(self.separator)
        return tuple(spans)

    @property
    def longest(self) -> int:
        """Tokens of the longest query with the longest label word."""
        return max(map(len, self.queries + self.blanks)) + max(map(len, self.labels))


def tokenize(tokenizer: Any, text: str) -> Ids:
    """The ids of a piece of text: no bos, no eos, and no control token even where the text spells one."""
    return tuple(tokenizer(text, add_special_tokens=False, split_special_tokens=True)["input_ids"])


def tokenize_after(tokenizer: Any, text: str) -> Ids:
    """The ids of a piece of text that follows another.

    Sentencepiece tokenizers may put a space before every text, so that its first word looks like any other. Before
    ``" good"``, which has its own, that would be one too many (``▁ ▁g ood``), and the label would begin with a token
    that the prompt's end does not predict. There the piece is read behind another text, whose own ids are cut off.
    """
    if not _adds_space(tokenizer):
        return tokenize(tokenizer, text)
    for before in ANCHORS:
        head, whole = tokenize(tokenizer, before), tokenize(tokenizer, before + text)
        if whole[: len(head)] == head:
            return whole[len(head) :]
    raise Refusal(f"the tokenizer joins {text!r} to whatever stands before it, so no position of its own can be named.")


def _adds_space(tokenizer: Any) -> bool:
    return any(piece.startswith("▁") for piece in tokenizer.convert_ids_to_tokens(list(tokenize(tokenizer, "a")))[:1])


def label_ids(tokenizer: Any, task: TextTask) -> tuple[Ids, ...]:
    """The label words of a task as they follow a prompt."""
    labels = tuple(tokenize_after(tokenizer, task.completion(i)) for i in range(len(task.labels)))
    for word, ids in zip(task.labels, labels, strict=True):
        if not ids:
            raise Refusal(f'the tokenizer gives no token for the label word "{word}" of {task.name}.')
    if len(set(labels)) < len(labels):
        raise Refusal(f"the tokenizer gives two label words of {task.name} the same tokens: {', '.join(task.labels)}.")
    return labels


def first_tokens(labels: Sequence[Ids], task: str) -> tuple[int, ...]:
    """The first token of every label word, by which answers are told apart here."""
    words = tuple(label[0] for label in labels)
    if len(set(words)) < len(words):
        raise Refusal(f"two label words of {task} begin with the same token, which does not tell them apart.")
    return words


def build_prompts(tokenizer: Any, episode: Episode, spec: PromptSpec, room: int | None) -> Prompts:
    """An episode in tokens, for a model whose context holds ``room`` of them (None: no limit is known)."""
    task = episode.task
    labels, separator = label_ids(tokenizer, task), _separator(tokenizer, spec.separator)
    demos = tuple(
        Demo(tokenize(tokenizer, task.prompt(demo.fields)) + labels[demo.label], labels[demo.label])
        for demo in episode.demos
    )
    queries = tuple(tokenize(tokenizer, task.prompt(query.fields)) for query in episode.queries)
    if not all(queries):
        raise Refusal(f"query {queries.index(()) + 1} of {task.name} is empty: the tokenizer gives no token for it.")
    answers = tuple(query.label for query in episode.queries)
    blank = (tokenize(tokenizer, task.prompt(dict.fromkeys(task.fields, word))) for word in CONTENT_FREE)
    blanks = tuple(ids for ids in blank if ids)  # a template of nothing but fields has no tokens without content
    start = _start(tokenizer, spec.start, separator)
    prompts = Prompts(start, demos, separator, queries, labels, answers, blanks)
    return prompts if room is None else _fitted(prompts, room, spec.truncate)


def _separator(tokenizer: Any, separator: str) -> Ids:
    if separator != "eos":
        return tokenize_after(tokenizer, separator)
    if tokenizer.eos_token_id is None:
        raise Refusal(
            "this tokenizer has no end-of-text token, so the separator cannot be eos: give another `separator`."
        )
    return (tokenizer.eos_token_id,)


def _start(tokenizer: Any, start: str, separator: Ids) -> Ids:
    """What every prompt starts with."""
    if start == "separator":
        if not separator:
            raise Refusal(
                "the separator has no token, so no prompt can start with it: give another start or separator."
            )
        return separator[:1]
    token = tokenizer.bos_token_id if start == "bos" else tokenizer.eos_token_id
    if token is None and start == "eos":
        raise Refusal("this tokenizer has no end-of-text token, so no prompt can start with it: give another start.")
    return () if token is None else (token,)


def _fitted(prompts: Prompts, room: int, truncate: bool) -> Prompts:
    """The prompts, refused or truncated where the context with the longest query is longer than ``room``."""
    fits = how_many_fit(prompts, room)
    if fits < 0:
        raise Refusal(f"the longest query has {prompts.longest} tokens, more than the model's context of {room}.")
    if fits == len(prompts.demos):
        return prompts
    if not truncate:
        raise Refusal(
            f"{len(prompts.demos)} demonstrations and the longest query do not fit the model's context of {room} "
            f"tokens; {fits} would: lower `k`, or set `truncate` to drop the rest."
        )
    return replace(prompts, demos=prompts.demos[:fits], dropped=prompts.demos[fits:])


def how_many_fit(prompts: Prompts, room: int) -> int:
    """How many of the demonstrations, in order, fit before the longest query; −1 if not even the query does."""
    used = len(prompts.bos) + prompts.longest
    if used > room:
        return -1
    for count, demo in enumerate(prompts.demos):
        used += len(demo.ids) + len(prompts.separator)
        if used > room:
            return count
    return len(prompts.demos)
