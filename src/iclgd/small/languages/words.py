"""Labelled words of a language: as many members as non-members at every length, split so that nothing leaks."""

from typing import Literal, NamedTuple, get_args

import numpy as np
from jaxtyping import Bool, Int, UInt64
from numpy import ndarray

from iclgd.errors import Refusal
from iclgd.small.languages.automaton import Language, Words, padded

Negatives = Literal["random", "edits", "complement"]
NEGATIVES: tuple[str, ...] = get_args(Negatives)
TRIES = 20
TESTED, ASKED = 0.4, 0.5  # shares of words: for testing, and only ever asked about
EDITS = 2
"""The most edits between a hard negative and a member."""


class Labelled(NamedTuple):
    """Members and non-members of one language, all different, of lengths 1 to the width."""

    members: Words
    others: Words


def labelled(
    language: Language, kind: Negatives, lengths: range, per_length: int, random: np.random.Generator
) -> Labelled:
    """Different words of every length, at most ``per_length`` members of each.

    ``complement`` and ``edits`` have as many non-members as members at every length, so that length gives nothing away:
    the first uniform among all non-members of that length, the second one or two edits from a member. ``random`` draws
    lengths and symbols without looking at the language, and keeps what is not a member.
    """
    outside = language.complement()
    pairs = []
    for length in lengths:
        count = min(language.count(length), outside.count(length), per_length)
        if count:
            members = language.sample_distinct(count, length, random)
            others = members[:0]
            if kind == "complement":
                others = outside.sample_distinct(count, length, random)
            elif kind == "edits":
                others = _near(language, members, random)
                members = random.permutation(members)[: len(others)]
            pairs.append([padded(part, lengths[-1], language.symbols) for part in (members, others)])
    if not pairs:
        raise Refusal(_lacking(language, lengths))
    members, others = (np.concatenate(part) for part in zip(*pairs, strict=True))
    if kind == "random":
        others = _blind(language, len(members), lengths, random)
    return Labelled(members, others)


def _lacking(language: Language, lengths: range) -> str:
    if not language.accepting.any():
        return f'"{language.name}" is the empty language: no word over {language.alphabet} is in it; write another one.'
    if not any(language.count(length) for length in lengths):
        return (
            f'"{language.name}" has no words of length {lengths[0]} to {lengths[-1]}; allow others with `max_length`.'
        )
    return (
        f'"{language.name}" has every word over {language.alphabet} of the lengths it has up to {lengths[-1]}: there '
        "is nothing to tell apart; give a larger `alphabet`."
    )


def _near(language: Language, members: Words, random: np.random.Generator) -> Int[ndarray, "found position"]:
    """Different non-members one or two edits from a member of the same length; fewer where there are not enough."""
    found = members[:0]
    for _ in range(TRIES):
        edited = members
        for edit in range(EDITS):
            again = random.random(len(members)) < (1.0 if edit == 0 else 0.5)
            edited = np.where(again[:, None], edits(edited, language.symbols, random), edited)
        found = distinct(np.concatenate([found, edited[~language.accepts(edited)]]))
        if len(found) >= len(members):
            break
    return random.permutation(found)[: len(members)]


def edits(words: Words, symbols: int, random: np.random.Generator) -> Words:
    """One edit of every word that keeps its length: a symbol replaced, or one taken out and one put in elsewhere."""
    count, length = words.shape
    rows = np.arange(count)
    out, into = random.integers(length, size=(2, count))
    new = random.integers(symbols, size=count)
    replaced = words.copy()
    replaced[rows, out] = new
    # position j of the moved word reads from j or from its neighbour, depending on which side of the gap it is
    j = np.arange(length)[None, :]
    source = j + ((j >= out[:, None]) & (j < into[:, None])) - ((j <= out[:, None]) & (j > into[:, None]))
    moved = np.take_along_axis(words, source, 1)
    moved[rows, into] = new
    move = random.random((count, 1)) < 0.5
    return np.where(move, moved, replaced)


def _blind(language: Language, count: int, lengths: range, random: np.random.Generator) -> Words:
    found = np.empty((0, lengths[-1]), dtype=np.int64)
    for _ in range(TRIES):
        found = distinct(np.concatenate([found, uniform(4 * count, lengths, language.symbols, random)]))
        found = found[~language.accepts(found)]
        if len(found) >= count:
            break
    return random.permutation(found)[:count]


def uniform(count: int, lengths: range, symbols: int, random: np.random.Generator) -> Words:
    """Words whose length is uniform among ``lengths`` and whose symbols are uniform."""
    words = random.integers(symbols, size=(count, lengths[-1]))
    words[np.arange(lengths[-1])[None, :] >= random.choice(lengths, size=count)[:, None]] = symbols
    return words


def distinct(words: Words) -> Int[ndarray, "kept position"]:
    return np.unique(words, axis=0)


def hashed(words: Words, seed: int, use: int) -> UInt64[ndarray, " word"]:
    """A number for every word that depends on the word, the seed and what it is for, and on nothing else."""
    mixed = np.full(len(words), (2 * seed + use + 1) * 0x9E3779B97F4A7C15 % 2**64, dtype=np.uint64)
    for column in words.T:
        mixed = (mixed ^ (column.astype(np.uint64) + np.uint64(1))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(29)
    for shift, factor in ((32, 0x94D049BB133111EB), (29, 0xBF58476D1CE4E5B9)):  # the last symbol reaches every bit
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return mixed


def share_of(words: Words, seed: int, share: float, use: int) -> Bool[ndarray, " word"]:
    """Which words fall into a share of all words: so a word is on one side in every language and every pool."""
    return hashed(words, seed, use) < np.uint64(int(share * 2**64))


def held_out(words: Words, seed: int) -> Bool[ndarray, " word"]:
    """Which words are for testing: two of five."""
    return share_of(words, seed, TESTED, 0)


def asked(words: Words, seed: int) -> Bool[ndarray, " word"]:
    """Which words are only ever asked about, the others being demonstrations: half of either side.

    Were both drawn from one small pool, a query that must differ from the demonstrations would be known by its absence
    from them, and one that need not would often be among them.
    """
    return share_of(words, seed, ASKED, 1)


def ranked(
    words: Words, seed: int, share: float, use: int
) -> tuple[Int[ndarray, "chosen position"], Int[ndarray, "left position"]]:
    """The words of a share of one list, and the others: the share is exact, which matters where words are few."""
    order = np.argsort(hashed(words, seed, use))
    cut = round(share * len(words))
    return words[order[:cut]], words[order[cut:]]
