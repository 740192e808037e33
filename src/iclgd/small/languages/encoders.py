"""Words to numbers: one-hot, its principal components, and the common scaling of all codes."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from iclgd.errors import Refusal
from iclgd.small.languages.automaton import Words

Codes = Float[ndarray, "word dx"]
Encode = Callable[[Words], Codes]


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


def principal(x: Float[ndarray, "word dim"], dx: int) -> Linear:
    """The first ``dx`` principal components, scaled together so that E‖code‖² = dx: their proportions stay."""
    mean = x.mean(0)
    _, sizes, directions = np.linalg.svd(x - mean, full_matrices=False)
    rank = int((sizes > 1e-6 * sizes[0]).sum())
    if dx > rank:
        raise Refusal(f"the training words span {rank} dimensions, fewer than {dx}; lower --dims.")
    power = np.square(sizes[:dx]).sum() / len(x)
    return Linear(mean, directions[:dx].T * (dx / power) ** 0.5)


def centred(x: Float[ndarray, "word dim"]) -> Linear:
    """The codes themselves, centred and scaled together so that E‖code‖² is their dimension."""
    mean = x.mean(0)
    power = np.square(x - mean).sum(1).mean()
    return Linear(mean, np.eye(x.shape[1]) * (x.shape[1] / power) ** 0.5)
