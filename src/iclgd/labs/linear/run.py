"""One experiment: train members of a model together, hold each against reference learners, keep everything measured."""

import math
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from torch import Tensor

from iclgd.errors import Refusal
from iclgd.metrics import functions as compare
from iclgd.metrics.functions import Predictor, View, half_square
from iclgd.small import construct, optimum
from iclgd.small import weights as weights_
from iclgd.small.attention import Weights
from iclgd.small.models import DeepFeatures, Transformer, predictor
from iclgd.small.references import REFERENCES, candidates
from iclgd.small.streams import generator, stream
from iclgd.small.train import Adam, Params, Trained, member, one_thread, stack, train
from iclgd.tasks.regression import FAMILIES, Episodes, Inputs, Law, LinearMap, Regression, Sine, corrupt

EVALUATION, SHIFTED = 1, 2  # what a generator is for: the first part of its key


@dataclass(frozen=True)
class Experiment:
    """Everything that changes the numbers."""

    task: str = "linear"
    dx: int = 10
    dy: int = 1
    demos: int = 10
    noise: float = 0.0
    layers: int = 1
    heads: int = 1
    attention: str = "linear"
    shared: bool = False
    width: int = 0
    hidden: int = 160
    seeds: int = 8
    steps: int = 4000
    batch: int = 64
    rate: float = 0.02
    clip: float = 0.1
    compare: tuple[str, ...] = ("gd",)
    episodes: int = 4000

    def __post_init__(self) -> None:
        for name in self.compare:
            REFERENCES[name]  # refuses an unknown name, before anything is trained
        if min(self.seeds, self.steps, self.batch, self.episodes) < 1:
            raise Refusal("seeds, steps, batch and episodes are all counts of at least one.")
        for name, value in (("learning rate", self.rate), ("clipping norm", self.clip)):
            if not 0 < value < math.inf:
                raise Refusal(f"a {name} of {value:g} trains nothing; give a positive one.")
        self.model  # noqa: B018  refuses what cannot be built
        if isinstance(self.family.function, Sine) and not self.width:
            raise Refusal("a sine is not linear in its input; give the model an MLP with --width 40.")

    @property
    def family(self) -> Regression:
        return FAMILIES[self.task](self.dx, self.dy, self.demos, self.noise)

    @property
    def model(self) -> Transformer:
        return Transformer(
            self.dx, self.dy, self.layers, self.heads, self.attention, self.shared, self.width, self.hidden
        )


@dataclass
class Result:
    """What came out; the first axis of every list of numbers is the seed unless said otherwise."""

    experiment: Experiment
    loss: list[float]
    references: dict[str, dict[str, Any]]
    """By learner: its loss, its exact risk where known, and the likeness of each seed to it."""
    curves: dict[str, list]
    """``step``; ``loss`` by step and seed; ``cosine``, ``distance`` and ``prediction`` by step, seed and reference."""
    weights: dict[str, Any]
    """One linear layer only: learned and constructed qk and pv (first seed), the rate they imply, their distance, the
    loss of weights half way between."""
    shifts: dict[str, dict[str, Any]]
    """Out of distribution: by kind of shift, its values, and the losses of model (by value and seed) and reference."""
    layers: dict[int, dict[str, Any]]
    """Which learner the answer after each layer is most like (first seed): squared prediction distance to each."""


def run(experiment: Experiment) -> Result:
    with one_thread():
        return _run(experiment)


