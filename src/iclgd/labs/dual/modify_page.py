"""The page of `dual modify`: a pretrained model with its attention modified, beside the same model as it is."""

import numpy as np
from scipy.special import log_softmax

from iclgd.labs.dual.estimates import direction, mean, share
from iclgd.labs.dual.modifications import PLAIN
from iclgd.labs.dual.spec import ModifySpec
from iclgd.report.charts import picture
from iclgd.report.numbers import Number, counted, number
from iclgd.report.page import Page, Section, Table
from iclgd.study import Study

SAYS = (
    "Only the query's tokens are read with modified attention; p is among the label words. Intervals are over queries "
    "of one draw of demonstrations, Wilson's for accuracy and Student's t for differences: 1 seed, no interval over "
    "draws. Differences of all modifications hold at once with 95%."
)
MINUS = "minus plain, same queries"
ONE_DRAW = "one draw says nothing of others"


def page(study: Study) -> Page:
    scores = {str(one.labels["modification"]): one.values for one in study.arrays(quantity="scores")}
    answers = study.arrays(quantity="answers")[0].values
    right = {
        name: log_softmax(values.astype(float), -1)[np.arange(len(answers)), answers] for name, values in scores.items()
    }
    others = [name for name in scores if name != PLAIN.label]
    less = {name: mean(right[name] - right[PLAIN.label], among=max(len(others), 1)) for name in others}
    rows = [
        [name, share(values.argmax(-1) == answers), Number(float(right[name].mean())), less.get(name, "")]
        for name, values in scores.items()
    ]
    assert isinstance(study.spec, ModifySpec)
    subtitle = study.spec.what(next(result.facts for _, result in study.found()), len(answers))
    table = Table(["attention", "accuracy", "log p of the right word", MINUS], rows)
    section = Section("Right answers", SAYS, table, brief=True)
    return Page("Modified attention, pretrained", subtitle, answer(less), [section], picture=picture(table, MINUS))


def answer(less: dict[str, Number]) -> str:
    """Which modifications change log p of the right word by more than their interval."""
    if not less:
        return "Nothing is compared: give `modifications` beside plain."
    parts = []
    for sign, verb in ((1, "raise"), (-1, "lower")):
        named = [f"{name} ({number(one.value)})" for name, one in less.items() if direction(one) == sign]
        if named:
            parts.append(f"{' and '.join(named)} {verb}{'s' * (len(named) == 1)} log p of the right word")
    rest = sum(direction(one) == 0 for one in less.values())
    if not parts:
        none = f"none of {counted(rest, 'modification')} is shown to change log p of the right word"
        return f"With these demonstrations {none}; {ONE_DRAW}."
    left = [f"of the other {rest} no effect is shown"] if rest else []
    return f"With these demonstrations {'; '.join([*parts, *left, ONE_DRAW])}."
