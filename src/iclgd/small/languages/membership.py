"""Membership in context: episodes of labelled words, with the language fixed, its sign random, or itself drawn."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy import ndarray
from torch import Tensor

from iclgd.errors import Refusal
from iclgd.small.languages.automaton import Language, Words
from iclgd.small.languages.words import ASKED, TESTED, Labelled, Negatives, asked, held_out, labelled, ranked
from iclgd.tasks.regression import Episodes

FEWEST = 3
"""The fewest words of a label that demonstrations or queries are drawn from."""


class Side(NamedTuple):
    """Words of one language on one side of the split: what demonstrations and what queries are drawn from."""

    demos: Labelled
    queries: Labelled

    @property
    def fewest(self) -> int:
        return min(len(part) for words in self for part in words)


class Split(NamedTuple):
    """Words of every language on each side: no word and, if there are many, no language is on both."""

    train: list[Side]
    test: list[Side]


def side(words: Labelled, seed: int, test: bool) -> Side:
    kept = [part[held_out(part, seed) == test] for part in words]
    return Side(*(Labelled(*(part[asked(part, seed) == query] for part in kept)) for query in (False, True)))


def split_one(language: Language, kind: Negatives, lengths: range, seed: int) -> Split:
    """One language on both sides, split by string, in exact shares: the languages are small."""
    words = labelled(language, kind, lengths, 768 // len(lengths), np.random.default_rng([seed, 0]))
    sides = []
    for part in zip(*(ranked(part, seed, TESTED, 0) for part in words), strict=True):  # test, then training
        queries, demos = zip(*(ranked(label, seed, ASKED, 1) for label in part), strict=True)
        sides.append(Side(Labelled(*demos), Labelled(*queries)))
    split = Split([sides[1]], [sides[0]])
    fewest = min(split.train[0].fewest, split.test[0].fewest)
    if fewest < FEWEST:
        size = language.size
        if size is not None and size <= len(words.members):
            advice = f"it has {size} word{'s' if size > 1 else ''} in all, so write a larger one"
        else:
            advice = "allow longer with `max_length`"
        raise Refusal(
            f'"{language.name}" is too small for the split: of {len(words.members)} usable words up to length '
            f"{lengths[-1]} only {fewest} are left for a part that needs {FEWEST}; {advice}."
        )
    return split


def split_many(
    languages: Callable[[np.random.Generator], Iterator[Language]],
    count: int,
    kind: Negatives,
    lengths: range,
    seed: int,
) -> Split:
    """Many languages, a fifth of them held out, and the words of held-out languages from the test side only.

    Languages with too few words are passed over; if most have, there is nothing to go on with.
    """
    random = np.random.default_rng([seed, 1])
    tests, split = count // 5, Split([], [])
    for tried, language in enumerate(languages(random), 1):
        test = len(split.train) >= count - tests
        words = _side_of(language, kind, lengths, seed, test, random)
        if words is not None:
            (split.test if test else split.train).append(words)
        if len(split.test) == tests:
            return split
        if tried > 20 and len(split.train) < tried / 4:
            break
    raise Refusal(f"most random languages have too few words up to length {lengths[-1]}; raise `max_length`.")


def _side_of(
    language: Language, kind: Negatives, lengths: range, seed: int, test: bool, random: np.random.Generator
) -> Side | None:
    try:
        words = side(labelled(language, kind, lengths, 192 // len(lengths), random), seed, test)
    except Refusal:
        return None
    return words if words.fewest >= FEWEST else None


@dataclass(frozen=True, eq=False)
class Membership:
    """A family of episodes over coded words.

    Half of the demonstrations are members, a query is a member or not with even odds, and no query is ever a
    demonstration, so that neither counts nor repeats say anything about the answer.
    """

    codes: Float[Tensor, "language role label word dx"]
    """Demonstrations, then queries; non-members, then members; rows beyond ``sizes`` are padding."""
    sizes: Int[Tensor, "language role label"]
    k: int
    signs: bool
    """Whether each episode draws the sign of its labels."""

    def draw(
        self, count: int, generator: torch.Generator, queries: int = 1, dtype: torch.dtype = torch.float32
    ) -> Episodes:
        """Episodes of one query each, or of many: members and non-members in turn, spread evenly over their words."""
        language = torch.randint(len(self.codes), (count, 1), generator=generator)
        shown = torch.arange(2).repeat_interleave(self.k // 2).expand(count, -1)
        turn = torch.arange(queries)
        asked = (torch.randint(2, (count, 1), generator=generator) + turn) % 2
        label = torch.cat([shown, asked], 1)  # [episode, demo and query]
        role = torch.cat([torch.zeros_like(shown), torch.ones_like(asked)], 1)
        place = torch.rand(count, self.k + 1, generator=generator, dtype=torch.float64)
        spread = (turn // 2 + place[:, -1:]) / ((queries + 1 - turn % 2) // 2)  # by the number of its own label
        word = (torch.cat([place[:, :-1], spread], 1) * self.sizes[language, role, label]).long()
        sign = torch.ones(count, 1, dtype=dtype)
        if self.signs:
            sign = 2 * torch.randint(2, (count, 1), generator=generator).to(dtype) - 1
        row = ((language * 2 + role) * 2 + label) * self.codes.shape[3] + word
        x = self.codes.flatten(0, 3).index_select(0, row.flatten()).unflatten(0, row.shape).to(dtype)
        y = (sign * (2 * label - 1))[..., None]
        return Episodes(x[:, : self.k], y[:, : self.k], x[:, self.k :], y[:, self.k :])


def membership(words: list[Side], encode: Callable[[Words], ndarray], k: int, signs: bool) -> Membership:
    """Episodes over one side of a split, every word replaced by its code."""
    parts = [part for side in words for role in side for part in (role.others, role.members)]
    sizes = np.array([len(part) for part in parts]).reshape(len(words), 2, 2)
    coded = encode(np.concatenate(parts))
    codes = np.zeros((len(parts), sizes.max(), coded.shape[1]), dtype=np.float32)
    for row, part in zip(codes, np.split(coded, sizes.ravel().cumsum()[:-1]), strict=True):
        row[: len(part)] = part
    return Membership(torch.from_numpy(codes).unflatten(0, sizes.shape), torch.from_numpy(sizes), k, signs)


def shuffled(episodes: Episodes, generator: torch.Generator) -> Episodes:
    """Every episode with the labels of its demonstrations in another order: what is left is not learned in context."""
    order = torch.rand(episodes.y.shape[:2], generator=generator).argsort(1)
    return episodes._replace(y=episodes.y.gather(1, order[..., None]))


def accuracy(answer: Float[Tensor, "*batch query 1"], target: Float[Tensor, "*batch query 1"]) -> float:
    """The share of answers with the right sign."""
    return float(((answer > 0) == (target > 0)).float().mean())
