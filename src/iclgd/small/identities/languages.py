"""Regular languages: counts that are exact, words that are uniform, membership as regular expressions have it."""

import re

import numpy as np
from scipy.stats import chisquare

from iclgd.small.identities.drawn import source
from iclgd.small.languages.automaton import decode
from iclgd.small.languages.expressions import BUILT_IN, language
from iclgd.small.languages.prepare import Data, prepare

REPORT = tuple(BUILT_IN[f"report-{i}"] for i in (1, 2, 3))
DRAWN = 3000


def words_up_to_12(seed: int) -> dict[str, float]:
    """How many words of at most 12 symbols the three languages of the report have."""
    return {expression: float(sum(language(expression).count(n) for n in range(13))) for expression in REPORT}


def words_are_uniform(seed: int) -> dict[str, float]:
    """The least p of χ² tests that drawn words are uniform among those of their length, times the number of tests."""
    random = np.random.default_rng([seed, 40])
    least, tests = 1.0, 0
    for expression in REPORT:
        found = language(expression)
        for length in (6, 8, 12):
            count = found.count(length)
            if count > 1:
                words = found.sample(DRAWN, length, random)
                _, times = np.unique(words, axis=0, return_counts=True)
                seen = np.zeros(count)
                seen[: len(times)] = times
                least, tests = min(least, float(chisquare(seen).pvalue)), tests + 1
    return {"p": min(1.0, least * tests)}


def membership_as_re(seed: int) -> dict[str, float]:
    """Of random strings and members of the three languages: how often the automaton and `re` disagree."""
    random = np.random.default_rng([seed, 41])
    wrong = 0
    for expression in REPORT:
        found = language(expression, "abc")
        for length in (3, 6, 9):
            some = random.integers(0, found.symbols, (200, length))
            words = np.concatenate([some, found.sample(100, length, random)]) if found.count(length) else some
            by_re = [bool(re.fullmatch(expression, word)) for word in decode(words, found.alphabet)]
            wrong += int((found.accepts(words) != np.array(by_re)).sum())
    return {"disagree": float(wrong)}


def labels_are_plus_minus_one(seed: int) -> dict[str, float]:
    """Labels of episodes of words: the smallest and the largest size, and the share of members among demonstrations."""
    data = prepare(Data.of({"language": "a*bc*", "encoder": "pca", "seeds": (seed,)}))
    ((train, _),) = data.tasks(20, True)
    drawn = train.draw(500, source(seed))
    size = drawn.y.abs()
    half = (drawn.y > 0).double().mean()
    return {"smallest": float(size.min()), "largest": float(size.max()), "positive": float(half)}
