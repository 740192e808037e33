"""One experiment: words to codes, codes to episodes, layers trained on them, and the learners they are held against.

Every seed has its own split, its own non-members, its own encoder and its own layer, so that intervals over seeds cover
all of them. Seeds are trained together, as one tensor program.
"""

from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor

from iclgd.errors import Refusal
from iclgd.metrics import functions as compare
from iclgd.metrics.functions import Predict, View, half_square
from iclgd.registry import suggest
from iclgd.small import construct
from iclgd.small.attention import Weights
from iclgd.small.languages.coordinates import in_basis, rebased, whitening
from iclgd.small.languages.membership import accuracy, check_labels, shuffled
from iclgd.small.languages.prepare import Data, Prepared, prepare
from iclgd.small.models import DeepFeatures, Transformer, predictor
from iclgd.small.streams import generator, stream
from iclgd.small.train import Adam, Params, member, one_thread, stack, train
from iclgd.spec import with_nulls
from iclgd.tasks.regression import Episodes

STARTS = ("random", "gd")
RATES = (0.03, 0.003)
"""Learning rates that train: on codes, and end to end."""
MANY = 32
"""Queries of a training episode where labels are drawn: many make the gradient less noisy. With fixed labels there is
one, as in the document."""
NAN = float("nan")
EVALUATION, SHUFFLING = 12, 13  # what a generator is for: the first part of its key
GD_START = 0.3


@dataclass(frozen=True)
class Experiment(Data):
    """Everything that changes the numbers."""

    labels: str = "fixed"
    layers: int = 1
    start: str = "random"
    """Where training starts: ``random``, or near a small step of plain GD (after Zhang 2023) and free to leave it."""
    steps: int = 2000
    batch: int = 128
    queries: int = 1
    rate: float = RATES[0]
    episodes: int = 2000

    def __post_init__(self) -> None:
        super().__post_init__()
        check_labels(self.labels)
        if (self.labels == "language") != (self.language == "random"):
            raise Refusal("languages are drawn for each episode with --labels language and --language random together.")
        if self.start not in STARTS:
            raise Refusal(f'no start "{self.start}". {suggest(self.start, STARTS)}There are {", ".join(STARTS)}.')
        if min(self.layers, self.steps, self.batch, self.queries, self.episodes) < 1:
            raise Refusal("layers, steps, batch, queries and episodes are all counts of at least one.")
        if not 0 < self.rate < float("inf"):
            raise Refusal(f"a learning rate of {self.rate:g} trains nothing; give a positive one.")
        if self.end_to_end and self.start != "random":
            raise Refusal("end to end there is no step of GD on codes to start near; leave out --start.")

    @property
    def end_to_end(self) -> bool:
        return self.encoder == "end-to-end"

    @property
    def data(self) -> Data:
        return Data(**{name: getattr(self, name) for name in Data.__dataclass_fields__})


def usual(labels: str, encoder: str) -> dict[str, Any]:
    """The settings that depend on the kind of experiment, where nobody says otherwise."""
    deep = encoder == "end-to-end"
    return {"queries": 1 if deep or labels == "fixed" else MANY, "rate": RATES[deep]}


@dataclass
class Result:
    """What came out; numbers are lists over seeds."""

    experiment: Experiment
    learners: dict[str, dict[str, list[float]]]
    """By learner, ``trained`` first: accuracy, accuracy with shuffled labels, loss; of the others also the cosine of
    sensitivities, the same on episodes with shuffled labels, and the mean squared difference of predictions to the
    trained layer."""
    curves: dict[str, list]
    """``step``, and by step and seed: accuracy, loss, and ``mse`` and ``cosine`` to each learner that has a slope."""
    autoencoder: dict[str, Any]
    weights: dict[str, Any]
    """One layer on codes: qk and pv of the first seed, constructed and learned; their likeness as preconditioners."""
    examples: dict[str, list[str]] = field(default_factory=dict)


