"""The lab `linear layers`: layers of every kind trained on one family, each held against every learner."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np

from iclgd.lab import Cell
from iclgd.labs.linear.exam import evaluation, tuning_sample
from iclgd.labs.linear.fitting import fitted
from iclgd.labs.linear.page import difference, estimate
from iclgd.labs.linear.stacks import LayersCell, LayersSpec
from iclgd.metrics import functions as compare
from iclgd.metrics.functions import Predict, View
from iclgd.report.numbers import counted
from iclgd.report.page import Entry, Page, Section, Table
from iclgd.results import Array, Result, array
from iclgd.small.known import REFERENCES
from iclgd.small.models import predictor
from iclgd.small.train import Params, one_thread
from iclgd.study import Study
from iclgd.tasks.regression import Episodes
from iclgd.tools import Tools

FEW = 3  # learners that a sentence names; of more it says how many
OWN = {"linear": "gd", **{rule: rule for rule in ("delta", "gated-delta", "longhorn", "ttt", "mesa")}}
"""The learner that a kind of layer is supposed to be."""
Named = dict[str, tuple[Predict, str]]  # by title, with the name in the registry
LEARNERS = ("gd", "delta", "gated-delta", "longhorn", "ttt", "mesa", "nearest", "zero")


def run(cell: Cell, tools: Tools) -> Result:
    return next(together([cell], tools))


def together(cells: Sequence[Cell], tools: Tools) -> Iterator[Result]:
    """Seeds of one kind train as one tensor program; the learners are tuned once for all kinds."""
    specs = [cell.asks(LayersCell) for cell in cells]
    with one_thread():
        tools.progress("learners at their best", 0)
        learners = _learners(specs[0])
        exams = {seed: _exam(spec, learners) for seed, spec in {spec.seed: spec for spec in specs}.items()}
        names = {name: builder for name, (_, builder) in learners.items()}
        for _, some in groupby(specs, key=lambda spec: spec.attention):
            seeds = list(some)
            tools.progress(f"training {seeds[0].attention}", 0)
            for spec, params in zip(seeds, fitted(seeds), strict=True):
                yield _measured(spec, params, *exams[spec.seed], names)


def _learners(cell: LayersCell) -> Named:
    """Learners at their best on the family, by title, with the name that each has in the registry."""
    task = cell.family
    sample = tuning_sample(task, cell.dx)
    found = {name: REFERENCES[name](task, sample, cell.layers) for name in LEARNERS}
    return {title: (predict, name) for name, made in found.items() for title, predict in made.items()}


def _exam(cell: LayersCell, learners: Named) -> tuple[Episodes, dict[str, View]]:
    """A seed's own episodes, the same for all kinds of layers, and what the learners answer to them."""
    held = cell.family.draw(cell.episodes, evaluation(cell.seed))
    return held, {title: compare.view(predict, held) for title, (predict, _) in learners.items()}


def _measured(
    cell: LayersCell, params: Params, held: Episodes, views: dict[str, View], names: dict[str, str]
) -> Result:
    def distance(own: View, other: View) -> float:
        return compare.likeness(own, other, held.query).spd

    own = compare.view(predictor(cell.model, params), held)
    start = compare.view(predictor(cell.model, cell.model.init(cell.seed)), held)
    arrays: list[Array] = [array(compare.half_square(own.answer, held.target), quantity="loss", learner="trained")]
    for title, seen in views.items():
        labels = {"learner": title, "name": names[title]}
        arrays.append(array(compare.half_square(seen.answer, held.target), quantity="loss", **labels))
        arrays.append(array(distance(own, seen), quantity="spd", **labels))
        arrays.append(array(distance(start, seen), quantity="untrained spd", **labels))
    return Result({"task": cell.task, "seed": cell.seed, "attention": cell.attention}, arrays)


# the page


def page(study: Study) -> Page:
    spec = study.spec
    assert isinstance(spec, LayersSpec)
    rows: list[list[Entry]] = []
    for kind in spec.kinds:
        near, apart = distances(study, kind)
        loss = estimate([float(one.values) for one in study.arrays(quantity="loss", attention=kind, learner="trained")])
        rows.append([kind, loss, _either(near), *(replace(estimate(values), digits=2) for values in apart.values())])
    titles = list(distances(study, spec.kinds[0])[1])
    own = [study.arrays(quantity="loss", learner=title, attention=spec.kinds[0]) for title in titles]
    losses = [estimate([float(one.values) for one in seeds]) for seeds in own]
    rows.append(["(its own loss)", "", "", *(replace(loss, digits=3) for loss in losses)])
    start = estimate([float(one.values) for one in study.arrays(quantity="untrained spd", name="zero")])
    rows.append(["null: untrained", "", "", *[""] * (len(titles) - 1), start])
    told = (
        "loss: ½ squared error on fresh episodes, each seed's own; then the mean squared distance of the layer's "
        "predictions to those of each learner at its best, on the same episodes (95% over seeds, Student's t, in "
        "brackets)."
    )
    shown = Section("Layers against learners", told, Table(["", "loss", "nearest", *titles], rows), brief=True)
    what = (
        f"{spec.task} · {spec.dx} → 1 · k = {spec.k} · noise {spec.noise:g} · {counted(spec.layers, 'layer')} each · "
        f"{counted(len(spec.seeds), 'seed')} × {spec.steps} steps of {spec.batch}"
    )
    return Page("Which learner each kind of layer becomes", what, answer(study), [shown])


def distances(study: Study, kind: str) -> tuple[list[str], dict[str, np.ndarray]]:
    """The nearest learner, with those that are not shown to be farther, and the distances to all, by seed."""
    found: dict[str, list[float]] = {}
    for one in study.arrays(quantity="spd", attention=kind):
        found.setdefault(str(one.labels["learner"]), []).append(float(one.values))
    apart = {title: np.asarray(values) for title, values in found.items()}
    first = min(apart, key=lambda title: apart[title].mean())
    level = [title for title in apart if title != first and not difference(apart[title], apart[first]).low > 0]
    return [first, *level], apart


def answer(study: Study) -> str:
    """Which kinds are nearest to the learner that they are supposed to be, no surer than the intervals."""
    assert isinstance(study.spec, LayersSpec)
    titles = {str(one.labels["name"]): str(one.labels["learner"]) for one in study.arrays(quantity="spd")}
    asked = [kind for kind in study.spec.kinds if kind in OWN]
    near = {kind: distances(study, kind)[0] for kind in study.spec.kinds}
    right = [kind for kind in asked if near[kind] == [titles[OWN[kind]]]]
    level = [kind for kind in asked if titles[OWN[kind]] in near[kind] and kind not in right]
    told = [f"A {kind} layer is nearest to {_either(near[kind])}" for kind in near if kind not in (*right, *level)]
    parts = [
        f"Of {counted(len(asked), 'kind')} of layer that are a learner by construction, {len(right) or 'none'} "
        f"{'is' if len(right) < 2 else 'are'} nearest to it after training" + (f" ({', '.join(right)})" * bool(right))
    ]
    parts += [f"A {kind} layer is nearest to {_either(near[kind])}, which of them is not shown" for kind in level]
    return ". ".join([*parts, *told]) + "."


def _either(titles: Sequence[str]) -> str:
    return " or ".join(titles) if len(titles) <= FEW else f"one of {len(titles)} learners"
