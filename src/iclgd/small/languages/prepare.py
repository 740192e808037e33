"""What comes before labels: words drawn and split, codes fitted, and the learners tuned on training episodes.

Every seed has its own split, its own non-members and its own encoder.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from iclgd.errors import Refusal
from iclgd.metrics.functions import Predict
from iclgd.registry import suggest
from iclgd.small.languages.autoencoder import Autoencoder, train_autoencoder
from iclgd.small.languages.automaton import MOST_WORDS, Language, decode
from iclgd.small.languages.encoders import Encode, centred, one_hot, principal
from iclgd.small.languages.expressions import check_alphabet, language
from iclgd.small.languages.membership import Membership, Split, membership, split_many, split_one
from iclgd.small.languages.optimum import best_classifier, best_preconditioner, best_rate
from iclgd.small.languages.references import no_context, references
from iclgd.small.languages.regbench import random_languages
from iclgd.small.languages.words import check_negatives, uniform
from iclgd.small.streams import generator
from iclgd.small.train import Params, member, one_thread

ENCODERS = ("pca", "autoencoder", "end-to-end")
LETTERS = "abcd"  # of random languages
MOST_DIMS = 40
SAMPLE = 2000  # episodes that the ridge penalty is tuned on
TUNING = 11  # what a generator is for: the first part of its key


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
    seed: int = 0
    """The first seed."""
    seeds: int = 5
    encoder_steps: int = 1000

    def __post_init__(self) -> None:
        check_negatives(self.negatives)
        if self.language != "random":
            language(self.language, self.alphabet)  # refuses what is none
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
        if min(self.dims, self.seeds, self.encoder_steps) < 1 or self.languages < 5:
            raise Refusal("dimensions, seeds and steps are at least one, and languages at least five.")
        if self.dims > MOST_DIMS:
            raise Refusal(f"codes of {self.dims} dimensions are too wide for this lab; {MOST_DIMS} is the most.")
        if not 0 <= self.seed < 2**32 - self.seeds:
            raise Refusal("seeds lie between 0 and 4294967295.")
        if self.max_length > 40:
            raise Refusal(f"words of {self.max_length} symbols are too long for this lab; 40 is the most.")

    @property
    def lengths(self) -> range:
        return range(self.min_length, self.max_length + 1)

    @property
    def members(self) -> range:
        """The seeds, trained together."""
        return range(self.seed, self.seed + self.seeds)


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
    matrices: list[Tensor | None]
    """The best preconditioners; none for one-hot words, which are too wide."""
    learners: list[dict[str, Predict]]
    autoencoder: dict[str, Any]
    """The autoencoder's validation curves, where there is one."""
    examples: dict[str, list[str]]

    def tasks(self, demos: int, signs: bool) -> list[tuple[Membership, Membership]]:
        """Training and test episodes of every seed; ``signs``: each episode draws the sign of its labels."""
        pairs = zip(self.splits, self.encoders, strict=True)
        return [(membership(s.train, code, demos, signs), membership(s.test, code, demos, signs)) for s, code in pairs]


def prepare(data: Data) -> Prepared:
    """Draw and split the words, fit the encoders on the training side, and tune the learners there."""
    with one_thread():
        splits, letters = _splits(data)
        encoders, curves = _encoders(data, splits, len(letters))
        tasks = [membership(s.train, code, data.demos, False) for s, code in zip(splits, encoders, strict=True)]
        rates = [best_rate(task) for task in tasks]
        matrices = [None if data.encoder == "end-to-end" else best_preconditioner(task) for task in tasks]
        tuned = [
            references(task.draw(SAMPLE, generator(TUNING, seed), dtype=torch.float64), rate, matrix)
            | {"no context": no_context(best_classifier(task))}
            for task, seed, rate, matrix in zip(tasks, data.members, rates, matrices, strict=True)
        ]
    first = splits[0].train[0].demos
    examples = {"members": decode(first.members[-4:], letters), "others": decode(first.others[-4:], letters)}
    return Prepared(splits, encoders, rates, matrices, tuned, curves, examples)


def _splits(data: Data) -> tuple[list[Split], str]:
    """The words of every seed, and their alphabet."""
    if data.language == "random":
        letters = check_alphabet(data.alphabet or LETTERS)
        if len(letters) ** data.max_length > MOST_WORDS:
            raise Refusal(
                f"there are more than 2⁶³ words of length {data.max_length} over {letters}; lower --max-length."
            )

        def families(random: np.random.Generator) -> Iterator[Language]:
            return random_languages(letters, random, (4, 8))

        def drawn(seed: int) -> Split:
            return split_many(families, data.languages, data.negatives, data.lengths, seed)

    else:
        chosen = language(data.language, data.alphabet)
        letters = chosen.alphabet

        def drawn(seed: int) -> Split:
            return split_one(chosen, data.negatives, data.lengths, seed)

    return [drawn(seed) for seed in data.members], letters


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
        [_with_others(data, *given, symbols) for given in zip(data.members, train_words, test_words, strict=True)],
        test_words,
        data.members,
        data.encoder_steps,
    )
    raw = [_coder(model, member(trained.params, seed)) for seed in range(data.seeds)]
    scaled = [centred(code(words)) for code, words in zip(raw, train_words, strict=True)]
    return [_after(map_, code) for map_, code in zip(scaled, raw, strict=True)], trained.curves


def _with_others(data: Data, seed: int, words: np.ndarray, tested: np.ndarray, symbols: int) -> np.ndarray:
    """The training words and about as many uniform words, none of them a test word.

    A few dozen words are learned by heart; with others among them the code has to be of use for words not seen.
    """
    copies = -(-2000 // len(words))
    random = np.random.default_rng([seed, 3])
    more = uniform(2 * copies * len(words), data.lengths, symbols, random)
    known = {row.tobytes() for row in tested}
    fresh = more[[row.tobytes() not in known for row in more]]
    return np.concatenate([np.tile(words, (copies, 1)), fresh[: copies * len(words)]])


def _after(outer: Callable[[np.ndarray], np.ndarray], inner: Encode) -> Encode:
    return lambda words: outer(inner(words))


def _coder(model: Autoencoder, params: Params) -> Encode:
    return lambda words: model.encode(params, torch.from_numpy(words)).numpy()