def _run(e: Experiment) -> Result:
    task, model, seeds = e.family, e.model, range(e.seeds)
    fresh = generator(EVALUATION)
    held = task.draw(e.episodes, fresh)
    probes = task.draw(min(e.episodes, 500), fresh, queries=2 * e.dx)
    sample = task.draw(2000, fresh, dtype=torch.float64)
    named = references(e, task, sample)
    named_views = [compare.view(reference, held) for reference in named.values()]

    def watch(params: Params) -> dict[str, Tensor]:
        seen = [compare.view(predictor(model, member(params, seed)), held) for seed in seeds]
        alike = [[compare.likeness(own, other, held.query)[:3] for other in named_views] for own in seen]
        return {
            "loss": torch.stack([half_square(own.answer, held.target) for own in seen]),
            "alike": torch.tensor(alike),  # [seed, reference, 3]
        }

    trained = train(
        model.loss,
        stack([model.init(seed) for seed in seeds]),
        stream([(seed, task.draw) for seed in seeds], e.batch),
        e.steps,
        Adam(torch.full((e.seeds,), e.rate), clip=e.clip),
        watch,
        max(1, e.steps // 40),
    )
    members = [member(trained.params, seed) for seed in seeds]
    bad = [seed for seed in seeds if not all(value.isfinite().all() for value in members[seed].values())]
    if bad:
        raise Refusal(f"training diverged for seeds {bad} with learning rate {e.rate:g}; lower --rate.")
    predictors = [predictor(model, params) for params in members]
    return Result(
        e,
        [compare.loss(p, held) for p in predictors],
        _against(e, task, sample, named, predictors, held, probes),
        _curves(trained),
        _weights(e, task, members, held) if plain(e) else {},
        _shifts(e, task, predictors, named),
        _layers(e, task, sample, members[0], probes) if not e.width else {},
    )


def plain(e: Experiment) -> bool:
    """One linear layer on the tokens themselves: the case with a construction to lay beside."""
    return e.attention == "linear" and e.layers == 1 and e.heads == 1 and not e.width


def references(e: Experiment, task: Regression, sample: Episodes) -> dict[str, Predictor]:
    """Learners by name, as many steps as the model has layers; behind an MLP, one step on meta-learned features."""
    if not e.width:
        return {name: p for learner in e.compare for name, p in REFERENCES[learner](task, sample, e.layers).items()}
    features = DeepFeatures(e.dx, e.dy, e.width, e.hidden)
    seed = e.seeds  # one that no member uses
    batches = stream([(seed, task.draw)], e.batch)
    adam = Adam(torch.tensor([e.rate]), clip=e.clip)
    trained = train(features.loss, stack([features.init(seed)]), batches, e.steps, adam)
    return {"gd ×1 on learned features": predictor(features, member(trained.params, 0))}


def _against(
    e: Experiment,
    task: Regression,
    sample: Episodes,
    named: dict[str, Predictor],
    predictors: list[Predictor],
    held: Episodes,
    probes: Episodes,
) -> dict[str, dict[str, Any]]:
    views = [compare.view(p, held) for p in predictors]
    probed = [compare.view(p, probes) for p in predictors]
    table = {}
    for name, reference in named.items():
        own, own_probed = compare.view(reference, held), compare.view(reference, probes)
        alike = [compare.likeness(v, own, held.query) for v in views]
        implied = [compare.likeness(v, own_probed, probes.query).implied for v in probed]
        rows = [a._replace(implied=i)._asdict() for a, i in zip(alike, implied, strict=True)]
        table[name] = {"loss": compare.loss(reference, held), "likeness": rows}
    if isinstance(task.function, LinearMap) and "gd ×1" in table:
        table["gd ×1"]["risk"] = optimum.one_step(task)[1]
    return table


def _curves(trained: Trained) -> dict[str, list]:
    loss, alike = (torch.stack([seen[name] for seen in trained.watched.values()]) for name in ("loss", "alike"))
    likeness = {name: alike[..., i].tolist() for i, name in enumerate(("cosine", "distance", "prediction"))}
    return {"step": list(trained.watched), "loss": loss.tolist()} | likeness


def _weights(e: Experiment, task: Regression, members: list[Params], held: Episodes) -> dict[str, Any]:
    if not isinstance(task.function, LinearMap):
        return {}
    matrix, rate = optimum.best_preconditioner(task)[0], optimum.one_step(task)[0]
    built = {"gd": construct.gd_layer(e.dx, e.dy, rate), "preconditioned": construct.preconditioned_layer(matrix, e.dy)}
    built = {name: Weights(*(part.float() for part in weights)) for name, weights in built.items()}
    learned = [Weights(params["qk"], params["pv"]) for params in members]
    sides = [weights_.normalised(w, e.dx) for w in (learned[0], built["preconditioned"])]
    half = [weights_.interpolated(w, built["preconditioned"], e.dx, 0.5) for w in learned]
    return {
        "implied rate / N": [
            float(-weights_.normalised(w, e.dx).pv[0, 0].diagonal()[e.dx :].mean()) / e.demos for w in learned
        ],
        "optimal rate / N": rate / e.demos,
        "distance": {name: [weights_.weight_distance(w, b, e.dx) for w in learned] for name, b in built.items()},
        "half-way loss": [compare.loss(predictor(e.model, {"qk": w.qk, "pv": w.pv}), held) for w in half],
        "learned": {name: part[0, 0].tolist() for name, part in sides[0]._asdict().items()},
        "constructed": {name: part[0, 0].tolist() for name, part in sides[1]._asdict().items()},
    }


def _shifts(
    e: Experiment, task: Regression, predictors: list[Predictor], named: dict[str, Predictor]
) -> dict[str, dict[str, Any]]:
    """Input scale, label scale (the weights' scale of a linear family), other laws at the same Σ, random labels."""

    def drawn(of: Regression) -> Episodes:
        return of.draw(e.episodes, generator(SHIFTED))

    base = drawn(task)
    laws: tuple[Law, ...] = ("uniform", "normal", "laplace", "exponential", "sphere")
    kinds: dict[str, dict[Any, Episodes]] = {
        "input scale": {
            f: drawn(replace(task, inputs=task.inputs.scaled(f))) for f in (0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0)
        },
        "label scale": {f: base._replace(y=base.y * f, target=base.target * f) for f in (0.5, 1.0, 2.0, 3.0, 4.0, 5.0)},
        "law": {law: drawn(replace(task, inputs=Inputs(task.inputs.covariance, law))) for law in laws},
        "random labels": {k: corrupt(base, k, generator(SHIFTED)) for k in range(0, e.demos + 1, max(1, e.demos // 5))},
    }
    return {
        kind: {
            "values": list(cases),
            "model": [[compare.loss(p, episodes) for p in predictors] for episodes in cases.values()],
            "references": {name: [compare.loss(p, case) for case in cases.values()] for name, p in named.items()},
        }
        for kind, cases in kinds.items()
    }


def _layers(
    e: Experiment, task: Regression, sample: Episodes, params: Params, probes: Episodes
) -> dict[int, dict[str, Any]]:
    """Squared prediction distance of the answer after each layer to every learner, at every number of steps tried."""
    model = e.model
    few = Episodes(*(part[:500] for part in sample))  # enough to tune learners that are only told apart
    views: dict[str, View] = {n: compare.view(p, probes) for n, p in candidates(task, few).items()}
    table = {}
    for layer in range(1, e.layers + 1):

        def after(episodes: Episodes, layer: int = layer) -> Tensor:
            return -model.states(params, episodes)[layer][..., -e.dy :]

        ranked = compare.ranking(compare.view(after, probes), views, probes.query)
        table[layer] = {name: alike._asdict() for name, alike in ranked.items()}
    return table


def record(result: Result) -> dict[str, Any]:
    """The result as plain data, for JSON."""
    return asdict(result)
