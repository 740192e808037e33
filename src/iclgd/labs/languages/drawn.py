"""The automaton of a language, drawn on its page, through which words that are typed in take their path."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from iclgd.report.page import Section
from iclgd.report.widgets import CHARTS, Widget
from iclgd.small.languages.automaton import Language

AUTOMATON = Path(__file__).parent / "automaton.js"
MOST_STATES = 16  # that a drawing can be read with
TOLD = (
    "States of the smallest complete automaton: it starts in 0, a double circle accepts, and arrows to a state without "
    "a way out are faint. Type words, separated by spaces: the last one's path is drawn."
)
ABOUT = "The automaton of the language, and a field to type words into."


def automaton(language: Language, words: Sequence[str]) -> list[Section]:
    """Nothing for an automaton with more states than a drawing can show."""
    if len(language.table) > MOST_STATES:
        return []

    def data() -> dict[str, Any]:
        table, accepting = language.table.tolist(), language.accepting.tolist()
        return {"alphabet": language.alphabet, "table": table, "accepting": accepting, "words": list(words)}

    return [Section("The automaton", TOLD, widget=Widget("automaton", data, ABOUT, (*CHARTS, AUTOMATON)))]