def run(e: Experiment, prepared: Prepared | None = None) -> Result:
    """Train and compare; ``prepared`` is `prepare(e.data)` if that was done before."""
    with one_thread():
        return _run(e, prepared or prepare(e.data))


def _run(e: Experiment, data: Prepared) -> Result:
    seeds = e.members
    tasks, tests = zip(*data.tasks(e.demos, e.labels == "sign"), strict=True)
    dx = tasks[0].codes.shape[-1]
    held = [test.draw(e.episodes, generator(EVALUATION, seed)) for test, seed in zip(tests, seeds, strict=True)]
    named = list(data.learners)
    model = Transformer(dx, layers=e.layers, width=40 if e.end_to_end else 0, hidden=80)

    bases = [torch.eye(model.dim) if e.end_to_end else whitening(task) for task in tasks]
    if not e.end_to_end:
        tasks = tuple(in_basis(task, basis) for task, basis in zip(tasks, bases, strict=True))
    batches = stream([(s, partial(t.draw, queries=e.queries)) for s, t in zip(seeds, tasks, strict=True)], e.batch)

    def back(params: Params) -> list[Params]:
        """The layers as they act on the codes themselves, by seed."""
        return [rebased(member(params, i), torch.linalg.inv(basis)) for i, basis in enumerate(bases)]

    adam = Adam(torch.full((e.seeds,), e.rate), clip=1.0)
    if e.end_to_end:
        features = DeepFeatures(dx, width=40, hidden=80)
        found = train(features.loss, stack([features.init(s) for s in seeds]), batches, e.steps, adam)
        for i, others in enumerate(named):
            named[i] = {"gd on learned features": predictor(features, member(found.params, i))} | others
    views = [{name: compare.view(p, held[i]) for name, p in others.items()} for i, others in enumerate(named)]
    sloped = [name for name in views[0] if any(others[name].sensitivity.any() for others in views)]

    def watch(params: Params) -> dict[str, Tensor]:
        rows = []
        for layers, asked, others in zip(back(params), held, views, strict=True):
            seen = compare.view(predictor(model, layers), asked)
            alike = [compare.likeness(seen, others[name], asked.query) for name in sloped]
            first = [accuracy(seen.answer, asked.target), float(half_square(seen.answer, asked.target))]
            known = [others[name].sensitivity.any() for name in sloped]
            numbers = [(like.spd, like.cosine if there else NAN) for like, there in zip(alike, known, strict=True)]
            rows.append(first + [number for pair in numbers for number in pair])
        return {"rows": torch.tensor(rows)}

    starts = [rebased(_start(e, model, seed), basis) for seed, basis in zip(seeds, bases, strict=True)]
    trained = train(model.loss, stack(starts), batches, e.steps, adam, watch, max(1, e.steps // 30))
    members = back(trained.params)
    last = trained.loss[-1].isfinite().tolist()
    bad = [s for s, layers, ok in zip(seeds, members, last, strict=True) if not (ok and _finite(layers))]
    if bad:
        raise Refusal(f"training diverged for seeds {bad} with rate {e.rate:g}; lower --rate.")
    rows = torch.stack([seen["rows"] for seen in trained.watched.values()])  # [step, seed, number]
    titles = ["accuracy", "loss", *(f"{what} {name}" for name in sloped for what in ("mse", "cosine"))]
    curves = {"step": list(trained.watched)} | {title: rows[..., i].tolist() for i, title in enumerate(titles)}
    everyone = [{"trained": predictor(model, layers)} | others for layers, others in zip(members, named, strict=True)]
    seen = [{"trained": compare.view(each["trained"], held[i])} | views[i] for i, each in enumerate(everyone)]
    mixed = [shuffled(asked, generator(SHUFFLING, seed)) for asked, seed in zip(held, seeds, strict=True)]
    best = [matrix for matrix in data.matrices if matrix is not None]
    return Result(
        e,
        _learners(everyone, held, mixed, seen),
        curves,
        data.autoencoder,
        _weights(members, best, data.rates[0]) if best and e.layers == 1 else {},
        data.examples,
    )


def _finite(params: Params) -> bool:
    return all(bool(value.isfinite().all()) for value in params.values())


def _start(e: Experiment, model: Transformer, seed: int) -> Params:
    """Random weights, to which ``gd`` adds a small step of plain GD in every layer.

    From random weights alone a layer may settle in a second solution, a preconditioner of rank one read through the
    label column of qk; Zhang 2023 starts where that cannot happen, this start only makes it unlikely.
    """
    params = model.init(seed)
    if e.start == "gd" and not e.end_to_end:
        small = construct.gd_layer(model.dx, 1, GD_START**2)
        params["qk"] = params["qk"] + GD_START * small.qk.float()
        params["pv"] = params["pv"] + small.pv.float() / GD_START
    return params


def _learners(
    everyone: list[dict[str, Predict]], held: list[Episodes], mixed: list[Episodes], views: list[dict[str, View]]
) -> dict[str, dict[str, list[float]]]:
    """Every learner's row; ``mixed`` are the held-out episodes with their labels shuffled."""
    table: dict[str, dict[str, list[float]]] = {}
    layers = [compare.view(each["trained"], asked) for each, asked in zip(everyone, mixed, strict=True)]
    for name in everyone[0]:
        rows = []
        for s, episodes in enumerate(held):
            alike = compare.likeness(views[s]["trained"], views[s][name], episodes.query)
            other = compare.view(everyone[s][name], mixed[s])
            slope = bool(views[s][name].sensitivity.any())
            rows.append(
                {
                    "accuracy": accuracy(views[s][name].answer, episodes.target),
                    "shuffled": accuracy(other.answer, episodes.target),
                    "loss": float(half_square(views[s][name].answer, episodes.target)),
                    "cosine": alike.cosine if slope else NAN,
                    "cosine_shuffled": compare.likeness(layers[s], other, episodes.query).cosine if slope else NAN,
                    "mse": alike.spd,
                }
            )
        table[name] = {column: [row[column] for row in rows] for column in rows[0]}
    return table


def as_preconditioner(weights: Weights, dx: int) -> tuple[Tensor, Tensor]:
    """A trained layer's answer is (bᵀ A + r) x_q plus a term in S alone, with b = (1/N) Σ y x and y² = 1.

    With p the label row of pv and Q the x columns of qk: A = −(p_y Q_xx + p_x Q_yxᵀ), and r = −p_y Q_yx answers without
    looking at any label.
    """
    q, p = weights.qk[0, 0][:, :dx], weights.pv[0, 0][dx]
    return -(p[dx] * q[:dx] + torch.outer(p[:dx], q[dx])), -p[dx] * q[dx]


def _weights(members: list[Params], best: list[Tensor], rate: float) -> dict[str, Any]:
    dx = len(best[0])
    learned = [Weights(params["qk"], params["pv"]) for params in members]
    built = {
        "gd": construct.gd_layer(dx, 1, rate),
        "preconditioned gd": construct.preconditioned_layer(best[0], 1),
        "learned": learned[0],
    }
    matrices = [as_preconditioner(weights, dx)[0] for weights in learned]

    def alike(a: Tensor, b: Tensor) -> float:
        return float((a * b).sum() / (a.norm() * b.norm()))

    return {
        "matrices": {
            name: {part: value[0, 0].float().tolist() for part, value in weights._asdict().items()}
            for name, weights in built.items()
        },
        "cosine to the best preconditioner": [alike(a, b.float()) for a, b in zip(matrices, best, strict=True)],
        "cosine to a multiple of the identity": [alike(a, torch.eye(dx)) for a in matrices],
    }


def record(result: Result) -> dict[str, Any]:
    """The result as plain data, for JSON; what is undefined is null."""
    data: dict[str, Any] = with_nulls(asdict(result))
    return data
