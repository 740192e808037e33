"""What is trained: self-attention of any kind and depth, layers that learn as they read, alone or behind an MLP; and
the MLP's own GD reference."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import gelu

from iclgd.errors import Refusal
from iclgd.metrics.functions import Predict, half_square
from iclgd.small import attention, fast, learners
from iclgd.small.attention import Weights
from iclgd.small.fast import RULES
from iclgd.small.known import check_kind
from iclgd.small.moments import Moments
from iclgd.small.room import check_weights
from iclgd.small.train import Params
from iclgd.tasks.regression import Episodes

Answer = Float[Tensor, "*batch query dy"]
OPEN = 4.0  # a decay's level at the start: a state keeps 98% of itself a token


@dataclass(frozen=True)
class Transformer:
    """A stack of layers of one kind: self-attention, or a state that learns as it reads (`fast`).

    ``width`` > 0 puts an embedding R^(dx+dy) → R^width and a residual MLP of ``hidden`` gelu units in front, as
    von Oswald 2023 does for sine; attention then acts on R^width and the answer is minus the last coordinates.
    ``start`` is the standard deviation of the attention weights at the start.
    """

    dx: int
    dy: int = 1
    layers: int = 1
    heads: int = 1
    attention: str = "linear"
    shared: bool = False
    width: int = 0
    hidden: int = 160
    start: float = 0.02

    def __post_init__(self) -> None:
        check_kind(self.attention)
        if self.layers < 1 or self.heads < 1:
            raise Refusal(f"a model needs at least one layer and one head, not {self.layers} and {self.heads}.")
        if self.width and self.width < self.dy:
            raise Refusal(f"width {self.width} has no room for {self.dy} outputs; widen it.")
        check_weights(1 if self.shared else self.layers, self.heads, self.dim)

    @property
    def dim(self) -> int:
        return self.width or self.dx + self.dy

    def init(self, seed: int) -> Params:
        g = torch.Generator().manual_seed(seed)
        shape = (1 if self.shared else self.layers, self.heads, self.dim, self.dim)
        if self.attention in RULES:
            params = self._fast_init(shape, g)
        else:
            params = {name: torch.randn(shape, generator=g) * self.start for name in ("qk", "pv")}
        if self.width:
            params |= _mlp_init(self.dx + self.dy, self.width, self.hidden, g)
        return params

    def _fast_init(self, shape: tuple[int, int, int, int], g: torch.Generator) -> Params:
        """Keys and queries of the size of their tokens: at three small factors a gradient would vanish."""
        params = {name: torch.randn(shape, generator=g) / self.dim**0.5 for name in ("key", "query")}
        params["pv"] = torch.randn(shape, generator=g) * self.start
        for name in RULES[self.attention].gates:
            if name in ("rate", "decay"):
                params[name] = torch.zeros(*shape[:2], self.dim + 1)
                params[name][..., -1] = OPEN if name == "decay" else 0.0
            else:
                params[name] = torch.zeros(shape if name == "start" else shape[:2])
        return params

    def states(self, params: Params, episodes: Episodes) -> list[Float[Tensor, "*batch query dim"]]:
        """The query tokens before the first layer and after each.

        Linear attention takes the second moment of the demonstrations instead of their tokens.
        """
        if self.attention == "linear":
            context, query = self._tokens(params, episodes)
            return attention.query_states(attention.moment(context), query, _weights(params), self.layers)
        state, demos = torch.cat(self._tokens(params, episodes), -2), episodes.x.shape[-2]
        if self.attention in RULES:
            own = {name: params[name] for name in ("key", "query", "pv", *RULES[self.attention].gates)}
            return fast.states(state, demos, own, self.layers, self.attention)
        every = attention.states(state, demos, _weights(params), self.layers, self.attention)
        return [state[..., demos:, :] for state in every]

    def _tokens(self, params: Params, episodes: Episodes) -> tuple[Tensor, Tensor]:
        """The demonstrations' tokens and the queries', as the first layer sees them."""
        parts = attention.shown(episodes.x, episodes.y), attention.asked(episodes.query, self.dy)
        return (_mlp(params, parts[0]), _mlp(params, parts[1])) if self.width else parts

    def moment_loss(self, params: Params, episodes: Moments) -> Float[Tensor, ""]:
        """The loss of linear attention on tokens of which only the second moment was drawn."""
        slot = episodes.query.new_zeros(*episodes.query.shape[:-1], self.dy)
        query = torch.cat([episodes.query, slot], -1)
        last = attention.query_states(episodes.c, query, _weights(params), self.layers)[-1]
        return half_square(-last[..., -self.dy :], episodes.target)

    def predict(self, params: Params, episodes: Episodes) -> Answer:
        if self.attention == "linear" and self.layers == 1:
            return -attention.read_once(*self._tokens(params, episodes), _weights(params), self.dy)
        return -self.states(params, episodes)[-1][..., -self.dy :]

    def loss(self, params: Params, episodes: Episodes) -> Float[Tensor, ""]:
        return half_square(self.predict(params, episodes), episodes.target)


@dataclass(frozen=True)
class DeepFeatures:
    """The reference for a transformer with an MLP: one GD step on the head of a meta-learned network of x alone.

    Features are the residual MLP's output, the head starts at a learned W₀, and rate, head and features are trained
    (von Oswald 2023, §4). Departure: W₀ is learned rather than fixed at its random start.
    """

    dx: int
    dy: int = 1
    width: int = 40
    hidden: int = 160

    def init(self, seed: int) -> Params:
        g = torch.Generator().manual_seed(seed)
        params = _mlp_init(self.dx, self.width, self.hidden, g)
        return params | {"rate": torch.zeros(()), "head": torch.zeros(self.dy, self.width)}

    def predict(self, params: Params, episodes: Episodes) -> Answer:
        features = _mlp(params, episodes.x)
        w = learners.gd(features, episodes.y, params["rate"].exp(), start=params["head"])
        return learners.predict(w, _mlp(params, episodes.query))

    def loss(self, params: Params, episodes: Episodes) -> Float[Tensor, ""]:
        return half_square(self.predict(params, episodes), episodes.target)


def predictor(model: Transformer | DeepFeatures, params: Params) -> Predict:
    return lambda episodes: model.predict(params, episodes)


def _weights(params: Params) -> Weights:
    return Weights(params["qk"], params["pv"])


def _mlp_init(inputs: int, width: int, hidden: int, g: torch.Generator) -> Params:
    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=g) / shape[-1] ** 0.5

    return {
        "embed": normal(width, inputs),
        "in": normal(hidden, width),
        "in_bias": torch.zeros(hidden),
        "out": normal(width, hidden),
        "out_bias": torch.zeros(width),
    }


def _mlp(params: Params, x: Float[Tensor, "*batch token inputs"]) -> Float[Tensor, "*batch token width"]:
    e = x @ params["embed"].mT
    return e + gelu(e @ params["in"].mT + params["in_bias"]) @ params["out"].mT + params["out_bias"]
