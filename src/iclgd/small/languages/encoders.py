"""Words to numbers: what an encoder is, those there are, and the common scaling of all codes.

A stranger's encoder is one class with one method:

    @dataclass(frozen=True)
    class Counts(Encoder):
        def fit(self, given: Material) -> Encode:
            return lambda words: np.stack([(words == s).sum(1) for s in range(given.symbols)], 1)
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray
from pydantic import Field

from iclgd.errors import Refusal
from iclgd.registry import Registry
from iclgd.small.languages.automaton import Words

Codes = Float[ndarray, "word dx"]
Encode = Callable[[Words], ndarray]


class Material(NamedTuple):
    """What the encoder of one seed is fitted on. The test words are there to be judged on, not to be fitted."""

    words: Int[ndarray, "_ position"]
    test: Int[ndarray, "_ position"]
    symbols: int
    lengths: range
    dims: int
    seed: int


class Fitted(NamedTuple):
    encode: Encode
    curves: Mapping[str, Sequence[float]] = {}
    """Where the encoder was trained: ``step``, and what was watched on test words."""
    kept: Mapping[str, ndarray] = {}
    """What a page needs to code a word by itself: ``mean`` and ``matrix`` of the last map, and before it, for a
    recurrent encoder, ``read``, ``keep``, ``gates`` and ``code``. Nothing where a page cannot."""


class Encoder:
    """Fitted on the training words of a seed, without any label; then it codes words."""

    version: ClassVar[int] = 1  # rises when the same options would give other codes
    end_to_end: ClassVar[bool] = False
    """Whether codes are only the input of an MLP that is trained together with the layers."""

    def fit(self, given: Material) -> Encode:
        """A function from rows of symbol numbers to rows of numbers; these are centred and scaled afterwards."""
        raise NotImplementedError

    def fit_all(self, given: Sequence[Material]) -> list[Fitted]:
        """For every seed; an encoder that trains all seeds as one program has its own."""
        return [Fitted(standard(self.fit(one), one.words).encode) for one in given]


ENCODERS: Registry[type[Encoder]] = Registry("encoder", "iclgd known", "iclgd.encoders")


def one_hot(words: Words, symbols: int) -> Float[ndarray, "word dim"]:
    """A block of ``symbols`` + 1 numbers for every position; the last of them marks padding."""
    return np.eye(symbols + 1, dtype=np.float32)[words].reshape(len(words), -1)


@dataclass(frozen=True, eq=False)
class Linear:
    """x ↦ (x − mean) · matrix, on one-hot words or on other codes."""

    mean: Float[ndarray, " dim"]
    matrix: Float[ndarray, "dim dx"]

    def __call__(self, x: Float[ndarray, "word dim"]) -> Codes:
        return ((x - self.mean) @ self.matrix).astype(np.float32)

    def kept(self) -> dict[str, ndarray]:
        return {"mean": self.mean, "matrix": self.matrix}


def principal(x: Float[ndarray, "word dim"], dx: int) -> Linear:
    """The first ``dx`` principal components, scaled together so that E‖code‖² = dx: their proportions stay."""
    mean = x.mean(0)
    _, sizes, directions = np.linalg.svd(x - mean, full_matrices=False)
    rank = int((sizes > 1e-6 * sizes[0]).sum())
    if dx > rank:
        raise Refusal(f"the training words span {rank} dimensions, fewer than {dx}; lower `dims`.")
    power = np.square(sizes[:dx]).sum() / len(x)
    return Linear(mean, directions[:dx].T * (dx / power) ** 0.5)


def centred(x: Float[ndarray, "word dim"]) -> Linear:
    """The codes themselves, centred and scaled together so that E‖code‖² is their dimension."""
    mean = x.mean(0)
    power = np.square(x - mean).sum(1).mean()
    if not power > 0:
        raise Refusal("the encoder gives every training word the same code; choose another `encoder`.")
    return Linear(mean, np.eye(x.shape[1]) * (x.shape[1] / power) ** 0.5)


def standard(encode: Encode, words: Int[ndarray, "_ position"]) -> Fitted:
    """The same codes, centred and scaled by one number over these words, and the map that does it."""

    def codes(some: Words) -> ndarray:
        made = np.asarray(encode(some))
        return made if made.dtype == np.float32 else made.astype(np.float64)

    scale = centred(codes(words))
    return Fitted(lambda some: scale(codes(some)), kept=scale.kept())


@dataclass(frozen=True)
class PrincipalComponents(Encoder):
    """The first principal components of one-hot words."""

    def fit_all(self, given: Sequence[Material]) -> list[Fitted]:
        return [self.fitted(one) for one in given]  # scaled by `principal`

    def fitted(self, given: Material) -> Fitted:
        components = principal(one_hot(given.words, given.symbols), given.dims)
        return Fitted(lambda words: components(one_hot(words, given.symbols)), kept=components.kept())

    def fit(self, given: Material) -> Encode:
        return self.fitted(given).encode


@dataclass(frozen=True)
class EndToEnd(Encoder):
    """One-hot words, for an MLP that is trained together with the layers (von Oswald 2023 does so for sines)."""

    end_to_end: ClassVar[bool] = True

    def fit_all(self, given: Sequence[Material]) -> list[Fitted]:
        return [Fitted(self.fit(one)) for one in given]  # as they are

    def fit(self, given: Material) -> Encode:
        return lambda words: one_hot(words, given.symbols)


@dataclass(frozen=True)
class StringAutoencoder(Encoder):
    """A recurrent autoencoder, trained on words."""

    steps: Annotated[int, Field(ge=1)] = 1000

    def fit_all(self, given: Sequence[Material]) -> list[Fitted]:
        from iclgd.small.languages.autoencoder import fit_words

        return fit_words(given, self.steps)

    def fit(self, given: Material) -> Encode:
        return self.fit_all([given])[0].encode


ENCODERS.add("autoencoder", StringAutoencoder)
ENCODERS.add("pca", PrincipalComponents)
ENCODERS.add("end-to-end", EndToEnd)
