"""Regression families: each episode draws a function and shows it through (x, y) pairs.

A family is a law of inputs, a law of functions, and noise. Noise falls on the demonstrations only: targets are the
function itself, so the risk of a learner is its distance to the function and not to one more noisy draw.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from iclgd.errors import Refusal
from iclgd.registry import versioned
from iclgd.tasks.families import check_mean
from iclgd.tasks.laws import Function, Inputs, Law, LinearMap, Quadratic, ReluNetwork, Sine, Sparse, Tree


class Episodes(NamedTuple):
    """Demonstrations and the queries asked about them; a tuple, so that it maps over members as one tree."""

    x: Float[Tensor, "*batch demo dx"]
    y: Float[Tensor, "*batch demo dy"]
    query: Float[Tensor, "*batch query dx"]
    target: Float[Tensor, "*batch query dy"]


@dataclass(frozen=True, eq=False)
class Regression:
    """A family of regressions with ``demos`` demonstrations an episode.

    ``noise`` is the standard deviation of the demonstrations' labels, or with ``noise_varies`` the largest one: each
    episode then draws its own from U(0, noise) (Vladymyrov 2024).
    """

    inputs: Inputs
    function: Function
    demos: int
    noise: float = 0.0
    noise_varies: bool = False

    def __post_init__(self) -> None:
        if self.demos < 1:
            raise Refusal(f"an episode needs at least one demonstration, not {self.demos}; raise `k`.")
        if not 0 <= self.noise < math.inf:
            raise Refusal(f"noise is a standard deviation and cannot be {self.noise}; give 0 or more.")

    def draw(
        self, episodes: int, generator: Generator, queries: int = 1, dtype: torch.dtype = torch.float32
    ) -> Episodes:
        x = self.inputs.draw(episodes, self.demos + queries, generator, dtype)
        y = self.function.draw(x, generator)
        shown = y[:, : self.demos]
        if self.noise:
            level = torch.rand(episodes, 1, 1, generator=generator, dtype=dtype) if self.noise_varies else 1.0
            shown = shown + self.noise * level * torch.randn(shown.shape, generator=generator, dtype=dtype)
        return Episodes(x[:, : self.demos], shown, x[:, self.demos :], y[:, self.demos :])


def corrupt(episodes: Episodes, labels: int, generator: Generator) -> Episodes:
    """The first ``labels`` labels of each episode replaced by standard normal noise (von Oswald 2023, appendix)."""
    if not 0 <= labels <= episodes.y.shape[-2]:
        raise Refusal(f"cannot replace {labels} of {episodes.y.shape[-2]} labels; give a number between 0 and that.")
    y = episodes.y.clone()
    y[..., :labels, :] = torch.randn(y[..., :labels, :].shape, generator=generator, dtype=y.dtype)
    return episodes._replace(y=y)


def _family(
    inputs: Callable[[int], Inputs],
    function: Callable[[Inputs, int], Function],
    one_output: bool = True,
    version: int = 1,
) -> Callable[..., Regression]:
    @versioned(version)
    def build(
        dx: int,
        dy: int,
        demos: int,
        noise: float,
        law: Law | None = None,
        deviations: Sequence[float] = (),
        weight_mean: Sequence[float] = (),
    ) -> Regression:
        if dx < 1 or dy < 1:
            raise Refusal(f"a regression needs at least one input and one output, not {dx} and {dy}.")
        if one_output and dy != 1:
            raise Refusal(f"this family has one output, not {dy}; choose a linear family for more.")
        drawn = inputs(dx).changed(law, deviations)
        return Regression(drawn, centred(function(drawn, dy), weight_mean), demos, noise)

    return build


def centred(function: Function, mean: Sequence[float]) -> Function:
    """Linear functions with weights of this mean: one number for all of them, or one for each input."""
    if not mean:
        return function
    if not isinstance(function, LinearMap):
        raise Refusal("only linear functions have weights; leave out `weight_mean`.")
    dx = function.covariance.shape[0]
    check_mean(mean, dx)
    return replace(function, mean=torch.tensor(mean, dtype=torch.float64).expand(function.dy, dx))


def _skewed(dx: int) -> Inputs:
    """Standard deviations 1, 1, ½, ¼, 1, repeated: Ahn 2023's covariance."""
    deviation = torch.tensor([1, 1, 0.5, 0.25, 1], dtype=torch.float64).repeat(dx // 5 + 1)[:dx]
    return Inputs(torch.diag(deviation**2))


def _line(dx: int) -> Inputs:
    if dx != 1:
        raise Refusal(f"sine has one input, not {dx}; leave out `dx`.")
    return Inputs.uniform(1, width=10.0)


linear = _family(Inputs.uniform, lambda law, dy: LinearMap.isotropic(law.dx, dy), False)
gaussian = _family(Inputs.normal, lambda law, dy: LinearMap.isotropic(law.dx, dy), False)
skewed = _family(_skewed, LinearMap.inverse, False)
sine = _family(_line, lambda law, dy: Sine())
sine_one_key = _family(_line, lambda law, dy: Sine(one_key=True))
sparse = _family(Inputs.normal, lambda law, dy: Sparse())
quadratic = _family(Inputs.normal, lambda law, dy: Quadratic())
relu = _family(Inputs.normal, lambda law, dy: ReluNetwork())
tree = _family(Inputs.normal, lambda law, dy: Tree())
