"""What a trace shows: accuracy, label probabilities, and how far each layer's attention output moves."""

import numpy as np
import torch
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from iclgd.labs.trace.lab import TraceSpec
from iclgd.looked import ATTENTION, CONTRIBUTION, OWN_ATTENTION
from iclgd.metrics.differences import difference
from iclgd.metrics.estimates import COSINE, estimates
from iclgd.metrics.statistics import share_interval
from iclgd.metrics.updates import update_size
from iclgd.prompts import POSITIONS, WHERE
from iclgd.report import explorer
from iclgd.report.charts import OWN, Looks, Series, lines
from iclgd.report.figures import COLOURS, band, figure, legend, styled
from iclgd.report.numbers import Number, counted, number
from iclgd.report.page import Drawing, Entry, Page, Section, Table
from iclgd.report.widgets import Widget
from iclgd.study import Study

SHOWN = 20  # queries on the page
PARTS = ("value", "low", "high")
SIZE = "‖h_icl − h_zero‖ / ‖h_zero‖"


def page(study: Study) -> Page:
    ((_, result),) = study.found()
    facts, spec = result.facts, study.spec
    assert isinstance(spec, TraceSpec)
    sizes = {where: _sizes(study, where) for where in POSITIONS}
    dropped = f" ({facts['demonstrations_dropped']} dropped to fit)" if facts["demonstrations_dropped"] else ""
    drawn = "" if str(spec.task).endswith(".json") else f"seed {spec.seed} · "
    what = (
        f"{spec.model_title} · {facts['task']} · k = {facts['demonstrations']}{dropped} · {drawn}"
        f"{counted(facts['queries'], 'query')} · {spec.dtype}"
    )
    shown = min(SHOWN, facts["queries"])
    text = "How far each attention layer's output moves when the demonstrations are read, relative to its length "
    sections = [
        Section("Accuracy", "95% intervals over queries; label probabilities are means.", _learners(study), brief=True),
        *([explorer.section(lambda: [_episode(study)])] if "looked" in facts else []),
        Section(
            "Updates",
            f"{text}without them, {SIZE}; means over queries with 95% intervals.",
            _layers(sizes),
            Drawing("update-size", lambda: _drawing(sizes)),
            brief=True,
            widget=_chart(sizes),
        ),
        Section("Queries", f"The first {shown} of {facts['queries']}.", _queries(study)),
    ]
    return Page(
        "What reading demonstrations changes",
        what,
        _answer(study, sizes),
        sections,
        files={"episode.json": facts["episode"]},
    )


def _episode(study: Study) -> explorer.Episode:
    """The first queries, as the explorer shows them."""
    ((_, result),) = study.found()

    def values(quantity: str, *who: str) -> dict[str, np.ndarray]:
        found = {str(one.labels["learner"]): one.values for one in study.arrays(quantity=quantity)}
        return {learner: found[learner] for learner in who if learner in found}

    both = ("zero-shot", "icl")
    attention, contribution = (values(what, "icl").get("icl") for what in (ATTENTION, CONTRIBUTION))
    texts, labels, scores = result.facts["looked"], result.facts["labels"], values("scores", *both)
    return explorer.Episode(
        result.facts["task"], texts, labels, scores, values(OWN_ATTENTION, *both), attention, contribution
    )


def _scores(study: Study, learner: str) -> np.ndarray:
    (found,) = study.arrays(quantity="scores", learner=learner)
    return found.values


def _right(study: Study, learner: str) -> np.ndarray:
    return _scores(study, learner).argmax(-1) == np.array(study.facts("answers")[0])


def _answer(study: Study, sizes: dict[str, list[Number]]) -> str:
    """Accuracy before and after, whether the same queries tell them apart, and the layer that moves most."""
    before, after = (_right(study, learner) for learner in ("zero-shot", "icl"))
    gap = difference(after[None], before[None], COSINE).estimate  # one draw: over queries
    was, became = (number(right.mean(), 2) for right in (before, after))
    apart = "" if gap.low > 0 or gap.high < 0 else ", which these queries do not tell apart"
    moved = f"moves accuracy from {was} to {became}{apart}"
    if was == became:
        moved = f"leaves accuracy of these queries at {was}"
    layers = sizes["prompt"]
    most = max(range(len(layers)), key=lambda layer: layers[layer].value)
    return (
        f"Reading {moved}; at the prompt's last token it moves layer {most} most, by {number(layers[most].value, 2)} "
        "of its length."
    )


def _learners(study: Study) -> Table:
    labels = study.facts("labels")[0]
    rows: list[list[Entry]] = []
    for learner in ("zero-shot", "icl"):
        right = _right(study, learner)
        means = torch.from_numpy(_scores(study, learner)).softmax(-1).mean(0).tolist()
        rows.append(
            [
                learner,
                Number(right.mean(), *share_interval(int(right.sum()), len(right)), 2),
                *(Number(p, digits=2) for p in means),
            ]
        )
    return Table(["", "accuracy", *(f"p({word})" for word in labels)], rows)


def _sizes(study: Study, position: str) -> list[Number]:
    """Mean update size and its interval over queries, layer by layer."""
    outputs = [
        torch.from_numpy(study.arrays(quantity="outputs", learner=learner)[0].at(position=position).values)
        for learner in ("zero-shot", "icl")
    ]
    found = estimates(update_size(*outputs).numpy()[None])  # one draw: intervals over queries
    return [Number(one.mean, one.low, one.high, 2) for one in found]


def _layers(sizes: dict[str, list[Number]]) -> Table:
    rows: list[list[Entry]] = [
        [str(layer), *(column[layer] for column in sizes.values())] for layer in range(len(sizes["prompt"]))
    ]
    return Table(["layer", *(WHERE[position] for position in sizes)], rows)


def _queries(study: Study) -> Table:
    ((_, result),) = study.found()
    labels, answers = result.facts["labels"], result.facts["answers"]
    found = [_scores(study, learner).argmax(-1) for learner in ("zero-shot", "icl")]
    rows = [
        [text, labels[right], labels[zero], labels[icl]]
        for text, right, zero, icl in zip(result.facts["queries_text"], answers, *found, strict=True)
    ]
    return Table(["query", "right answer", "zero-shot", "icl"], rows[:SHOWN])


def _chart(sizes: dict[str, list[Number]]) -> Widget:
    series = [
        Series({"name": WHERE[where], "role": OWN}, *([getattr(n, part) for n in column] for part in PARTS))
        for where, column in sizes.items()
    ]
    looks = Looks(colour="name", x="layer")
    return lines(lambda: series, range(len(sizes["prompt"])), looks, "Size of the update by layer, with 95% intervals.")


@styled
def _drawing(sizes: dict[str, list[Number]]) -> Figure:
    made, grid = figure(width=8.0, height=3.4)
    axes, size = grid[0, 0], r"$\Vert h_\mathrm{icl} - h_\mathrm{zero}\Vert\, /\, \Vert h_\mathrm{zero}\Vert$"
    for colour, (position, column) in zip(COLOURS, sizes.items(), strict=False):
        middle, low, high = ([getattr(one, name) for one in column] for name in PARTS)
        band(axes, range(len(column)), middle, low, high, colour, WHERE[position])
    axes.set(xlabel="layer", ylabel=size, title="Size of the update by layer", ylim=(0, None))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    legend(made, [axes])
    return made
