"""What the page of `linear train` lets a reader choose in: curves of training, matrices, losses."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from iclgd.labs.linear.figures import SHIFTS
from iclgd.labs.linear.spec import TrainSpec
from iclgd.report.charts import OWN, Looks, Series, dots
from iclgd.report.colours import HOW_MUCH, USUAL
from iclgd.report.curves import Curve, curves
from iclgd.report.heat import Pictures, wipe
from iclgd.report.numbers import Number
from iclgd.report.page import Table
from iclgd.report.widgets import Widget
from iclgd.study import Study

LOSS, COSINE, FAR = "loss, ½ squared error", "cosine of sensitivities", "distance of predictions"
LIKENESS = {COSINE: "cosine", FAR: "prediction"}
MATRICES = {"WₖᵀW_q": "qk", "P Wᵥ": "pv"}


def training(study: Study) -> Widget:
    """Loss, and likeness to every learner, over training."""
    steps = [int(step) for step in study.arrays(quantity="loss by step")[0].coordinates["step"]]
    about = "Loss of the model over training, and how alike it becomes to each learner, by seed."
    return curves(lambda: list(_curves(study)), _seeds(study), steps, about, x="training step", log=(LOSS, FAR))


def _curves(study: Study) -> Iterator[Curve]:
    seeds = _seeds(study)
    yield Curve(LOSS, "trained", study.stack("seed", seeds, quantity="loss by step"))
    for name in dict.fromkeys(str(one.labels["learner"]) for one in study.arrays(quantity="likeness")):
        yield Curve(LOSS, name, study.stack("seed", seeds, quantity="loss", learner=name))
        for panel, metric in LIKENESS.items():
            values = study.stack("seed", seeds, {"metric": metric}, quantity="likeness by step", learner=name)
            yield Curve(panel, name, values)


def weights(study: Study) -> Widget:
    """The constructed layer's matrices, and those of every seed."""
    spec = study.spec
    assert isinstance(spec, TrainSpec)

    def found(side: str, matrix: str, seed: int) -> np.ndarray:
        return study.arrays(quantity="weights", side=side, matrix=matrix, seed=seed)[0].values

    def pictures() -> Pictures:
        return {
            title: {"constructed": found("constructed", matrix, spec.seeds[0])}
            | {f"trained, seed {seed}": found("learned", matrix, seed) for seed in spec.seeds}
            for title, matrix in MATRICES.items()
        }

    about = "The matrices of the layer, constructed and trained, with a border between them that can be moved."
    return wipe(pictures, [("x", spec.dx), ("y", spec.dy)], about)


def shifts(table: Table) -> Widget:
    """Losses of a table of shifts: all learners at one value of what is changed in a panel."""
    found = [
        Series(
            {"shift": SHIFTS[str(kind)][0], "panel": f"{SHIFTS[str(kind)][0]}: {value}", "name": name, "role": OWN},
            *([end] for end in (loss.value, loss.low, loss.high)),
        )
        for kind, value, *losses in table.rows
        for name, loss in zip(list(table.header)[2:], losses, strict=True)
        if isinstance(loss, Number)
    ]
    looks = Looks(choose={"shift": "what is changed"}, colour="name", x="½ squared error", log=_wide(found))
    return dots(lambda: found, looks, "Loss of the trained model, with 95% intervals, and of learners by shift.")


def layers(distances: Mapping[str, Mapping[str, Number]]) -> Widget:
    """After which layer is chosen: how far its answer is from every learner's, the nearest first."""
    found = [
        Series(
            {"after": layer, "name": name, "role": OWN, "learner": _usual(name)},
            *([end] for end in (far.value, far.low, far.high)),
        )
        for layer, learners in distances.items()
        for name, far in learners.items()
    ]
    looks = Looks(choose={"after": "after layer"}, colour="learner", x="squared prediction distance", log=("",))
    return dots(lambda: found, looks, "Distance of the answer after a layer to every learner, with 95% intervals.")


def _usual(name: str) -> str:
    """By whom a learner has its colour, however many its steps; of many that nobody knows none has one."""
    kind = HOW_MUCH.sub("", name)
    return kind if kind in USUAL else ""


def _wide(found: Sequence[Series]) -> list[str]:
    """Panels of the shifts over which losses grow by more than ten: their scale is logarithmic."""
    sizes: dict[str, list[float]] = {}
    for one in found:
        sizes.setdefault(one.labels["shift"], []).append(float(one.values[0]))
    wide = {shift for shift, losses in sizes.items() if max(losses) > 10 * min(losses)}
    return list(dict.fromkeys(one.labels["panel"] for one in found if one.labels["shift"] in wide))


def _seeds(study: Study) -> tuple[int, ...]:
    assert isinstance(study.spec, TrainSpec)
    return study.spec.seeds
