"""What the whole study of the languages lab shows: the two questions first, then every setting."""

from collections.abc import Sequence

import numpy as np

from iclgd.labs.languages.charts import questions, settings
from iclgd.labs.languages.figures import DESCENTS
from iclgd.labs.languages.measures import TRAINED
from iclgd.labs.languages.page import (
    DIFFERENCE,
    by_distance,
    difference,
    how_sure,
    is_nearest,
    number,
    over_seeds,
    shown,
)
from iclgd.labs.languages.reading import Reading, readings
from iclgd.report.numbers import Number, counted
from iclgd.report.page import Drawing, Entry, Page, Section, Table
from iclgd.study import Study

BEST = "cosine to the best preconditioner"


def answer(fixed: Sequence[Reading], drawn: Sequence[Reading]) -> str:
    """Counts over settings, by their intervals over seeds."""
    read = sum(difference(reading).low > 0 for reading in fixed)
    descents = [by_distance(reading)[0] for reading in drawn if is_nearest(reading)]
    first = max(dict.fromkeys(descents), key=descents.count, default="")
    nearest = (
        f"{first} predicts most alike in {descents.count(first)} of {counted(len(drawn), 'setting')}"
        if first
        else f"no learner is shown to predict most alike in any of {counted(len(drawn), 'setting')}"
    )
    return (
        f"With fixed labels the layers are shown to read them in {read} of {counted(len(fixed), 'setting')}; "
        f"with a sign or a language drawn for each episode {nearest} (each setting by its own 95% intervals)."
    )


def cell(reading: Reading, kind: str, quantity: str, shuffled: bool = False) -> Entry:
    """A number of the learner of a kind; nothing where there is no such learner."""
    name = kind if kind == TRAINED else reading.called(kind)
    return number(reading, name, quantity, shuffled) if name else ""


def labels_table(parts: Sequence[Reading]) -> Table:
    """What shuffling labels costs where labels are fixed."""
    rows = [[part.setting.name(), cell(part, TRAINED, "accuracy"), difference(part)] for part in parts]
    return Table(["", "accuracy", "less, shuffled"], rows)


def descent_table(parts: Sequence[Reading]) -> Table:
    rows = [[part.setting.name(), *(cell(part, name, "cosine") for name in DESCENTS[:2])] for part in parts]
    return Table(["", "cos gd", "cos precond. gd"], rows)


def fixed_table(parts: Sequence[Reading]) -> Table:
    """How near the layers are to what looks at no demonstration, and to GD."""
    rows: list[list[Entry]] = []
    for part in parts:
        largest = Number(float(np.abs(part.reads_labels()).max()))
        near = [cell(part, name, what) for name in ("no context", "gd") for what in ("cosine", "mse")]
        rows.append([part.setting.name(), cell(part, TRAINED, "accuracy", True), largest, *near])
    names = ["labels shuffled", "largest difference of a seed", "cos no context", "MSE no context", "cos gd", "MSE gd"]
    return Table(["", *names], rows)


def drawn_table(parts: Sequence[Reading]) -> Table:
    """Accuracy, likeness to steps of gradient descent, and likeness of matrices."""
    rows: list[list[Entry]] = []
    for part in parts:
        row: list[Entry] = [part.setting.name(), *(cell(part, TRAINED, "accuracy", mixed) for mixed in (False, True))]
        row += [cell(part, DESCENTS[2], "cosine")]
        row += [cell(part, name, "cosine", True) for name in DESCENTS[:2]]
        row += [cell(part, name, "mse") for name in DESCENTS[:2]]
        matrices = part.weights(BEST)
        rows.append([*row, over_seeds(matrices, DIFFERENCE) if matrices.size else ""])
    header = ["", "accuracy", "shuffled", "cos learned features", "shuffled: cos gd", "shuffled: cos precond. gd"]
    return Table([*header, "MSE gd", "MSE precond. gd", "cos A, best A"], rows)


def every_learner(parts: Sequence[Reading], quantity: str) -> Table:
    names = list(dict.fromkeys(name.split(" ×")[0] for part in parts for name in part.learners))
    names = [TRAINED, *names] if quantity == "accuracy" else names
    rows = [[part.setting.name(), *(cell(part, name, quantity) for name in names)] for part in parts]
    return Table(["", *names], rows)


def some(parts: Sequence[Reading], labels: str, start: str, told: str) -> list[Section]:
    """Training of three languages side by side: codes of an autoencoder, against uniform words outside."""
    kind = ("autoencoder", "complement", labels, start)
    chosen = [
        part for part in parts for s in [part.setting] if (s.encoder.kind, s.negatives, s.labels, s.start) == kind
    ]
    return shown(chosen, f"{labels}-", told)


def every_setting(parts: Sequence[Reading]) -> Section:
    from iclgd.labs.languages import figures

    drawing = Drawing("summary", lambda: figures.summary(parts))
    return Section("All settings", how_sure(parts[0]), figure=drawing, widget=settings(parts))


def page_all(study: Study) -> Page:
    parts = readings(study)
    fixed, drawn = ([part for part in parts if (part.setting.labels == "fixed") == is_] for is_ in (True, False))
    sure = how_sure(parts[0])
    seeds = ", ".join(map(str, parts[0].seeds))
    return Page(
        "The languages lab",
        f"{counted(len(parts), 'setting')} · seeds {seeds}",
        answer(fixed, drawn),
        [
            Section("Fixed labels: is anything learned in context?", sure, labels_table(fixed), brief=True),
            Section("Sign or language drawn: which gradient descent?", sure, descent_table(drawn), brief=True),
            every_setting(parts),
            Section("Fixed labels: what the layers are near to", sure, fixed_table(fixed)),
            Section("Sign or language drawn: with shuffled labels, and matrices", sure, drawn_table(drawn)),
            Section("Accuracy of every learner", sure, every_learner(parts, "accuracy")),
            Section("Cosine of every learner's sensitivities", sure, every_learner(parts, "cosine")),
            Section("Correlation of every learner's predictions", sure, every_learner(parts, "correlation")),
            *some(parts, "fixed", "random", " with fixed labels"),
            *some(parts, "sign", "gd", " with a sign drawn"),
        ],
        picture=questions(parts),
    )
