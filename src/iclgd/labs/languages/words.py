"""Words to look at: samples of a language or of its complement, and the built-in languages."""

import numpy as np

from iclgd.lab import Cell, Lab, LabSpec
from iclgd.labs.languages.drawn import automaton
from iclgd.report.numbers import counted
from iclgd.report.page import Page, Section, Table
from iclgd.results import Result
from iclgd.small.languages.automaton import Language, decode
from iclgd.small.languages.expressions import BUILT_IN, check_alphabet, language
from iclgd.small.languages.regbench import LETTERS, Chain, random_chain
from iclgd.spec import Seed, option
from iclgd.study import Study
from iclgd.tools import Tools


class SampleSpec(LabSpec):
    """Words of one length, one a line.

    Words of a language are exactly uniform among all of that length. The language `random` is a random automaton; its
    words come as often as the automaton emits them, and those of its complement are uniform.
    """

    language: str = option("a*bc*", "Built-in name or expression; random: a random automaton.")
    alphabet: str = option("", "More symbols than the expression has.")
    length: int = option(8, "Symbols in a word.", ge=1, le=40)
    count: int = option(10, "Words to draw.", ge=1, le=1_000_000)
    complement: bool = option(False, "Words that are not in the language.")
    seed: Seed = option(0, "Which draw.")

    def cells(self) -> list[Cell]:
        return [Cell("languages sample", self)]


def sample(cell: Cell, _tools: Tools) -> Result:
    spec = cell.spec
    assert isinstance(spec, SampleSpec)
    random = np.random.default_rng(spec.seed)
    source: Chain | Language
    if spec.language == "random":
        source = random_chain(check_alphabet(spec.alphabet or LETTERS), random)
        found = source.language("random")
    else:
        source = found = language(spec.language, spec.alphabet)
    if spec.complement:
        source = found = found.complement()
    words = decode(source.sample(spec.count, spec.length, random), found.alphabet)
    return Result({"words": words, "alphabet": found.alphabet, "of": found.count(spec.length)})


def sample_page(study: Study) -> Page:
    spec = study.spec
    assert isinstance(spec, SampleSpec)
    (words,), (of,), (alphabet,) = (study.facts(name) for name in ("words", "of", "alphabet"))
    name = f"not {spec.language}" if spec.complement else spec.language
    emitted = spec.language == "random" and not spec.complement
    how = "as often as the automaton emits them" if emitted else "each as likely as any other"
    answer = f"{counted(of, 'word')} of length {spec.length} over {alphabet}; {counted(len(words), 'draw')}, {how}."
    listed = Section("Words", table=Table([""], [[word] for word in words]), brief=True)
    shown = [] if spec.language == "random" else automaton(_asked(spec), words[:3])
    return Page("Words of a language", f"{name} · seed {spec.seed}", answer, [listed, *shown])


def _asked(spec: SampleSpec) -> Language:
    found = language(spec.language, spec.alphabet)
    return found.complement() if spec.complement else found


class ListSpec(LabSpec):
    """The built-in languages, their automata, and how many words they have."""

    max_length: int = option(12, "Longest word to count.", ge=1, le=40)

    def cells(self) -> list[Cell]:
        return [Cell("languages list", self)]


def list_languages(cell: Cell, _tools: Tools) -> Result:
    spec = cell.spec
    assert isinstance(spec, ListSpec)
    rows = []
    for name, expression in BUILT_IN.items():
        found = language(name)
        words = sum(found.count(length) for length in range(spec.max_length + 1))
        rows.append([name, expression, found.alphabet, str(len(found.table)), str(words)])
    return Result({"languages": rows})


def list_page(study: Study) -> Page:
    spec = study.spec
    assert isinstance(spec, ListSpec)
    (rows,) = study.facts("languages")
    header = ["name", "expression", "alphabet", "states", f"words up to length {spec.max_length}"]
    listed = Section("Languages", table=Table(header, rows), brief=True)
    return Page("Built-in languages", counted(len(rows), "language"), "", [listed])


SAMPLE = Lab(
    SampleSpec,
    sample,
    sample_page,
    quick=True,
    examples="  iclgd languages sample --language 'a*bc*' --length 5 --count 20\n",
)
LIST = Lab(ListSpec, list_languages, list_page, quick=True)
