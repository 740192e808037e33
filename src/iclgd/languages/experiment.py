"""One experiment: words to codes, codes to episodes, layers trained on them, and the learners they are held against.

Every seed has its own split, its own non-members, its own encoder and its own layer, so that intervals over seeds cover
all of them. Seeds are trained together, as one tensor program.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from iclgd.errors import Refusal
from iclgd.languages.autoencoder import Autoencoder, train_autoencoder
from iclgd.languages.automaton import decode
from iclgd.languages.encoders import Encode, centred, one_hot, principal
from iclgd.languages.expressions import language
from iclgd.languages.membership import (
    Membership,
    Split,
    accuracy,
    check_labels,
    membership,
    shuffled,
    split_many,
    split_one,
)
from iclgd.languages.references import best_rate, references
from iclgd.languages.regbench import random_languages
from iclgd.languages.words import check_negatives, held_out, uniform
from iclgd.linear import compare, construct, optimum
from iclgd.linear.attention import Weights
from iclgd.linear.compare import Predictor, View
from iclgd.linear.experiment import generator, predictor
from iclgd.linear.models import DeepFeatures, Transformer
from iclgd.linear.train import Adam, Params, member, one_thread, stack, train
from iclgd.registry import suggest
from iclgd.tasks.regression import Episodes

ENCODERS = ("pca", "autoencoder", "end-to-end")
STARTS = ("random", "gd")
RATES = (0.03, 0.003)
"""Learning rates that train: on codes, and end to end."""
LETTERS = "abcd"  # of random languages
TRAINING, TUNING, EVALUATION, SHUFFLING = range(10, 14)  # what a generator is for: the first part of its key
CHUNK = 25_000  # episodes to tune on at a time
GD_START = 0.3


@dataclass(frozen=True)
class Data:
    """What the numbers depend on before labels come in: words, split and codes."""

    language: str = "a*bc*"
    """A built-in name or an expression; ``random`` for as many random automata as ``languages`` says."""
    negatives: str = "complement"
    encoder: str = "autoencoder"
    min_length: int = 1
    max_length: int = 12
    alphabet: str = ""
    languages: int = 1000
    dims: int = 10
    demos: int = 20
    seeds: int = 5
    encoder_steps: int = 1000
    tune: int = 200_000
    """Training episodes that the preconditioner is fitted on; rate and penalty need fewer."""

    def __post_init__(self) -> None:
        check_negatives(self.negatives)
        if self.encoder not in ENCODERS:
            raise Refusal(
                f'no encoder "{self.encoder}". {suggest(self.encoder, ENCODERS)}There are {", ".join(ENCODERS)}.'
            )
        if self.demos < 2 or self.demos % 2:
            raise Refusal(f"half of the demonstrations are members: give an even number of them, not {self.demos}.")
        if not 1 <= self.min_length <= self.max_length:
            raise Refusal(
                f"words of length {self.min_length} to {self.max_length} are none; lengths run upwards from 1."
            )
        if min(self.dims, self.seeds, self.encoder_steps, self.tune) < 1 or self.languages < 5:
            raise Refusal("dimensions, seeds and steps are at least one, and languages at least five.")
        if self.max_length > 40:
            raise Refusal(f"words of {self.max_length} symbols are too long for this lab; 40 is the most.")

    @property
    def lengths(self) -> range:
        return range(self.min_length, self.max_length + 1)


@dataclass(frozen=True)
class Experiment(Data):
    """Everything that changes the numbers."""

    labels: str = "fixed"
    layers: int = 1
    start: str = "random"
    """Where training starts: ``random``, or near a small step of plain GD (after Zhang 2023) and free to leave it."""
    steps: int = 2000
    batch: int = 128
    rate: float = RATES[0]
    episodes: int = 2000

    def __post_init__(self) -> None:
        super().__post_init__()
        check_labels(self.labels)
        if (self.labels == "language") != (self.language == "random"):
            raise Refusal("languages are drawn for each episode with --labels language and --language random together.")
        if self.start not in STARTS:
            raise Refusal(f'no start "{self.start}". {suggest(self.start, STARTS)}There are {", ".join(STARTS)}.')
        if min(self.layers, self.steps, self.batch, self.episodes) < 1:
            raise Refusal("layers, steps, batch and episodes are all counts of at least one.")
        if self.rate <= 0:
            raise Refusal(f"a learning rate of {self.rate:g} trains nothing; give a positive one.")

    @property
    def end_to_end(self) -> bool:
        return self.encoder == "end-to-end"

    @property
    def data(self) -> Data:
        return Data(**{name: getattr(self, name) for name in Data.__dataclass_fields__})


@dataclass(frozen=True, eq=False)
class Prepared:
    """Words split and coded, by seed, and the learners tuned on them.

    None of it depends on how the episodes will be labelled: the learners are odd in the labels, so that a random sign
    changes nothing about which rate, penalty or preconditioner is best.
    """

    splits: list[Split]
    encoders: list[Encode]
    rates: list[float]
    """Of one step of plain GD."""
    matrices: list[Tensor]
    """The best preconditioners; none for one-hot words, which are too wide."""
    learners: list[dict[str, Predictor]]
    autoencoder: dict[str, Any]
    """The autoencoder's validation curves, where there is one."""
    examples: dict[str, list[str]]


