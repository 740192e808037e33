"""Words typed into the page, and what the trained layer and every learner answer: all that the page computes with."""

from pathlib import Path
from typing import Any

import numpy as np

from iclgd.labs.languages.drawn import AUTOMATON
from iclgd.labs.languages.measures import TRAINED
from iclgd.labs.languages.reading import Reading
from iclgd.report.colours import slots
from iclgd.report.heat import HEAT, rounded
from iclgd.report.page import Section
from iclgd.report.widgets import CHARTS, WEB, Widget
from iclgd.results import Result
from iclgd.small.languages.expressions import language

SCRIPTS = (*CHARTS, WEB / "regression.js", HEAT, AUTOMATON, Path(__file__).parent / "answers.js")
TOLD = (
    "Demonstrations of a test episode, and words to ask about; both can be typed over. What the layer of a seed and "
    "every learner answer is computed here, from their weights. Turn every label: what reads labels turns its answers, "
    "what has the language in its weights does not."
)
ABOUT = "Demonstrations and words to type, and the answers of the trained layer and of every learner."


def asked(reading: Reading) -> list[Section]:
    """For one layer on the codes of one language, whose encoder a page can compute."""
    first, one = reading.results[0], reading.setting
    known = first.select(part="kept", encoder="matrix") and reading.matrix(TRAINED, "qk").size
    if one.language == "random" or not known:
        return []
    return [Section("Ask the layer", TOLD, widget=Widget("membership", lambda: _data(reading), ABOUT, SCRIPTS))]


def _data(reading: Reading) -> dict[str, Any]:
    found = language(reading.setting.language, reading.setting.alphabet)
    seeds = {str(seed): _seed(result) for seed, result in zip(reading.seeds, reading.results, strict=True)}
    return {
        "alphabet": found.alphabet,
        "table": found.table.tolist(),
        "accepting": found.accepting.tolist(),
        "width": reading.setting.max_length,
        "words": [*reading.facts["members"][:2], *reading.facts["others"][:2]],
        "slots": slots([TRAINED, *reading.learners]),
        "seeds": seeds,
    }


def _seed(result: Result) -> dict[str, Any]:
    kept = {str(one.labels["quantity"]): _plain(one.values) for one in result.select(part="kept", encoder=None)}
    encoder = {str(one.labels["encoder"]): _plain(one.values) for one in result.select(part="kept", quantity=None)}
    weights: dict[str, dict[str, Any]] = {}
    for one in result.select(part="weights", quantity=None):
        weights.setdefault(str(one.labels["learner"]), {})[str(one.labels["matrix"])] = _plain(one.values)
    return {"episode": result.facts["episode"], "kept": kept, "encoder": encoder, "weights": weights}


def _plain(values: np.ndarray) -> Any:
    """A single number as it is, to the last digit; arrays to six digits of their largest entry."""
    return float(values) if np.ndim(values) == 0 else rounded(values, digits=6)
