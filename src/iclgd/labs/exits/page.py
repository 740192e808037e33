"""The page of `exits`: what every layer would say, beside what the model says."""

from iclgd.labs.exits.lab import ExitsSpec
from iclgd.metrics.statistics import share_interval
from iclgd.report.charts import OWN, Looks, Series, lines
from iclgd.report.numbers import Number, counted
from iclgd.report.page import Entry, Page, Section, Table
from iclgd.report.widgets import Widget
from iclgd.study import Study

TITLES = {"agrees": "agrees", "right": "accuracy"}
TOLD = (
    "agrees: the likeliest next token is the model's own. accuracy: among the label words. Shares with 95% intervals "
    "over queries; one draw of demonstrations."
)
Shares = dict[tuple[str, str], list[Number]]  # by learner and quantity, layer by layer


def page(study: Study) -> Page:
    spec = study.spec
    assert isinstance(spec, ExitsSpec)
    (facts,) = [result.facts for _, result in study.found()]
    found = shares(study)
    reading = [one.value for one in found["icl", "agrees"]]
    last = len(reading) - 1
    first = next((layer for layer in range(last) if min(reading[layer:]) >= 0.5), last)
    where, asked = f"layer {first} on, of 0 to {last}", counted(facts["queries"], "query")
    if first == last:  # whose answer is the model's
        where = f"the last layer on alone ({last})"
    answer = f"After reading, a layer says what the model says for half or more of {asked} from {where}."
    what = f"{spec.model_title} · {facts['task']} · k = {spec.k} · {asked} · {spec.dtype}"
    section = Section("By layer", TOLD, by_layer(found), brief=True)
    return Page("Early exits", what, answer, [section], picture=drawn(found))


def shares(study: Study) -> Shares:
    found: Shares = {}
    for learner in ("zero-shot", "icl"):
        for quantity in TITLES:
            (one,) = study.arrays(learner=learner, quantity=quantity)
            count, of = one.values.sum(0), len(one.values)
            found[learner, quantity] = [Number(n / of, *share_interval(int(n), of), 2) for n in count.tolist()]
    return found


def by_layer(found: Shares) -> Table:
    rows: list[list[Entry]] = [[str(layer), *row] for layer, row in enumerate(zip(*found.values(), strict=True))]
    return Table(["layer", *(f"{learner}, {TITLES[quantity]}" for learner, quantity in found)], rows)


def drawn(found: Shares) -> Widget:
    series = [
        Series(
            {"panel": TITLES[quantity], "name": learner, "role": OWN},
            *([getattr(one, part) for one in values] for part in ("value", "low", "high")),
        )
        for (learner, quantity), values in found.items()
    ]
    points = range(len(found["icl", "agrees"]))
    return lines(lambda: series, points, Looks(colour="name", x="layer"), "Agreement and accuracy by layer.")