@dataclass
class Result:
    """What came out; numbers are lists over seeds."""

    experiment: Experiment
    learners: dict[str, dict[str, list[float]]]
    """By learner, ``trained`` first: accuracy, accuracy with shuffled labels, loss; of the others also the cosine of
    sensitivities and the mean squared difference of predictions to the trained layer."""
    curves: dict[str, list]
    """``step``, and by step and seed: accuracy, loss, and ``mse`` and ``cosine`` to each learner that has a slope."""
    autoencoder: dict[str, Any]
    weights: dict[str, Any]
    """One layer on codes: qk and pv of the first seed, constructed and learned; their likeness as preconditioners."""
    examples: dict[str, list[str]] = field(default_factory=dict)


def prepare(data: Data) -> Prepared:
    """Draw and split the words, fit the encoders on the training side, and tune the learners there."""
    with one_thread():
        splits, letters = _splits(data)
        encoders, curves = _encoders(data, splits, len(letters))
        tasks = [membership(s.train, code, data.demos, False) for s, code in zip(splits, encoders, strict=True)]
        samples = [
            task.draw(min(data.tune, CHUNK), generator(TUNING, s), torch.float64) for s, task in enumerate(tasks)
        ]
        wide = data.encoder == "end-to-end"
        matrices = [] if wide else [_preconditioner(task, data.tune, s) for s, task in enumerate(tasks)]
        tuned = [references(sample, None if wide else matrices[s]) for s, sample in enumerate(samples)]
    first = splits[0].train[0].demos
    examples = {"members": decode(first.members[-4:], letters), "others": decode(first.others[-4:], letters)}
    return Prepared(splits, encoders, list(map(best_rate, samples)), matrices, tuned, curves, examples)


def _splits(data: Data) -> tuple[list[Split], str]:
    """The words of every seed, and their alphabet."""
    if data.language == "random":
        letters = "".join(sorted(set(data.alphabet or LETTERS)))

        def drawn(seed: int) -> Split:
            families = lambda random: random_languages(letters, random, (4, 8))  # noqa: E731
            return split_many(families, data.languages, data.negatives, data.lengths, seed)

    else:
        chosen = language(data.language, data.alphabet)
        letters = chosen.alphabet

        def drawn(seed: int) -> Split:
            return split_one(chosen, data.negatives, data.lengths, seed)

    return [drawn(seed) for seed in range(data.seeds)], letters


def _encoders(data: Data, splits: list[Split], symbols: int) -> tuple[list[Encode], dict[str, Any]]:
    """An encoder for every seed, and the curves of the autoencoder where there is one."""
    train_words, test_words = (
        [np.concatenate([part for words in side for role in words for part in role]) for side in sides]
        for sides in zip(*splits, strict=True)
    )
    if data.encoder == "end-to-end":
        return [lambda words: one_hot(words, symbols)] * data.seeds, {}
    if data.encoder == "pca":
        fitted = [principal(one_hot(words, symbols), data.dims) for words in train_words]
        return [_after(map_, lambda words: one_hot(words, symbols)) for map_ in fitted], {}
    model = Autoencoder(symbols, data.max_length, data.dims)
    trained = train_autoencoder(
        model,
        [_with_others(data, words, symbols, seed) for seed, words in enumerate(train_words)],
        test_words,
        data.encoder_steps,
    )
    raw = [_coder(model, member(trained.params, seed)) for seed in range(data.seeds)]
    scaled = [centred(code(words)) for code, words in zip(raw, train_words, strict=True)]
    return [_after(map_, code) for map_, code in zip(scaled, raw, strict=True)], trained.curves


