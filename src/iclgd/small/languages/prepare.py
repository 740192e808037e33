"""What comes before labels: words drawn and split, and codes fitted on the training side, for every seed its own."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle

import numpy as np

from iclgd.small.languages.automaton import Language, decode
from iclgd.small.languages.data import Data as Data
from iclgd.small.languages.encoders import Encode, Encoder, Material
from iclgd.small.languages.expressions import check_alphabet, language
from iclgd.small.languages.membership import Membership, Side, Split, membership, split_many, split_one
from iclgd.small.languages.regbench import random_languages
from iclgd.small.languages.words import distinct
from iclgd.small.train import one_thread

SHOWN = 4  # words of each kind that a page shows


@dataclass(frozen=True, eq=False)
class Prepared:
    """Words split and coded, by seed. None of it depends on how the episodes will be labelled."""

    seeds: tuple[int, ...]
    alphabet: str
    splits: list[Split]
    encoders: list[Encode]
    curves: list[Mapping[str, Sequence[float]]]
    """Of the encoder's training, where it was trained."""
    kept: list[Mapping[str, np.ndarray]]
    """What a page needs to code words by itself."""

    def only(self, seeds: Sequence[int]) -> "Prepared":
        """The part of some of the seeds, in their order."""
        parts = zip(self.splits, self.encoders, self.curves, self.kept, strict=True)
        rows = dict(zip(self.seeds, parts, strict=True))
        splits, encoders, curves, kept = map(list, zip(*(rows[seed] for seed in seeds), strict=True))
        return Prepared(tuple(seeds), self.alphabet, splits, encoders, curves, kept)

    def tasks(self, k: int, signs: bool) -> list[tuple[Membership, Membership]]:
        """Training and test episodes of every seed; ``signs``: each episode draws the sign of its labels."""
        pairs = zip(self.splits, self.encoders, strict=True)
        return [(membership(s.train, code, k, signs), membership(s.test, code, k, signs)) for s, code in pairs]

    def examples(self, place: int) -> dict[str, list[str]]:
        """A few training words of a seed."""
        first = self.splits[place].train[0].demos
        return {name: decode(part[-SHOWN:], self.alphabet) for name, part in first._asdict().items()}

    def episode(self, place: int, k: int) -> list[list[str | int]]:
        """k words of the test side with their labels, members and others in turn, for a page to begin with."""
        first = self.splits[place].test[0].demos
        sides = [cycle(decode(part, self.alphabet)) for part in (first.members, first.others)]
        return [[next(sides[i % 2]), 1 - 2 * (i % 2)] for i in range(k)]

    def counts(self, place: int) -> dict[str, int]:
        """How many different words of a seed are trained on, shown in test episodes, and asked about there."""
        split = self.splits[place]
        tested = [np.concatenate([part for words in split.test for part in words[role]]) for role in (0, 1)]
        train, shown, asked = (len(distinct(part)) for part in (words_of(split.train), *tested))
        return {"training": train, "shown": shown, "asked": asked}


def prepare(data: Data) -> Prepared:
    """Draw and split the words, and fit the encoders on the training side."""
    with one_thread():
        splits, letters = _splits(data)
        encoder: Encoder = data.encoder.make()
        fitted = encoder.fit_all(
            [
                Material(words_of(split.train), words_of(split.test), len(letters), data.lengths, data.dims, seed)
                for split, seed in zip(splits, data.seeds, strict=True)
            ]
        )
    parts = ([one.encode for one in fitted], [one.curves for one in fitted], [one.kept for one in fitted])
    return Prepared(data.seeds, letters, splits, *parts)


def words_of(sides: Sequence[Side]) -> np.ndarray:
    """All words of one side of a split."""
    return np.concatenate([part for words in sides for role in words for part in role])


def _splits(data: Data) -> tuple[list[Split], str]:
    """The words of every seed, and their alphabet."""
    if data.random:
        letters = check_alphabet(data.letters)

        def families(random: np.random.Generator) -> Iterator[Language]:
            return random_languages(letters, random, (4, 8))

        def drawn(seed: int) -> Split:
            return split_many(families, data.languages, data.negatives, data.lengths, seed)

    else:
        chosen = language(data.language, data.alphabet)
        letters = chosen.alphabet

        def drawn(seed: int) -> Split:
            return split_one(chosen, data.negatives, data.lengths, seed)

    return [drawn(seed) for seed in data.seeds], letters
