"""What one setting of the languages lab shows: whether labels are read, which learner is nearest, and the rest."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from iclgd.labs.languages.answers import asked
from iclgd.labs.languages.drawn import automaton
from iclgd.labs.languages.measures import BYPASS, TRAINED
from iclgd.labs.languages.reading import Reading, readings
from iclgd.labs.languages.spec import Setting
from iclgd.labs.languages.widgets import widget
from iclgd.metrics import estimates
from iclgd.metrics.crossed import Bounds
from iclgd.report.curves import TOLD as CURVES
from iclgd.report.found import Found
from iclgd.report.numbers import Number, counted
from iclgd.report.page import Drawing, Page, Section, Table
from iclgd.small.languages.expressions import language
from iclgd.study import Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INTERVALS = "Means over seeds with their 95% intervals, by Student's t, within what a quantity can be."
NO_INTERVAL = "1 seed: no interval over draws."
SHARE, DIFFERENCE, ABOVE = (0.0, 1.0), (-1.0, 1.0), (0.0, math.inf)
BOUNDS = {"accuracy": SHARE, "loss": ABOVE, "cosine": DIFFERENCE, "correlation": DIFFERENCE, "mse": ABOVE}
TINY = 1e-30  # a squared distance of zero has no logarithm
ALIKE = ("cosine", "correlation", "mse")  # to the trained layers, which have none themselves


def over_seeds(values: Sequence[float] | np.ndarray, bounds: Bounds = (-math.inf, math.inf)) -> Number:
    """The mean over seeds and Student's t interval, within the bounds of the quantity; no interval from one seed.

    Where both ends are known the spread shrinks towards them (`crossed.wilson`); merely cut off, intervals of an
    accuracy of .97 that varies by .03 would cover 89%, and of .99 by .015 80 to 84%: these cover 93 and 89.

    Seeds without a value (a cosine to what does not move) are left out and counted.
    """
    every = np.asarray(values, dtype=float)
    known = every[np.isfinite(every)]
    if not len(known):
        return Number(math.nan)
    note = "" if len(known) == len(every) else f"({len(known)} of {len(every)} seeds)"
    found = estimates.over_seeds(known, bounds if np.isfinite(bounds).all() else None)
    if not math.isfinite(found.low):
        return Number(found.mean, note=note)
    return Number(found.mean, max(bounds[0], found.low), min(bounds[1], found.high), note=note)


def number(reading: Reading, learner: str, quantity: str, shuffled: bool = False) -> Number:
    return over_seeds(reading.of(learner, quantity, shuffled), BOUNDS[quantity])


def difference(reading: Reading) -> Number:
    """How much accuracy the layers lose when labels are shuffled."""
    return over_seeds(reading.reads_labels(), DIFFERENCE)


def how_sure(reading: Reading) -> str:
    return INTERVALS if len(reading.seeds) > 1 else NO_INTERVAL


# the answer


def labels_said(reading: Reading) -> str:
    """Whether the layers read the labels of the demonstrations."""
    who, read, be = ("layer", "reads", "is") if reading.setting.layers == 1 else ("layers", "read", "are")
    lost = difference(reading)
    if math.isnan(lost.low):
        return f"Whether the {who} {read} labels is undecided from 1 seed (shuffling them costs {lost} of accuracy)"
    if lost.low > 0:
        return f"The {who} {read} the labels: shuffling them costs {lost} of accuracy"
    if lost.high < 0:
        return f"Shuffling the labels makes the {who} better, by {Number(-lost.value, -lost.high, -lost.low)}"
    return f"The {who} {be} not shown to read labels: shuffling them costs {lost}"


def found(reading: Reading) -> list[Found]:
    """What both parts of the answer rest on."""
    lost, first = difference(reading), by_distance(reading)[0]
    words = {True: "layers read the labels", False: "layers are not shown to read labels"}
    labels = "whether layers read labels is undecided, with 1 seed" if math.isnan(lost.low) else words[lost.low > 0]
    nearest = f"{first} predicts most alike" if is_nearest(reading) else "no learner is shown to predict most alike"
    return [
        Found("accuracy lost when labels are shuffled", lost, labels),
        Found("MSE of the nearest learner", number(reading, first, "mse"), nearest),
    ]


def by_distance(reading: Reading) -> list[str]:
    """Learners, nearest predictions first; the layers' own MLP is none of them."""
    others = [name for name in reading.learners if name != BYPASS]
    return sorted(others, key=lambda name: float(np.mean(reading.of(name, "mse"))))


def is_nearest(reading: Reading) -> bool | None:
    """Whether the nearest learner is nearer than every other one, over seeds; None from one seed.

    By the ratio of their squared distances, seed by seed: distances of seeds differ by orders of magnitude.
    """
    first, *others = (np.log(np.maximum(reading.of(name, "mse"), TINY)) for name in by_distance(reading))
    gaps = [over_seeds(other - first) for other in others]
    return None if any(math.isnan(gap.low) for gap in gaps) else all(gap.low > 0 for gap in gaps)


def nearest_said(reading: Reading) -> str:
    """Which learner's predictions are nearest to those of the layers."""
    first, second = by_distance(reading)[:2]
    shown = f"{first} (MSE {number(reading, first, 'mse')})"
    if is_nearest(reading):
        return f"of all learners {shown} predicts most alike"
    return f"which learner predicts most alike is undecided between {shown} and {second}"


