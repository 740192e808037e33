"""Train the seeds of a study together, and measure each against the learners it may have become."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from iclgd.lab import Cell
from iclgd.labs.linear.exam import Exam, at_their_best, exam, shifts
from iclgd.labs.linear.fitting import members
from iclgd.labs.linear.spec import TrainCell
from iclgd.metrics import functions as compare
from iclgd.metrics.functions import Likeness, half_square
from iclgd.results import Array, Label, Result, array
from iclgd.small import moments, optimum
from iclgd.small import weights as weights_
from iclgd.small.attention import Weights
from iclgd.small.construct import gd_layer, preconditioned_layer
from iclgd.small.models import predictor
from iclgd.small.room import check_room
from iclgd.small.streams import stream
from iclgd.small.train import Adam, Params, Trained, member, one_thread, stack, train
from iclgd.tasks.laws import LinearMap
from iclgd.tasks.regression import Episodes
from iclgd.tools import Tools

METRICS: dict[str, tuple[Label, ...]] = {"metric": Likeness._fields}
WATCHED: dict[str, tuple[Label, ...]] = {"metric": Likeness._fields[:3]}
POINTS = 40  # how often training is watched


def run(cell: Cell, tools: Tools) -> Result:
    return next(together([cell], tools))


def together(cells: Sequence[Cell], tools: Tools) -> Iterator[Result]:
    """The cells of one study, which differ in nothing but the seed, trained as one tensor program.

    A seed's numbers depend on who trains beside it in their last bits only: sums over a batch of products are ordered
    by the library.
    """
    specs = [cell.asks(TrainCell) for cell in cells]
    first = specs[0]
    check_room(first.episodes, first.k + 1, first.dx + first.dy)
    if first.draws == "tokens":
        check_room(len(specs) * first.batch, first.k + 1, first.dx + first.dy)
    with one_thread():
        tools.progress("learners at their best", 0)
        tuned = at_their_best(first)
        exams = [exam(spec, tuned) for spec in specs]
        trained = fit(specs, exams, tools)
        found = [
            measured(spec, judged, params, curves(trained, judged, i))
            for i, (spec, judged, params) in enumerate(zip(specs, exams, members(specs, trained), strict=True))
        ]
    yield from found


def fit(specs: Sequence[TrainCell], exams: Sequence[Exam], tools: Tools) -> Trained:
    """All seeds, each watched on its own exam."""
    cell = specs[0]
    task, model, every = cell.family, cell.model, max(1, cell.steps // POINTS)

    def watch(params: Params) -> dict[str, Tensor]:
        tools.progress("training", every)
        seen = [compare.view(predictor(model, member(params, i)), one.held) for i, one in enumerate(exams)]
        pairs = list(zip(seen, exams, strict=True))
        alike = [
            [compare.likeness(own, other, one.held.query)[:3] for other in one.views.values()] for own, one in pairs
        ]
        return {
            "loss": torch.stack([half_square(own.answer, one.held.target) for own, one in pairs]),
            "alike": torch.tensor(alike),  # [seed, reference, metric]
        }

    by_moments = cell.draws == "moments"
    draw: Callable[..., Any] = partial(moments.draw, task) if by_moments else task.draw
    return train(
        model.moment_loss if by_moments else model.loss,
        stack([model.init(spec.seed) for spec in specs]),
        stream([(spec.seed, draw) for spec in specs], cell.batch),
        cell.steps,
        Adam(torch.full((len(specs),), cell.rate), clip=cell.clip),
        watch,
        every,
    )


def curves(trained: Trained, judged: Exam, index: int) -> list[Array]:
    """Loss on held-out episodes and likeness to each reference, by training step."""
    steps: dict[str, tuple[Label, ...]] = {"step": tuple(trained.watched)}
    loss, alike = (torch.stack([seen[n][index] for seen in trained.watched.values()]) for n in ("loss", "alike"))
    found = [array(loss, "step", coordinates=steps, quantity="loss by step", learner="trained")]
    return found + [
        array(alike[:, i], "step", "metric", coordinates=steps | WATCHED, quantity="likeness by step", learner=name)
        for i, name in enumerate(judged.references)
    ]


def measured(cell: TrainCell, judged: Exam, params: Params, training: list[Array]) -> Result:
    """Everything that is measured on one trained seed."""
    parts = [against(cell, judged, params), training, shifted(cell, judged, params)]
    if cell.plain and isinstance(cell.family.function, LinearMap):
        parts.append(weights(cell, judged, params))
    if judged.candidates:
        parts.append([by_layer(cell, judged, params)])
    return Result({"task": cell.task, "seed": cell.seed}, [one for part in parts for one in part])


def against(cell: TrainCell, judged: Exam, params: Params) -> list[Array]:
    """Losses, and how alike the model is to each reference; implied weights on the probes, the rest on ``held``."""
    predict, held, probes = predictor(cell.model, params), judged.held, judged.probes
    own, own_probed = compare.view(predict, held), compare.view(predict, probes)
    found = [array(compare.loss(predict, held), quantity="loss", learner="trained")]
    for name, reference in judged.references.items():
        implied = compare.likeness(own_probed, judged.probed[name], probes.query).implied
        alike = compare.likeness(own, judged.views[name], held.query)._replace(implied=implied)
        found.append(array(compare.loss(reference, held), quantity="loss", learner=name))
        found.append(array(list(alike), "metric", coordinates=METRICS, quantity="likeness", learner=name))
    if isinstance(cell.family.function, LinearMap) and "gd ×1" in judged.references:
        found.append(array(optimum.one_step(cell.family)[1], quantity="risk", learner="gd ×1"))
    return found


def weights(cell: TrainCell, judged: Exam, params: Params) -> list[Array]:
    """One linear layer: learned beside constructed, the rate it implies, their distance, the loss half way between."""
    task, dx = cell.family, cell.dx
    matrix, rate = optimum.best_preconditioner(task)[0], optimum.one_step(task)[0]
    exact = {"gd": gd_layer(dx, cell.dy, rate), "preconditioned": preconditioned_layer(matrix, cell.dy)}
    built = {name: Weights(*(part.float() for part in layer)) for name, layer in exact.items()}
    own = Weights(params["qk"], params["pv"])
    sides = {"learned": weights_.normalised(own, dx), "constructed": weights_.normalised(built["preconditioned"], dx)}
    half = weights_.interpolated(own, built["preconditioned"], dx, 0.5)
    implied = float(-sides["learned"].pv[0, 0].diagonal()[dx:].mean()) / cell.k
    return [
        array(implied, quantity="rate / N", learner="trained"),
        array(rate / cell.k, quantity="rate / N", learner="gd ×1"),
        *(
            array(weights_.weight_distance(own, layer, dx), quantity="weight distance", learner=name)
            for name, layer in built.items()
        ),
        array(compare.loss(predictor(cell.model, half._asdict()), judged.held), quantity="half-way loss"),
        *(
            array(part[0, 0], "row", "column", quantity="weights", side=side, matrix=name)
            for side, layer in sides.items()
            for name, part in layer._asdict().items()
        ),
    ]


def shifted(cell: TrainCell, judged: Exam, params: Params) -> list[Array]:
    """Losses of the model and of each reference where the episodes differ from those trained on."""
    everyone = {"trained": predictor(cell.model, params)} | judged.references
    every = shifts(cell)
    return [
        array(
            [compare.loss(predict, episodes) for episodes in cases.values()],
            "value",
            coordinates={"value": tuple(cases)},
            quantity="shifted loss",
            shift=kind,
            learner=name,
        )
        for kind, cases in every.items()
        for name, predict in everyone.items()
    ]


def by_layer(cell: TrainCell, judged: Exam, params: Params) -> Array:
    """Likeness of the answer after each layer to every learner, at every number of steps tried."""
    model, probes, rows = cell.model, judged.probes, []
    for layer in range(1, cell.layers + 1):

        def after(episodes: Episodes, layer: int = layer) -> Tensor:
            return -model.states(params, episodes)[layer][..., -cell.dy :]

        own = compare.view(after, probes)
        rows.append([list(compare.likeness(own, other, probes.query)) for other in judged.candidates.values()])
    layers: tuple[Label, ...] = tuple(range(1, cell.layers + 1))
    places = {"layer": layers, "learner": tuple(judged.candidates)} | METRICS
    return array(rows, "layer", "learner", "metric", coordinates=places, quantity="likeness by layer")
