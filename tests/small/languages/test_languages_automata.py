"""Languages: membership, counts, uniform words, random automata."""

import itertools
import random as python_random
import re
import time

import numpy as np
import pytest
from scipy.stats import chisquare

from iclgd.errors import Refusal
from iclgd.small.languages.automaton import decode, encode
from iclgd.small.languages.expressions import BUILT_IN, MOST_STATES, language
from iclgd.small.languages.regbench import random_chain, random_languages


def every_string(alphabet, longest):
    return ["".join(word) for n in range(longest + 1) for word in itertools.product(alphabet, repeat=n)]


def same(a, b):
    """Tables are canonical: equal exactly if the languages are."""
    return a.alphabet == b.alphabet and np.array_equal(a.table, b.table) and np.array_equal(a.accepting, b.accepting)


def probability(chain, word):
    state, value = 0, 1.0
    for symbol in word:
        value *= chain.probabilities[state, symbol]
        state = chain.table[state, symbol]
    return value


def agrees_with_re(found, expression, longest=8):
    strings = every_string(found.alphabet, longest)
    expected = [re.fullmatch(expression, string) is not None for string in strings]
    return found.accepts(encode(strings, found.alphabet)).tolist() == expected


@pytest.mark.parametrize("name", list(BUILT_IN))
def test_a_built_in_language_is_what_python_reads(name):
    found = language(name)
    assert agrees_with_re(found, BUILT_IN[name])
    assert found.alphabet == ("01" if name.startswith("tomita") else "abc")


def odd_runs(s):
    return re.search(r"(?<!1)1(11)*0(00)*(?!0)", s) is not None


