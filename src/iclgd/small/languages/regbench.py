"""Random automata in the manner of RegBench (Akyürek 2024): few edges from every state, no loops, all states accepting.

Departures: the number of edges is 1 to ``edges`` inclusive (their configuration says 4, their code draws at most 3, our
default); the alphabet and the number of states are small, so that words of a dozen symbols say something.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from automata.fa.dfa import DFA
from jaxtyping import Float, Int
from numpy import ndarray

from iclgd.errors import Refusal
from iclgd.small.languages.automaton import Language, Words
from iclgd.small.languages.expressions import from_dfa

LETTERS = "abcd"  # unless others are asked for


@dataclass(frozen=True, eq=False)
class Chain:
    """A probabilistic automaton: every state picks one of its edges, each as likely as the others; it never stops."""

    alphabet: str
    table: Int[ndarray, "state symbol"]
    """Where each symbol leads; −1 where the state has no such edge."""

    @property
    def probabilities(self) -> Float[ndarray, "state symbol"]:
        edges = self.table >= 0
        return edges / edges.sum(1, keepdims=True)

    def language(self, name: str) -> Language:
        """The words that the chain can emit, as a minimal automaton: every state accepts, a missing edge does not."""
        transitions = {
            state: {symbol: target for symbol, target in zip(self.alphabet, row, strict=True) if target >= 0}
            for state, row in enumerate(self.table.tolist())
        }
        dfa = DFA(
            states=set(transitions),
            input_symbols=set(self.alphabet),
            transitions=transitions,
            initial_state=0,
            final_states=set(transitions),
            allow_partial=True,
        )
        return from_dfa(name, self.alphabet, dfa)

    def sample(self, count: int, length: int, random: np.random.Generator) -> Words:
        """Words of one length as the chain emits them: not uniform, unless every state has as many edges."""
        shares = self.probabilities.cumsum(1)
        state = np.zeros(count, dtype=np.int64)
        words = np.empty((count, length), dtype=np.int64)
        for position in range(length):
            drawn = random.random(count)[:, None]
            words[:, position] = (drawn >= shares[state][:, :-1]).sum(1)
            state = self.table[state, words[:, position]]
        return words


def random_chain(
    alphabet: str, random: np.random.Generator, states: tuple[int, int] = (4, 12), edges: int = 3
) -> Chain:
    """As many states as drawn from ``states``, each with 1 to ``edges`` edges to different other states."""
    low, high = states
    if low < 2 or high < low:
        raise Refusal(
            f"a random automaton needs at least two states and a range that runs upwards, not {low} to {high}."
        )
    size = int(random.integers(low, high + 1))
    most = min(edges, len(alphabet), size - 1)
    if most < 1:
        raise Refusal("a random automaton needs at least one symbol and one edge from every state.")
    table = np.full((size, len(alphabet)), -1, dtype=np.int64)
    for state in range(size):
        out = int(random.integers(1, most + 1))
        others = np.delete(np.arange(size), state)
        table[state, random.choice(len(alphabet), out, replace=False)] = random.choice(others, out, replace=False)
    return Chain(alphabet, table)


def random_languages(
    alphabet: str, random: np.random.Generator, states: tuple[int, int] = (4, 12), edges: int = 3
) -> Iterator[Language]:
    """Languages without end, no two of them the same: what is held out was not seen under another name."""
    found: set[tuple[bytes, bytes]] = set()
    repeats = 0
    while repeats < 1000:
        new = random_chain(alphabet, random, states, edges).language(f"random-{len(found)}")
        tables = new.table.tobytes(), new.accepting.tobytes()  # canonical: equal exactly if the language is
        if tables in found:
            repeats += 1
            continue
        repeats = 0
        found.add(tables)
        yield new
    raise Refusal(f"there are only about {len(found)} random automata of this kind; allow more states or symbols.")
