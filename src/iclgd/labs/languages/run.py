"""Words to codes, codes to episodes, layers trained on them, and the learners they are held against.

Every seed has its own split, its own words outside the language, its own encoder and its own layers, so that intervals
over seeds cover all of them. The seeds of a setting are trained together, as one tensor program; alone, a seed gives
the same numbers to rounding (losses to 1e-4 of themselves in the tests).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import cast

import torch
from torch import Tensor

from iclgd.errors import Refusal
from iclgd.lab import Cell
from iclgd.labs.languages.measures import BYPASS, comparisons, kept, matrices, watched
from iclgd.labs.languages.spec import SeedSpec, Setting
from iclgd.metrics.functions import Predict, View, view
from iclgd.report.numbers import counted
from iclgd.results import Array, Result, array
from iclgd.small import construct
from iclgd.small.languages.coordinates import Basis, in_basis, rebased, whitening
from iclgd.small.languages.membership import Membership, shuffled
from iclgd.small.languages.prepare import Data, Prepared, prepare
from iclgd.small.languages.references import References, references
from iclgd.small.models import DeepFeatures, Transformer, predictor
from iclgd.small.room import check_room
from iclgd.small.streams import generator, stream
from iclgd.small.train import Adam, Params, member, one_thread, stack, train
from iclgd.tasks.regression import Episodes
from iclgd.tools import Progress, Tools

EVALUATION, SHUFFLING = 12, 13  # what a generator is for: the first part of its key
GD_START = 0.3
WIDTH, HIDDEN = 40, 80  # of the MLP that is trained end to end
MOMENTS = 30  # of training at which the layers are looked at


def run(cell: Cell, tools: Tools) -> Result:
    return next(together([cell], tools))


def together(cells: Sequence[Cell], tools: Tools) -> Iterator[Result]:
    """Cells with the same words and codes, which are prepared once; the seeds of a setting are trained together."""
    seeds = tuple(dict.fromkeys(_spec(cell).seed for cell in cells))
    for e in {_spec(cell).part(Setting).key(): _spec(cell) for cell in cells}.values():
        check_room(e.episodes, e.k + 1, e.dims + 1)
        check_room(len(seeds) * e.batch, e.k + e.queries, e.dims + 1)
    data = _spec(cells[0]).part(Data, seeds=seeds)
    tools.progress(f"words and codes of {data.language}", 0)
    prepared = tools.shared(data, lambda: prepare(data))
    for setting, part in groupby(cells, key=lambda cell: _spec(cell).part(Setting)):
        with one_thread():
            yield from trained(setting, prepared.only([_spec(cell).seed for cell in part]), tools.progress)


def _spec(cell: Cell) -> SeedSpec:
    return cast(SeedSpec, cell.spec)


@dataclass(frozen=True, eq=False)
class Seed:
    """One seed: the coordinates it is trained in, what it is judged on, and the learners beside it."""

    number: int
    basis: Basis
    held: Episodes
    mixed: Episodes
    """The held-out episodes with the labels of their demonstrations shuffled."""
    tuned: References
    learners: dict[str, Predict]
    views: dict[str, View]


def trained(e: Setting, data: Prepared, progress: Progress) -> list[Result]:
    """Train the seeds of a setting together, and compare each with its learners."""
    pairs = data.tasks(e.k, e.labels == "sign")
    model = Transformer(pairs[0][0].codes.shape[-1], layers=e.layers, width=WIDTH if e.end_to_end else 0, hidden=HIDDEN)
    bases = [torch.eye(model.dim) if e.end_to_end else whitening(task) for task, _ in pairs]
    tasks = [task if e.end_to_end else in_basis(task, basis) for (task, _), basis in zip(pairs, bases, strict=True)]
    batches = stream([(s, partial(t.draw, queries=e.queries)) for s, t in zip(data.seeds, tasks, strict=True)], e.batch)
    adam = Adam(torch.full((len(data.seeds),), e.rate), clip=1.0)
    more = [dict[str, Predict]() for _ in data.seeds]
    if e.end_to_end:
        progress("training features", 0)
        features = DeepFeatures(model.dx, width=WIDTH, hidden=HIDDEN)
        found = train(features.loss, stack([features.init(s) for s in data.seeds]), batches, e.steps, adam)
        more = [{"gd on learned features": predictor(features, member(found.params, i))} for i in range(len(more))]
    seeds = [
        _seed(e, seed, *pair, basis, extra)
        for seed, pair, basis, extra in zip(data.seeds, pairs, bases, more, strict=True)
    ]
    layers, curves = _train(e, model, seeds, batches, adam, progress)
    return [
        Result(
            {**data.examples(i), "words": data.counts(i), "episode": data.episode(i, e.k)},
            [
                *comparisons(
                    seed.learners | _bypassed(e, model, layers[i]),
                    predictor(model, layers[i]),
                    seed.held,
                    seed.mixed,
                    seed.views,
                ),
                *curves[i],
                *_encoding(data, i),
                *(matrices(layers[i], seed.tuned) + kept(seed.tuned, data.kept[i]) if e.layers == 1 else ()),
            ],
        )
        for i, seed in enumerate(seeds)
    ]


def _seed(e: Setting, number: int, task: Membership, test: Membership, basis: Basis, more: dict[str, Predict]) -> Seed:
    tuned = references(task, number, e.end_to_end, e.layers)
    held = test.draw(e.episodes, generator(EVALUATION, number))
    learners = more | tuned.learners
    views = {name: view(learner, held) for name, learner in learners.items()}
    return Seed(number, basis, held, shuffled(held, generator(SHUFFLING, number)), tuned, learners, views)


def _train(
    e: Setting, model: Transformer, seeds: list[Seed], batches: object, adam: Adam, progress: Progress
) -> tuple[list[Params], list[list[Array]]]:
    """The trained layers of every seed as they act on the codes themselves, and how they came there."""
    every = max(1, e.steps // MOMENTS)
    seen: list[list[dict[tuple[str, str], float]]] = []

    def back(params: Params) -> list[Params]:
        return [rebased(member(params, i), torch.linalg.inv(seed.basis)) for i, seed in enumerate(seeds)]

    def watch(params: Params) -> dict[str, Tensor]:
        layers = back(params)
        seen.append([watched(predictor(model, layers[i]), seed.held, seed.views) for i, seed in enumerate(seeds)])
        progress(f"training {counted(len(seeds), 'seed')}", every)
        return {}

    starts = [rebased(_start(e, model, seed.number), seed.basis) for seed in seeds]
    found = train(model.loss, stack(starts), batches, e.steps, adam, watch, every)  # type: ignore[arg-type]  # Episodes
    layers = back(found.params)
    finite = found.loss[-1].isfinite().tolist()
    bad = [seed.number for seed, mine, ok in zip(seeds, layers, finite, strict=True) if not (ok and _finite(mine))]
    if bad:
        raise Refusal(f"training diverged for seeds {bad} with a rate of {e.rate:g}; lower `rate`.")
    steps = list(found.watched)
    curves = [
        [
            array(
                torch.tensor([rows[i][name] for rows in seen]),
                "step",
                coordinates={"step": steps},
                part="training",
                learner=name[0],
                quantity=name[1],
            )
            for name in seen[0][i]
        ]
        for i in range(len(seeds))
    ]
    return layers, curves


def _bypassed(e: Setting, model: Transformer, layers: Params) -> dict[str, Predict]:
    """The layers without what attention writes, where something else can answer: an MLP trained with them."""
    if not e.end_to_end:
        return {}
    return {BYPASS: predictor(model, layers | {"pv": torch.zeros_like(layers["pv"])})}


def _finite(params: Params) -> bool:
    return all(bool(value.isfinite().all()) for value in params.values())


def _start(e: Setting, model: Transformer, seed: int) -> Params:
    """Random weights, to which ``gd`` adds a small step of plain GD in every layer.

    From random weights alone a layer may settle in a second solution, a preconditioner of rank one read through the
    label column of qk; Zhang 2023 starts where that cannot happen, this start only makes it unlikely.
    """
    params = model.init(seed)
    if e.start == "gd":
        small = construct.gd_layer(model.dx, 1, GD_START**2)
        params["qk"] = params["qk"] + GD_START * small.qk.float()
        params["pv"] = params["pv"] + small.pv.float() / GD_START
    return params


def _encoding(data: Prepared, place: int) -> list[Array]:
    """How the encoder of a seed was trained, if it was."""
    curves = dict(data.curves[place])
    steps = [int(step) for step in curves.pop("step", ())]
    return [
        array(values, "step", coordinates={"step": steps}, part="encoder", quantity=name)
        for name, values in curves.items()
    ]
