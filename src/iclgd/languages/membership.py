"""Membership in context: episodes of labelled words, with the language fixed, its sign random, or itself drawn."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy import ndarray
from torch import Tensor

from iclgd.errors import Refusal
from iclgd.languages.automaton import Language, Words
from iclgd.languages.words import Labelled, held_out, labelled
from iclgd.registry import suggest
from iclgd.tasks.regression import Episodes

Labels = Literal["fixed", "sign", "language"]
LABELS: tuple[str, ...] = get_args(Labels)


def check_labels(kind: str) -> None:
    if kind not in LABELS:
        raise Refusal(f'no labels "{kind}". {suggest(kind, LABELS)}There are {", ".join(LABELS)}.')


class Split(NamedTuple):
    """Labelled words of every language on each side: no word and, if there are many, no language is on both."""

    train: list[Labelled]
    test: list[Labelled]


def side(words: Labelled, seed: int, test: bool) -> Labelled:
    """The words of one side."""
    return Labelled(*(part[held_out(part, seed) == test] for part in words))


def split_one(language: Language, kind: str, width: int, need: int, seed: int) -> Split:
    """One language on both sides, split by string. ``need`` is how many words of a label an episode may ask for."""
    words = labelled(language, kind, width, 64, np.random.default_rng([seed, 0]))
    split = Split([side(words, seed, False)], [side(words, seed, True)])
    fewest = min(len(part) for (sides,) in split for part in sides)
    if fewest < need:
        total = len(words.members)
        raise Refusal(
            f'"{language.name}" is too small for the split: of {total} words up to length {width} (as many non-members '
            f"beside them) only {fewest} fall on one side, and an episode needs {need}; allow longer words with "
            "--max-length, or fewer --demos."
        )
    return split


def split_many(
    languages: Callable[[np.random.Generator], Iterator[Language]],
    count: int,
    kind: str,
    width: int,
    need: int,
    seed: int,
) -> Split:
    """Many languages, a fifth of them held out, and the words of held-out languages from the test side only.

    Languages with too few words for an episode are passed over.
    """
    random = np.random.default_rng([seed, 1])
    tests = max(1, count // 5)
    split = Split([], [])
    for language in languages(random):
        test = len(split.train) >= count - tests
        try:
            words = side(labelled(language, kind, width, 24, random), seed, test)
        except Refusal:
            continue
        if min(map(len, words)) >= need:
            (split.test if test else split.train).append(words)
        if len(split.test) == tests:
            return split
    raise Refusal(f"only {len(split.train)} of {count} languages have words enough for an episode; allow longer words.")


@dataclass(frozen=True, eq=False)
class Membership:
    """A family of episodes over coded words.

    Half of the demonstrations are members, the words of an episode are all different, and a query is a member or not
    with even odds, so that neither counts nor repeats say anything about the answer.
    """

    codes: Float[Tensor, "language label word dx"]
    """Non-members first, then members; rows beyond ``sizes`` are padding."""
    sizes: Int[Tensor, "language label"]
    demos: int
    signs: bool
    """Whether each episode draws the sign of its labels."""

    def draw(
        self, count: int, generator: torch.Generator, queries: int = 1, dtype: torch.dtype = torch.float32
    ) -> Episodes:
        half = self.demos // 2
        language = torch.randint(len(self.codes), (count,), generator=generator)
        keys = torch.rand(count, 2, self.codes.shape[2], generator=generator)
        beyond = torch.arange(self.codes.shape[2]) >= self.sizes[language][..., None]
        picked = keys.masked_fill(beyond, -1).topk(half + queries).indices  # [count, label, half + queries]
        asked = torch.randint(2, (count, queries), generator=generator)
        sign = torch.ones(count, 1)
        if self.signs:
            sign = 2.0 * torch.randint(2, (count, 1), generator=generator) - 1
        rows = torch.arange(count)[:, None]
        index = torch.cat([picked[:, 0, :half], picked[:, 1, :half], picked[rows, asked, half + torch.arange(queries)]], 1)
        label = torch.cat([torch.tensor([0, 1]).repeat_interleave(half).expand(count, -1), asked], 1)
        x = self.codes[language[:, None], label, index].to(dtype)
        y = (sign * (2 * label - 1)).to(dtype)[..., None]
        return Episodes(x[:, : self.demos], y[:, : self.demos], x[:, self.demos :], y[:, self.demos :])


def membership(words: list[Labelled], encode: Callable[[Words], ndarray], demos: int, signs: bool) -> Membership:
    """Episodes over one side of a split, every word replaced by its code."""
    sizes = np.array([[len(language.others), len(language.members)] for language in words])
    every = np.concatenate([part for language in words for part in (language.others, language.members)])
    coded = encode(every)
    codes = np.zeros((len(words), 2, sizes.max(), coded.shape[1]), dtype=np.float32)
    for part, (i, label) in zip(np.split(coded, sizes.ravel().cumsum()[:-1]), np.ndindex(*sizes.shape), strict=True):
        codes[i, label, : len(part)] = part
    return Membership(torch.from_numpy(codes), torch.from_numpy(sizes), demos, signs)


def shuffled(episodes: Episodes, generator: torch.Generator) -> Episodes:
    """Every episode with the labels of its demonstrations in another order: what is left is not learned in context."""
    order = torch.rand(episodes.y.shape[:2], generator=generator).argsort(1)
    return episodes._replace(y=episodes.y.gather(1, order[..., None]))


def accuracy(answer: Float[Tensor, "*batch query 1"], target: Float[Tensor, "*batch query 1"]) -> float:
    """The share of answers with the right sign."""
    return float(((answer > 0) == (target > 0)).float().mean())
