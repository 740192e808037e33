"""The page of `linear train`: which learner the trained model is like, how surely, and compared with what."""

import math
from collections.abc import Sequence

import numpy as np

from iclgd.labs.linear import figures
from iclgd.labs.linear.play import played
from iclgd.labs.linear.spec import FAST, TrainSpec
from iclgd.labs.linear.widgets import layers, shifts, training, weights
from iclgd.metrics import estimates
from iclgd.metrics.estimates import COSINE
from iclgd.report.charts import picture
from iclgd.report.curves import TOLD
from iclgd.report.found import Found
from iclgd.report.numbers import Size, counted
from iclgd.report.page import Drawing, Entry, Page, Section, Table
from iclgd.study import Study

BOUNDS = {"cosine": COSINE}  # every other number here is a loss or a distance, 0 or more
NEAREST = 3  # how many learners a layer's row names


def estimate(values: Sequence[float] | np.ndarray, low: float = 0.0, high: float = math.inf) -> Size:
    """The mean over seeds with its 95% interval by Student's t, inside the quantity's bounds; one seed has none.

    Where both ends are known the spread shrinks towards them (`crossed.wilson`); merely cut off, intervals of a cosine
    of .99 that varies by .01 would cover 88 to 90%: these cover 92 to 94. A seed without a value leaves none.
    """
    every = np.asarray(values, dtype=float)
    if not np.isfinite(every).all():
        return Size(float(every.mean()))
    found = estimates.over_seeds(every, (low, high) if math.isfinite(low) and math.isfinite(high) else None)
    return Size(found.mean, *np.clip([found.low, found.high], low, high).tolist())  # nan stays nan


def difference(a: np.ndarray, b: np.ndarray) -> Size:
    """a − b, seed by seed."""
    return estimate(np.asarray(a) - np.asarray(b), -math.inf)


def page(study: Study) -> Page:
    spec = _spec(study)
    sections = [
        Section("Learners", _read_learners(spec), learners_table(study), brief=True),
        *played(study),
        Section("More measures", READ_MORE, more_table(study)),
        Section("Training", TOLD, figure=Drawing("training", lambda: figures.training(study)), widget=training(study)),
    ]
    if study.arrays(quantity="weights"):
        drawing = Drawing("weights", lambda: figures.weights(study))
        widget = weights(study)
        sections.append(Section("Weights", READ_WEIGHTS, weights_table(study), drawing, brief=True, widget=widget))
    drawing = Drawing("shifts", lambda: figures.shifts(study))
    losses = shifts_table(study)
    sections.append(Section("Out of distribution", READ_SHIFTS, losses, drawing, widget=shifts(losses)))
    if study.arrays(quantity="likeness by layer"):
        drawing = Drawing("learners", lambda: figures.learners(study))
        widget = layers(distances(study))
        sections.append(Section("After each layer", READ_LAYERS, layers_table(study), drawing, True, widget))
    title = "What self-attention becomes when it is trained on regressions"
    drawn = picture(learners_table(study), "SPD")
    return Page(title, subtitle(spec), answer(study), sections, picture=drawn, found=found(study))


def _spec(study: Study) -> TrainSpec:
    assert isinstance(study.spec, TrainSpec)
    return study.spec


def subtitle(spec: TrainSpec) -> str:
    kind = spec.attention if spec.attention in FAST else f"{spec.attention} attention"
    return (
        f"{spec.task} · {spec.dx} → {spec.dy} · k = {spec.k} · {counted(spec.layers, 'layer')} of {kind} · "
        f"{counted(len(spec.seeds), 'seed')} × {spec.steps} steps of {spec.batch}"
    )


# numbers, by seed


def references(study: Study) -> list[str]:
    """The learners it was held against, in the order they were asked for."""
    return list(dict.fromkeys(str(one.labels["learner"]) for one in study.arrays(quantity="likeness")))