def answer(reading: Reading) -> str:
    parts = [labels_said(reading), nearest_said(reading)]
    if BYPASS in reading.learners:
        alone = number(reading, BYPASS, "correlation")
        parts.append(f"with attention switched off the predictions correlate to {alone} with those with it on")
    return "; ".join(parts) + "."


# tables and figures


def subtitle(setting: Setting, seeds: int) -> str:
    layers = "one LSA layer" if setting.layers == 1 else f"{setting.layers} LSA layers"
    return (
        f"{setting.language} · {setting.labels} labels · {setting.negatives} · {setting.encoder.label} · {layers} · "
        f"k = {setting.k} · {counted(seeds, 'seed')} × {counted(setting.episodes, 'episode')}"
    )


def table(reading: Reading, columns: dict[str, tuple[str, bool]]) -> Table:
    """A row for every learner; a column is a quantity, on episodes with their labels as they are or shuffled."""
    rows = [
        [
            name,
            *(
                "" if name == TRAINED and quantity in ALIKE else number(reading, name, quantity, shuffled)
                for quantity, shuffled in columns.values()
            ),
        ]
        for name in (TRAINED, *reading.learners)
    ]
    return Table(["", *columns], rows)


FIRST = {
    "accuracy": ("accuracy", False),
    "labels shuffled": ("accuracy", True),
    "cosine": ("cosine", False),
    "correlation": ("correlation", False),
}
SECOND = {"½ sq. error": ("loss", False), "MSE": ("mse", False)}
SHUFFLED = {"cosine": ("cosine", True), "correlation": ("correlation", True), "MSE": ("mse", True)}
TO_TRAINED = (
    "Cosine (of sensitivities ∂ŷ/∂x), correlation and MSE (of predictions) are to the trained layers. `no context` is "
    "a stored linear classifier; `stored × hits` is that classifier times the share of labels that agree with it less "
    "the share that does not: neither has a gradient step in it. `trained, no attention` has their pv set to zero."
)
WORDS = "{training} trained on; in test episodes {shown} shown and {asked} asked about"
CAPTIONS = {
    "training": "Accuracy and loss on held-out episodes, and how near the trained layers come to the learners. "
    + CURVES,
    "autoencoder": "The autoencoder sees no labels; its words are those of the language and as many uniform ones.",
    "weights": "Constructed and trained, each as a share of its largest entry. Drag the border between two, or "
    "move it with arrow keys. Blue is above zero, orange below.",
}


def notes(reading: Reading) -> Table:
    """What else was measured, a line each."""
    facts = reading.facts
    rows: list[list[str | Number]] = [
        ["members, for instance", ", ".join(facts["members"])],
        ["other words", ", ".join(facts["others"])],
        ["different words, first seed", WORDS.format(**facts["words"])],
    ]
    for quantity, name in (("symbols", "positions"), ("words", "words")):
        if reading.encoding(quantity).size:
            rows.append([f"held-out {name} restored", over_seeds(reading.encoding(quantity)[:, -1], SHARE)])
    for quantity in ("cosine to the best preconditioner", "cosine to a multiple of the identity"):
        if reading.weights(quantity).size:
            rows.append([f"matrix of the layer: {quantity}", over_seeds(reading.weights(quantity), DIFFERENCE)])
    return Table(["", ""], rows)


def shown(parts: Sequence[Reading], prefix: str = "", told: str = "") -> list[Section]:
    """Training, codes and weights of one setting, or of settings side by side: charts, and figures to be printed."""
    from iclgd.labs.languages import figures

    coded = [part for part in parts if part.encoding("loss").size]
    weighed = [part for part in parts if part.matrix(TRAINED, "qk").size]

    def section(name: str, file: str, some: Sequence[Reading], of: str, draw: "Callable[[], Figure]") -> Section:
        title = f"{name.capitalize()}{told}{of}"
        return Section(title, CAPTIONS[name], figure=Drawing(f"{prefix}{file}", draw), widget=widget(some, name))

    made = [section("training", "training", parts, "", lambda: figures.training(parts))]
    if coded:
        made.append(section("autoencoder", "autoencoder", coded, "", lambda: figures.autoencoder(coded)))
    for i, part in enumerate(weighed, 1):
        alone = len(parts) == 1
        file, of = ("weights", "") if alone else (f"weights-{i}", f": {part.setting.language}")
        made.append(section("weights", file, [part], of, partial(figures.weights, part)))
    return made


def _automaton(reading: Reading) -> list[Section]:
    """Of the one language that there is; episodes that draw languages have none."""
    if reading.setting.language == "random":
        return []
    some = [*reading.facts["members"][:2], *reading.facts["others"][:1]]
    return automaton(language(reading.setting.language, reading.setting.alphabet), some)


def page(study: Study) -> Page:
    (reading,) = readings(study)
    return Page(
        "Membership learned in context",
        subtitle(reading.setting, len(reading.seeds)),
        answer(reading),
        [
            Section("Learners", f"{how_sure(reading)} {TO_TRAINED}", table(reading, FIRST), brief=True),
            *_automaton(reading),
            *asked(reading),
            *shown([reading]),
            Section("Errors", how_sure(reading), table(reading, SECOND)),
            Section("Likeness on episodes with shuffled labels", how_sure(reading), table(reading, SHUFFLED)),
            Section("Words, codes and weights", table=notes(reading), brief=True),
        ],
        found=found(reading),
    )
