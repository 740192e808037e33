"""Regular expressions to languages, by way of automata-lib; the built-in ones.

The syntax is what Python's `re` and automata-lib read alike: letters and digits, ( ) | * + ? {m,n} [abc] [a-c] [^a] and
the dot. What only one of them knows, or what they read differently, is refused.
"""

import re
from functools import lru_cache

import numpy as np
from automata.base.exceptions import AutomatonException, RegexException
from automata.fa.dfa import DFA
from automata.fa.nfa import NFA

from iclgd.errors import Refusal
from iclgd.registry import Registry
from iclgd.small.languages.automaton import Language, canonical

MOST_SYMBOLS = 26
MOST_STATES = 1000
MOST_COPIES = 64

BUILT_IN: Registry[str] = Registry("language", "iclgd languages list")
for _name, _expression in {
    # of the regular-languages report
    "report-1": "a*bc*",
    "report-2": "((a|b)c)*",
    "report-3": "(abc?)*",  # printed (ab[c])*, where the square brackets mean "or not"
    "tomita-1": "1*",
    "tomita-2": "(10)*",
    "tomita-3": "0*((11)+0+|1(11)*(00)+)*1*",  # an odd run of 1s is never followed by an odd run of 0s
    "tomita-4": "(1|01|001)*(0|00)?",  # no three 0s in a row
    "tomita-5": "(00|11|(01|10)(00|11)*(01|10))*",  # even numbers of 0s and of 1s
    "tomita-6": "(0(01)*(1|00)|1(10)*(0|11))*",  # as many 0s as 1s, modulo 3
    "tomita-7": "0*1*0*1*",
}.items():
    BUILT_IN.add(_name, _expression)


@lru_cache(maxsize=256)  # every cell of a study asks again
def language(text: str, alphabet: str = "") -> Language:
    """A built-in language by name, or the language of an expression.

    The alphabet is the symbols of the expression unless more are given; negatives and the dot are over all of it.
    """
    named = re.fullmatch(r"[a-z]+-\d+", text) is not None
    expression = BUILT_IN[text] if named else text
    if not expression.isprintable():
        raise Refusal("a regular expression is one line of letters, digits and operators; leave out what is not.")
    symbols = _alphabet(expression, alphabet or ("01" if text.startswith("tomita-") else ""))
    return from_dfa(text, symbols, _dfa(expression, symbols))


def from_dfa(name: str, alphabet: str, dfa: DFA) -> Language:
    """The tables of the minimal complete automaton."""
    dfa = dfa.to_complete().minify()
    states = list(dfa.states)
    place = {state: i for i, state in enumerate(states)}
    table = np.array([[place[dfa.transitions[state][symbol]] for symbol in alphabet] for state in states])
    accepting = np.array([state in dfa.final_states for state in states])
    return canonical(name, alphabet, table, accepting, place[dfa.initial_state])


def _alphabet(expression: str, given: str) -> str:
    """The symbols, in order; refuses what is not plain syntax."""
    odd = sorted(set(re.sub(r"\{[0-9]*,?[0-9]*\}", "", expression)) - set("()|*+?[]^-.") - set(_PLAIN))
    if odd:
        raise Refusal(
            f'"{expression}" has {odd[0]!r} in it; use letters, digits and ( ) | * + ? {{m,n}} [ ] and the dot.'
        )
    spread = re.sub(r"(\w)-(\w)", lambda ends: _between(expression, *ends.groups()), expression)
    symbols = check_alphabet("".join(set(re.sub(r"\{[0-9]*,?[0-9]*\}", "", spread)) & set(_PLAIN)) + given)
    if not symbols:
        raise Refusal(f'"{expression}" names no symbol; write an expression such as a*bc*, or give `alphabet`.')
    return symbols


def check_alphabet(given: str) -> str:
    """The symbols, once each and in order; refuses what cannot be one, and too many."""
    strange = sorted(set(given) - set(_PLAIN))
    if strange:
        raise Refusal(f"{strange[0]!r} cannot be a symbol of the alphabet; use letters and digits.")
    symbols = "".join(sorted(set(given)))
    if len(symbols) > MOST_SYMBOLS:
        raise Refusal(f"an alphabet of {len(symbols)} symbols is too large; use at most {MOST_SYMBOLS}.")
    return symbols


_PLAIN = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def _between(expression: str, first: str, last: str) -> str:
    if first > last:
        raise Refusal(
            f'"{expression}" is no regular expression: the range {first}-{last} runs backwards; write {last}-{first}.'
        )
    return "".join(symbol for symbol in _PLAIN if first <= symbol <= last)


def _dfa(expression: str, alphabet: str) -> DFA:
    if re.search(r"[*+?}][*+?{]", expression):
        raise Refusal(f'"{expression}" repeats a repetition; put the inner one in brackets, as in (a*)+.')
    if re.search(r"\{,?\}|\{0*,?0*\}", expression):
        raise Refusal(f'"{expression}" repeats a part no times, which engines read differently; leave that part out.')
    if re.search(r"(?<!\[)\^", expression):
        raise Refusal(f'"{expression}" has a ^ that does not open a class such as [^a]; leave it out.')
    if alone := re.search(r"\[(\w)\]", expression):
        raise Refusal(
            f'"{expression}" has {alone[0]}, a class of one symbol; write {alone[1]}? if it may be left out, '
            f"as the regular-languages report means it, or {alone[1]} if not."
        )
    copies = 1
    for bound in re.findall(r"\{(\d*),?(\d*)\}", expression):
        copies *= max(1, *(int(number or 0) for number in bound))
    if copies > MOST_COPIES:
        raise Refusal(f'"{expression}" asks for {copies} copies of a part; ask for at most {MOST_COPIES} in all.')
    try:
        re.compile(expression)
        nfa = NFA.from_regex(expression, input_symbols=set(alphabet))
    except (re.error, OverflowError) as error:
        raise Refusal(f'"{expression}" is not a regular expression: {error}.') from None
    except (RegexException, AutomatonException, RecursionError):
        raise Refusal(
            f'"{expression}" leaves an operator without something to work on; write the empty word as ().'
        ) from None
    _bound(nfa, expression)
    return DFA.from_nfa(nfa)


def _bound(nfa: NFA, expression: str) -> None:
    """Refuse an expression whose automaton would be huge, before it is built."""
    plain = nfa.eliminate_lambda()
    seen = {frozenset({plain.initial_state})}
    waiting = list(seen)
    while waiting:
        states = waiting.pop()
        for symbol in plain.input_symbols:
            after = frozenset(t for state in states for t in plain.transitions.get(state, {}).get(symbol, ()))
            if after not in seen:
                seen.add(after)
                waiting.append(after)
        if len(seen) > MOST_STATES:
            raise Refusal(f'"{expression}" needs an automaton of more than {MOST_STATES} states; simplify it.')
