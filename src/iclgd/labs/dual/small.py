"""One softmax attention layer trained in context, on regressions or anything that draws episodes, modified or not."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import torch
from jaxtyping import Float
from torch import Tensor
from torch.func import vmap

from iclgd.errors import Refusal
from iclgd.labs.dual.modified import Adapter, Augmented, Block, Modification, attend
from iclgd.labs.dual.panels import check_task
from iclgd.small.learners import preconditioned
from iclgd.small.learners import predict as predict_linear
from iclgd.small.optimum import fitted_preconditioner
from iclgd.small.streams import generator, stream
from iclgd.small.train import Adam, Params, stack, train
from iclgd.tasks.families import FAMILIES
from iclgd.tasks.regression import Episodes, Inputs, Regression

HIDDEN = 32  # units of a parallel adapter
TESTING, FITTING = 20, 21  # what a generator is for: the first part of its key
FITTED = 2**15  # episodes that the reference's matrix is fitted on


@dataclass(frozen=True)
class Through:
    """y = link(z), z = w·x with w drawn for each episode so that z has variance ``scale``² for x ~ U(−1, 1)."""

    link: Callable[[Tensor], Tensor]
    scale: float = 1.0
    dy: int = 1

    def draw(self, x: Float[Tensor, "batch point dx"], generator: torch.Generator) -> Float[Tensor, "batch point 1"]:
        w = torch.randn(x.shape[0], x.shape[-1], 1, generator=generator, dtype=x.dtype)
        return self.link(x @ w * self.scale * (3 / x.shape[-1]) ** 0.5)


# The slides name the three tasks and not their formulas: these are ours.
LINKS = {
    "linear": Through(torch.positive),
    "trigonometric": Through(torch.sin),
    "exponential": Through(torch.exp, 0.5),  # exp of a standard normal has too heavy a tail to compare losses
}


class Task(Protocol):
    """Anything that draws episodes can be trained on."""

    def draw(self, episodes: int, generator: torch.Generator, /) -> Episodes: ...


class Source(NamedTuple):
    """Where one seed's episodes come from: often the same task twice, or one with words that training does not see."""

    train: Task
    test: Task

    def held(self, seed: int, episodes: int) -> Episodes:
        return self.test.draw(episodes, generator(TESTING, seed))


def find_task(name: str, dx: int, demos: int) -> Regression:
    """One of the three panels' regressions, or a family of the linear lab."""
    if name in LINKS:
        return Regression(Inputs.uniform(dx, 2.0), LINKS[name], demos)
    check_task(name)
    if name.startswith("sine") and dx != 1:
        raise Refusal(f"{name} has one input, not {dx}: give `dx` 1.")
    return FAMILIES[name](dx, 1, demos, 0.0)


def adapters_of(modification: Modification) -> tuple[str, ...]:
    """Which parallel adapters are trained with the layer: g1 on values, g2 on keys."""
    if not isinstance(modification, Augmented):
        return ()
    return ("g1", "g2") if modification.adapters == "both" else (modification.adapters,)


def with_params(modification: Modification, params: Params) -> Modification:
    """The modification with its adapters as they are trained now."""
    made = {g: Adapter(params[f"{g}_w1"], params[f"{g}_w2"]) for g in adapters_of(modification)}
    if not isinstance(modification, Augmented):
        return modification
    return replace(modification, value=made.get("g1"), key=made.get("g2"))


def start(dim: int, seed: int, adapters: tuple[str, ...] = ()) -> Params:
    """Fresh parameters. An adapter's second matrix starts at 0: plain and augmented arms start as the same function."""
    g = torch.Generator().manual_seed(seed)
    params = {name: torch.randn(dim, dim, generator=g) / dim**0.5 for name in ("query", "key", "value")}
    for name in adapters:
        params[f"{name}_w1"] = torch.randn(HIDDEN, dim, generator=g) / dim**0.5
        params[f"{name}_w2"] = torch.zeros(dim, HIDDEN)
    return params


def predict(params: Params, episodes: Episodes, modification: Modification) -> Float[Tensor, "batch dy"]:
    """The label slot of W_V X softmax((W_K X)ᵀ W_Q x_q / √d), X the demonstrations (x, y) and the query (x, 0)."""
    asked = torch.cat([episodes.query, torch.zeros_like(episodes.target)], -1)
    tokens = torch.cat([torch.cat([episodes.x, episodes.y], -1), asked], -2)  # batch demo+1 dim
    count = tokens.shape[-2]
    block = Block(torch.cat([torch.arange(count - 1), torch.tensor([-1])]), torch.tensor([count - 1]))
    queries, keys, values = (t @ params[n].mT for n, t in (("query", asked), ("key", tokens), ("value", tokens)))
    out = attend(queries, keys, values, block, with_params(modification, params), tokens)
    return out[..., 0, -episodes.target.shape[-1] :]


def loss(params: Params, episodes: Episodes, modification: Modification) -> Tensor:
    """Mean squared error."""
    return (predict(params, episodes, modification) - episodes.target[..., 0, :]).square().mean()


@dataclass(frozen=True)
class Recipe:
    """How a layer is trained; an epoch is a number of steps on fresh episodes."""

    epochs: int = 100
    steps: int = 20
    batch: int = 128
    rate: float = 1e-2
    episodes: int = 4096  # to test on


def curves(
    members: Sequence[tuple[int, Source]], modification: Modification, recipe: Recipe
) -> Float[Tensor, "epoch member"]:
    """Test loss before training and after each epoch, for members given by seed and source, all trained at once.

    The episodes of a step do not depend on the modification, so modifications are compared on the same data from the
    same start; nor do they depend on who trains beside a member. A seed that diverges ends in nan.
    """
    drawn = [source.held(seed, recipe.episodes) for seed, source in members]
    held = Episodes(*map(torch.stack, zip(*drawn, strict=True)))  # [member, episode, ...]
    dim = held.x.shape[-1] + held.y.shape[-1]

    def watch(now: Params) -> dict[str, Tensor]:
        return {"test": vmap(lambda one, asked: loss(one, asked, modification))(now, held)}

    done = train(
        lambda one, episodes: loss(one, episodes, modification),
        stack([start(dim, seed, adapters_of(modification)) for seed, _ in members]),
        stream([(seed, source.train.draw) for seed, source in members], recipe.batch),
        recipe.epochs * recipe.steps,
        Adam(torch.full((len(members),), recipe.rate)),
        watch,
        recipe.steps,
    )
    return torch.stack([done.watched[step]["test"] for step in sorted(done.watched)])


def centred(episodes: Episodes) -> tuple[Episodes, Float[Tensor, "*batch 1 dy"]]:
    """Episodes with the demonstrations' mean input and label taken off everything, and that mean label."""
    x, y = episodes.x.mean(-2, keepdim=True), episodes.y.mean(-2, keepdim=True)
    return Episodes(episodes.x - x, episodes.y - y, episodes.query - x, episodes.target - y), y


def gd_reference(source: Source, seed: int, episodes: int) -> Float[Tensor, ""]:
    """Test loss of one gradient step, ȳ + Σ_i (y_i − ȳ) (x_i − x̄)ᵀ A (x_q − x̄) / N, on the episodes of `curves`.

    What a centred, preconditioned step can do without any softmax: A is fitted by least squares to training episodes.
    """
    matrix = fitted_preconditioner(centred(source.train.draw(FITTED, generator(FITTING, seed)))[0])
    held, _ = centred(source.held(seed, episodes))
    answers = predict_linear(preconditioned(held.x, held.y, matrix.to(held.x)), held.query)
    return (answers - held.target).square().mean()