def by_seed(study: Study, at: dict | None = None, **labels: str) -> np.ndarray:
    """[seed, …]."""
    return study.stack("seed", _spec(study).seeds, at, **labels)


def alike(study: Study, learner: str, metric: str) -> Size:
    return estimate(metric_by_seed(study, learner, metric), *BOUNDS.get(metric, (0.0, math.inf)))


def metric_by_seed(study: Study, learner: str, metric: str) -> np.ndarray:
    return by_seed(study, {"metric": metric}, quantity="likeness", learner=learner)


def untrained(study: Study, learner: str, metric: str) -> Size:
    """The same model before its first step."""
    start = by_seed(study, {"metric": metric, "step": 0}, quantity="likeness by step", learner=learner)
    return estimate(start, *BOUNDS.get(metric, (0.0, math.inf)))


def loss(study: Study, learner: str) -> np.ndarray:
    return by_seed(study, quantity="loss", learner=learner)


# the answer


def answer(study: Study) -> str:
    """Which learner is nearest and by how much, whether that is decided, and what the untrained model has."""
    order = by_distance(study)
    first, model = order[0], "layer" if _spec(study).plain else "model"
    cosine, spd = alike(study, first, "cosine"), alike(study, first, "spd")
    apart = difference(loss(study, "trained"), loss(study, first))
    before = f"(before training {untrained(study, first, 'cosine')})"
    turned = "" if math.isnan(cosine.value) else f", cosine of sensitivities {cosine} {before}"  # zero has no direction
    parts = [
        f"The trained {model} {_nearest(study, order)}: squared prediction distance {spd}{turned}",
        _loss(apart, first),
    ]
    if len(_spec(study).seeds) == 1:
        parts.append("1 seed: no interval over draws")
    return ". ".join(parts) + "."


def found(study: Study) -> list[Found]:
    order = by_distance(study)
    spd, model = alike(study, order[0], "spd"), "layer" if _spec(study).plain else "model"
    return [Found("squared prediction distance to the nearest", spd, f"the trained {model} {_nearest(study, order)}")]


def by_distance(study: Study) -> list[str]:
    """The learners, the one whose predictions are nearest first."""
    return sorted(references(study), key=lambda name: float(metric_by_seed(study, name, "spd").mean()))


def _nearest(study: Study, order: list[str]) -> str:
    if len(order) == 1:
        return f"is held against {order[0]}"
    first, *others = order
    nearest = metric_by_seed(study, first, "spd")
    gaps = {name: difference(metric_by_seed(study, name, "spd"), nearest) for name in others}
    level = [name for name, gap in gaps.items() if not gap.low > 0]  # one seed has no interval and shows nothing
    if level:
        return f"is not shown to be nearer to {first} than to {level[0]}, of {counted(len(order), 'learner')}"
    return f"is nearest to {first}, of {counted(len(order), 'learner')}"


def _loss(apart: Size, learner: str) -> str:
    """How its loss stands to the learner's, no stronger than the interval."""
    if math.isnan(apart.low):
        return f"Its loss minus that of {learner} is {apart}"
    if apart.low > 0:
        return f"Its loss is above that of {learner} by {apart}"
    if apart.high < 0:
        low, high = -apart.high, -apart.low
        return f"Its loss is below that of {learner} by {Size(-apart.value, low, high)}"
    return f"Its loss is not shown to differ from that of {learner} ({apart})"


# tables


def learners_table(study: Study) -> Table:
    rows: list[list[Entry]] = [["trained", estimate(loss(study, "trained")), "", "", ""]]
    for name in references(study):
        own = estimate(loss(study, name))
        cells = [alike(study, name, "cosine"), untrained(study, name, "cosine"), alike(study, name, "spd")]
        rows.append([name, own, *cells])
    start = estimate(by_seed(study, {"step": 0}, quantity="loss by step", learner="trained"))
    rows.append(["null: untrained", start, "", "", ""])
    return Table(["", "loss", "cosine", "untrained", "SPD"], rows)