def _with_others(data: Data, words: np.ndarray, symbols: int, seed: int) -> np.ndarray:
    """The training words and about as many uniform words of the training side.

    A few dozen words are learned by heart; with others among them the code has to be of use for words not seen.
    """
    copies = -(-2000 // len(words))
    random = np.random.default_rng([seed, 3])
    more = uniform(2 * copies * len(words), data.lengths, symbols, random)
    return np.concatenate([np.tile(words, (copies, 1)), more[~held_out(more, seed)][: copies * len(words)]])


def _after(outer: Callable[[np.ndarray], np.ndarray], inner: Encode) -> Encode:
    return lambda words: outer(inner(words))


def _coder(model: Autoencoder, params: Params) -> Encode:
    return lambda words: model.encode(params, torch.from_numpy(words)).numpy()


def run(e: Experiment, prepared: Prepared | None = None) -> Result:
    """Train and compare; ``prepared`` is `prepare(e.data)` if that was done before."""
    with one_thread():
        return _run(e, prepared or prepare(e.data))


def _run(e: Experiment, data: Prepared) -> Result:
    seeds, signs = range(e.seeds), e.labels == "sign"
    pairs = list(zip(data.splits, data.encoders, strict=True))
    tasks = [membership(split.train, code, e.demos, signs) for split, code in pairs]
    tests = [membership(split.test, code, e.demos, signs) for split, code in pairs]
    dx = tasks[0].codes.shape[-1]
    held = [tests[s].draw(e.episodes, generator(EVALUATION, s)) for s in seeds]
    named = list(data.learners)
    model = Transformer(dx, layers=e.layers, width=40 if e.end_to_end else 0, hidden=80)

    def batches(step: int) -> Episodes:
        drawn = [tasks[s].draw(e.batch, generator(TRAINING, s, step)) for s in seeds]
        return Episodes(*map(torch.stack, zip(*drawn, strict=True)))

    adam = Adam(torch.full((e.seeds,), e.rate), clip=1.0)
    if e.end_to_end:
        features = DeepFeatures(dx, width=40, hidden=80)
        found = train(features.loss, stack([features.init(s) for s in seeds]), batches, e.steps, adam)
        for s in seeds:
            named[s] = {"gd on learned features": predictor(features, member(found.params, s))} | named[s]
    views = [{name: compare.view(p, held[s]) for name, p in named[s].items()} for s in seeds]
    sloped = [name for name, view in views[0].items() if view.sensitivity.any()]

    def watch(params: Params) -> dict[str, Tensor]:
        rows = []
        for s in seeds:
            seen = compare.view(predictor(model, member(params, s)), held[s])
            alike = [compare.likeness(seen, views[s][name], held[s].query) for name in sloped]
            first = [accuracy(seen.answer, held[s].target), float(compare.half_square(seen.answer, held[s].target))]
            rows.append(first + [number for like in alike for number in (like.spd, like.cosine)])
        return {"rows": torch.tensor(rows)}

    trained = train(
        model.loss, stack([_start(e, model, s) for s in seeds]), batches, e.steps, adam, watch, max(1, e.steps // 30)
    )
    members = [member(trained.params, s) for s in seeds]
    rows = torch.stack([seen["rows"] for seen in trained.watched.values()])  # [step, seed, number]
    titles = ["accuracy", "loss", *(f"{what} {name}" for name in sloped for what in ("mse", "cosine"))]
    curves = {"step": list(trained.watched)} | {title: rows[..., i].tolist() for i, title in enumerate(titles)}
    everyone = [{"trained": predictor(model, members[s])} | named[s] for s in seeds]
    plain = e.layers == 1 and not e.end_to_end
    return Result(
        e,
        _learners(
            everyone, held, [{"trained": compare.view(everyone[s]["trained"], held[s])} | views[s] for s in seeds]
        ),
        curves,
        data.autoencoder,
        _weights(members, data.matrices, data.rates[0]) if plain else {},
        data.examples,
    )


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
    everyone: list[dict[str, Predictor]], held: list[Episodes], views: list[dict[str, View]]
) -> dict[str, dict[str, list[float]]]:
    table: dict[str, dict[str, list[float]]] = {}
    mixed = [shuffled(episodes, generator(SHUFFLING, s)) for s, episodes in enumerate(held)]
    for name in everyone[0]:
        rows = []
        for s, episodes in enumerate(held):
            alike = compare.likeness(views[s]["trained"], views[s][name], episodes.query)
            rows.append(
                {
                    "accuracy": accuracy(views[s][name].answer, episodes.target),
                    "shuffled": accuracy(everyone[s][name](mixed[s]), episodes.target),
                    "loss": float(compare.half_square(views[s][name].answer, episodes.target)),
                    "cosine": alike.cosine if views[s][name].sensitivity.any() else float("nan"),
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


def _preconditioner(task: Membership, episodes: int, seed: int) -> Tensor:
    """The best preconditioner, fitted to several draws and averaged: one draw leaves noise that a cosine would show."""
    times = -(-episodes // CHUNK)
    draws = (task.draw(episodes // times, generator(TUNING, seed, i), torch.float64) for i in range(times))
    return torch.stack([optimum.fitted_preconditioner(sample) for sample in draws]).mean(0)


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
        "share of the first singular value": [
            float(sizes[0] / sizes.sum()) for sizes in map(torch.linalg.svdvals, best)
        ],
    }


def record(result: Result) -> dict[str, Any]:
    """The result as plain data, for JSON; what is undefined is null."""
    data = asdict(result)
    for row in data["learners"].values():
        for name, values in row.items():
            row[name] = [value if np.isfinite(value) else None for value in values]
    return data
