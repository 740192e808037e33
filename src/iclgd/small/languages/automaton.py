"""A regular language as the tables of its automaton: membership, counts, and words by their rank.

A complete deterministic automaton is one integer table, so every operation here is a gather for all words at once.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Int
from numpy import ndarray

from iclgd.errors import Refusal

Words = Int[ndarray, "word position"]
MOST_WORDS = 2**63 - 1
"""Ranks are 64-bit integers, so that a uniform rank is exactly uniform and a word is found without rounding."""


@dataclass(frozen=True, eq=False)
class Language:
    """The words that end in an accepting state; the automaton starts in state 0 and is complete."""

    name: str
    alphabet: str
    table: Int[ndarray, "state symbol"]
    accepting: Bool[ndarray, " state"]

    @property
    def symbols(self) -> int:
        return len(self.alphabet)

    def accepts(self, words: Words) -> Bool[ndarray, " word"]:
        """Which words are members; padding leaves the state as it is."""
        stay = np.arange(len(self.table))[:, None]
        table = np.concatenate([self.table, stay], 1)
        state = np.zeros(len(words), dtype=np.int64)
        for column in words.T:
            state = table[state, column]
        return self.accepting[state]

    def complement(self) -> "Language":
        return Language(f"not {self.name}", self.alphabet, self.table, ~self.accepting)

    @cached_property
    def _counts(self) -> list[list[int]]:
        return [[int(final) for final in self.accepting]]

    def counts(self, length: int) -> list[int]:
        """c_n(s): how many words of length n lead from each state to an accepting one, as integers of any size.

        c_0 = 1 at accepting states, c_n(s) = Σ_a c_{n−1}(δ(s, a)).
        """
        while len(self._counts) <= length:
            last = self._counts[-1]
            self._counts.append([sum(last[target] for target in row) for row in self.table.tolist()])
        return self._counts[length]

    def count(self, length: int) -> int:
        """How many words of this length the language has."""
        return self.counts(length)[0]

    @property
    def size(self) -> int | None:
        """How many words the language has in all; none if they are without end.

        An automaton of n states that accepts a word of n symbols or more goes round a loop.
        """
        states = len(self.table)
        if any(self.count(length) for length in range(states, 2 * states)):
            return None
        return sum(self.count(length) for length in range(states))

    def words(self, ranks: Int[ndarray, " word"], length: int) -> Words:
        """The members of one length by their place in alphabetical order.

        The next symbol is the one within whose share of c_n(s) the rank falls; its share's start is taken off the rank.
        """
        if self.count(length) > MOST_WORDS:
            raise Refusal(f'"{self.name}" has more than 2⁶³ words of length {length}; choose a shorter length.')
        rank, state = ranks.astype(np.int64), np.zeros(len(ranks), dtype=np.int64)
        words = np.empty((len(ranks), length), dtype=np.int64)
        for position in range(length):
            below = np.array(self.counts(length - position - 1), dtype=np.int64)[self.table]  # [state, symbol]
            starts = np.concatenate([np.zeros((len(below), 1), dtype=np.int64), below.cumsum(1)[:, :-1]], 1)
            mine = starts[state]  # [word, symbol]
            symbol = (rank[:, None] >= mine[:, 1:]).sum(1)
            rank -= mine[np.arange(len(rank)), symbol]
            words[:, position] = symbol
            state = self.table[state, symbol]
        return words

    def sample(self, count: int, length: int, random: np.random.Generator) -> Words:
        """Members of one length, exactly uniform and independent."""
        total = self._some(length)
        return self.words(random.integers(total, size=count), length)

    def sample_distinct(self, count: int, length: int, random: np.random.Generator) -> Words:
        """Different members of one length, every set of ``count`` as likely as any other."""
        total = self._some(length)
        if count > total:
            raise Refusal(f'"{self.name}" has {total} words of length {length}, not {count}; ask for fewer.')
        return self.words(random.choice(total, count, replace=False, shuffle=False), length)

    def _some(self, length: int) -> int:
        total = min(self.count(length), MOST_WORDS)  # `words` refuses what is larger
        if not total:
            raise Refusal(f'"{self.name}" has no words of length {length}; choose another length.')
        return total


def encode(strings: list[str], alphabet: str, width: int | None = None) -> Words:
    """Strings as padded rows, as wide as the longest unless told."""
    number = {symbol: i for i, symbol in enumerate(alphabet)}
    width = max(map(len, strings), default=0) if width is None else width
    words = np.full((len(strings), width), len(alphabet), dtype=np.int64)
    for row, string in zip(words, strings, strict=True):
        row[: len(string)] = [number[symbol] for symbol in string]
    return words


def decode(words: Words, alphabet: str) -> list[str]:
    letters = np.array([*alphabet, ""])
    return ["".join(row) for row in letters[words]]


def padded(words: Words, width: int, symbols: int) -> Int[ndarray, "word width"]:
    """The same words in rows of ``width`` positions."""
    return np.pad(words, ((0, 0), (0, width - words.shape[1])), constant_values=symbols)


def canonical(
    name: str, alphabet: str, table: Int[ndarray, "state symbol"], accepting: Bool[ndarray, " state"], start: int
) -> Language:
    """The automaton with its states numbered in the order in which they are reached.

    Two minimal automata over one alphabet are the same language exactly if these tables are equal.
    """
    order, place = [start], {start: 0}
    for state in order:  # grows while it is read
        for target in table[state].tolist():
            if target not in place:
                place[target] = len(order)
                order.append(target)
    renamed = [[place[target] for target in table[state].tolist()] for state in order]
    return Language(name, alphabet, np.array(renamed, dtype=np.int64), accepting[order])