def more_table(study: Study) -> Table:
    exact = {str(one.labels["learner"]): float(one.values) for one in study.arrays(quantity="risk")}
    rows: list[list[Entry]] = []
    for name in references(study):
        risk: Entry = Size(exact[name]) if name in exact else ""
        rows.append([name, risk, *(alike(study, name, metric) for metric in ("prediction", "distance", "implied"))])
    return Table(["", "exact risk", "|Δŷ|", "|Δ sensitivity|", "ILWD"], rows)


def weights_table(study: Study) -> Table:
    best = Size(float(by_seed(study, quantity="rate / N", learner="gd ×1")[0]))
    rate = estimate(by_seed(study, quantity="rate / N", learner="trained"), -math.inf)
    rows: list[list[Entry]] = [["rate / N that the weights imply", rate], ["rate / N of the best gradient step", best]]
    for name, what in (("gd", "the best gradient step"), ("preconditioned", "the best preconditioned step")):
        far = estimate(by_seed(study, quantity="weight distance", learner=name))
        rows.append([f"relative distance to the layer of {what}", far])
    rows.append(["loss half way to the latter", estimate(by_seed(study, quantity="half-way loss"))])
    return Table(["", "learned"], rows)


def shifts_table(study: Study) -> Table:
    names = ["trained", *references(study)]
    rows: list[list[Entry]] = []
    for one in study.arrays(quantity="shifted loss", learner="trained", seed=_spec(study).seeds[0]):
        kind = str(one.labels["shift"])
        for value in one.coordinates["value"]:
            at, labels = {"value": value}, {"quantity": "shifted loss", "shift": kind}
            cells = [estimate(by_seed(study, at, **labels, learner=name)) for name in names]
            rows.append([kind, str(value), *cells])
    return Table(["shift", "", *names], rows)


def distances(study: Study) -> dict[str, dict[str, Size]]:
    """After each layer the squared prediction distance to every learner that was tried, the nearest first."""
    first, found = study.arrays(quantity="likeness by layer")[0], {}
    names = [str(name) for name in first.coordinates["learner"]]
    for layer in first.coordinates["layer"]:
        spd = by_seed(study, {"layer": layer, "metric": "spd"}, quantity="likeness by layer")  # [seed, learner]
        order = np.argsort(spd.mean(0), kind="stable")
        found[str(layer)] = {names[i]: estimate(spd[:, i]) for i in order}
    return found


def layers_table(study: Study) -> Table:
    """The nearest learners to the answer after each layer, by mean squared prediction distance over seeds."""
    found = distances(study).items()
    rows: list[list[Entry]] = [[layer, *one] for layer, far in found for one in list(far.items())[:NEAREST]]
    return Table(["layer", "nearest", "SPD"], rows)


def _read_learners(spec: TrainSpec) -> str:
    sure = "no interval: 1 seed" if len(spec.seeds) == 1 else "95% over seeds, Student's t, in brackets"
    return (
        f"loss: ½ squared error on {spec.episodes} fresh episodes, each seed's own and the same for its learners "
        f"({sure}). cosine: of the sensitivities ∂ŷ/∂x to the query; untrained: the same before the first step. "
        "SPD: mean squared distance of predictions."
    )


READ_MORE = (
    "exact risk: over all episodes of the family, where it is known. |Δŷ|: mean distance of predictions. ILWD: mean "
    "squared distance of the weights that fit each one's own answers."
)
READ_WEIGHTS = (
    "One linear layer, after the scale that moves freely between its two matrices is removed. The constructed layer "
    "is the best preconditioned step. Drag the border between two matrices, or move it with arrow keys; blue is above "
    "zero, orange below, on one scale."
)
READ_SHIFTS = (
    "Loss on episodes unlike those trained on, each seed's own; neither the model nor a learner is tuned again."
)
READ_LAYERS = "Squared distance of the answer after a layer to every learner and number of steps that was tried."