TOMITA = {
    1: lambda s: "0" not in s,
    2: lambda s: s == "10" * (len(s) // 2),
    3: lambda s: not odd_runs(s),
    4: lambda s: "000" not in s,
    5: lambda s: s.count("0") % 2 == 0 and s.count("1") % 2 == 0,
    6: lambda s: (s.count("0") - s.count("1")) % 3 == 0,
    7: lambda s: sum(a != b for a, b in itertools.pairwise("0" + s)) <= 3,  # 0s, 1s, 0s, 1s
}


@pytest.mark.parametrize("number", range(1, 8))
def test_tomitas_languages_are_as_he_describes_them(number):
    strings = every_string("01", 10)
    found = language(f"tomita-{number}").accepts(encode(strings, "01"))
    assert found.tolist() == [TOMITA[number](s) for s in strings]


def random_expression(draw, depth):
    """Any expression of the syntax that is promised."""
    if depth == 0:
        return draw.choice(["a", "b", "c", "a", "b", "()", ".", "[ab]", "[^a]", "[a-c]"])

    def inner():
        return random_expression(draw, depth - 1)

    return draw.choice(
        [
            lambda: f"({inner()})*",
            lambda: f"({inner()})+",
            lambda: f"({inner()})?",
            lambda: f"({inner()}){{{draw.randint(0, 2)},{draw.randint(2, 3)}}}",
            lambda: f"({inner()}){{{draw.randint(1, 2)},}}",
            lambda: f"({inner()}){{,2}}",
            lambda: f"({inner()}){{{draw.randint(1, 3)}}}",
            lambda: inner() + inner(),
            lambda: f"({inner()}|{inner()})",
            lambda: f"{inner()}|{inner()}",
        ]
    )()


def test_two_hundred_random_expressions_are_what_python_reads():
    draw = python_random.Random(0)
    sizes = set()
    for _ in range(200):
        expression = random_expression(draw, draw.choice([1, 2, 3]))
        found = language(expression, "ab" if "c" not in expression else "abc")
        sizes.add(len(found.table))
        assert agrees_with_re(found, expression), expression
    assert max(sizes) > 8  # they are not all trivial


@pytest.mark.parametrize("name", [*BUILT_IN, "(a|b)*abb", "a{2,4}b?"])
def test_counts_equal_brute_force_and_all_ranks_are_all_words(name):
    found = language(name)
    for n in range(8):
        members = [
            s
            for s in map("".join, itertools.product(found.alphabet, repeat=n))
            if found.accepts(encode([s], found.alphabet))[0]
        ]
        assert found.count(n) == len(members)
        assert decode(found.words(np.arange(len(members)), n), found.alphabet) == members
        assert found.complement().count(n) == found.symbols**n - len(members)


def test_counts_are_exact_where_machine_integers_end():
    assert language("(a|b)*").count(200) == 2**200
    with pytest.raises(Refusal, match="shorter length"):
        language("(a|b)*").sample(1, 200, np.random.default_rng(0))


@pytest.mark.parametrize("name, length", [("report-1", 9), ("report-2", 10), ("report-3", 12), ("tomita-3", 8)])
@pytest.mark.parametrize("complement", [False, True])
def test_sampling_is_uniform(name, length, complement):
    found = language(name)
    found, length = (found.complement(), 5) if complement else (found, length)
    total = found.count(length)
    words = decode(found.sample(400 * total, length, np.random.default_rng(1)), found.alphabet)
    counts = [words.count(word) for word in decode(found.words(np.arange(total), length), found.alphabet)]
    assert sum(counts) == len(words)  # nothing but members
    assert chisquare(counts).pvalue > 1e-3


def test_distinct_words_are_distinct_and_every_word_is_as_likely():
    found, random = language("report-2"), np.random.default_rng(0)
    seen = np.zeros(64)
    for _ in range(500):
        words = decode(found.sample_distinct(20, 12, random), found.alphabet)
        assert len(set(words)) == 20
        seen[[int("".join("01"["ab".index(c)] for c in word[::2]), 2) for word in words]] += 1
    assert chisquare(seen).pvalue > 1e-3
    with pytest.raises(Refusal, match="has 64 words of length 12, not 65"):
        found.sample_distinct(65, 12, random)


def test_a_hundred_thousand_words_take_well_under_a_second():
    found, random = language("report-2"), np.random.default_rng(0)
    found.sample(10, 12, random)
    times = []
    for _ in range(3):
        start = time.perf_counter()
        found.sample(100_000, 12, random)
        times.append(time.perf_counter() - start)
    assert min(times) < 0.6


def test_automata_are_minimal_and_equal_for_equal_languages():
    assert same(language("(a|b)*", "ab"), language("(a*b*)*"))
    assert not same(language("a*b"), language("a*b*"))
    assert [len(language(name).table) for name in ("report-1", "report-2", "report-3")] == [3, 3, 4]


@pytest.mark.parametrize(
    "expression, sentence",
    [
        ("a*(", "not a regular expression"),
        ("*a", "not a regular expression"),
        ("[c-a]", "runs backwards"),
        ("a|", "empty word as"),
        ("a*+", "repeats a repetition"),
        ("ba{0}", "no times"),
        ("ba{0,0}", "no times"),
        ("a{}", "no times"),
        ("a{\u0663}", "has"),
        ("a\nb", "one line"),
        ("a&b", "has '&' in it"),
        ("a b", "has ' ' in it"),
        ("é", "has 'é' in it"),
        ("a^b", "does not open a class"),
        ("(?i)a", "empty word as"),
        ("", "names no symbol"),
        ("[a-zA-Z]*", "an alphabet of 52 symbols is too large"),
        ("(a|b)*a(a|b){20}", f"more than {MOST_STATES} states"),
        ("((a{30}){30}){30}", "27000 copies"),
        ("tomita-8", "Did you mean tomita-"),
    ],
)
def test_an_expression_that_cannot_be_read_gets_a_sentence(expression, sentence):
    with pytest.raises(Refusal, match=re.escape(sentence)):
        language(expression)


def test_random_automata_are_like_regbenchs():
    random = np.random.default_rng(0)
    for _ in range(50):
        chain = random_chain("abcdef", random)
        edges = chain.table >= 0
        assert 4 <= len(chain.table) <= 12
        assert edges.sum(1).min() >= 1
        assert edges.sum(1).max() <= 3
        assert not (chain.table == np.arange(len(chain.table))[:, None]).any()  # no loops
        found = chain.language("one")
        words = chain.sample(50, 9, random)
        assert found.accepts(words).all()
        assert found.accepts(words[:, :4]).all()  # every state accepts, so prefixes are words


def test_chains_emit_words_as_often_as_they_say():
    random = np.random.default_rng(3)
    chains = (random_chain("abc", random, (6, 8)) for _ in range(100))
    chain = next(chain for chain in chains if chain.language("one").count(5) > 20)
    found = chain.language("one")
    every = found.words(np.arange(found.count(5)), 5)
    expected = np.array([probability(chain, word) for word in every])
    assert expected.sum() == pytest.approx(1)
    assert expected.min() < expected.max()
    words = decode(chain.sample(20_000, 5, random), "abc")
    counts = [words.count(word) for word in decode(every, "abc")]
    assert chisquare(counts, 20_000 * expected).pvalue > 1e-3


def test_random_languages_never_repeat_and_run_out_with_a_sentence():
    found = list(itertools.islice(random_languages("abc", np.random.default_rng(0), (3, 4)), 60))
    assert not any(same(a, b) for a, b in itertools.combinations(found, 2))
    with pytest.raises(Refusal, match="allow more states or symbols"):
        list(random_languages("a", np.random.default_rng(0), (2, 2)))


def test_a_class_of_one_symbol_is_refused_with_what_the_report_means_by_it():
    with pytest.raises(Refusal, match=r'"\(ab\[c\]\)\*" has \[c\], a class of one symbol; write c\? if'):
        language("(ab[c])*")
    assert agrees_with_re(language("(ab[ca])*"), "(ab[ca])*", 5)
