"""Changes of a block's parameters: for each query its own, or one for all; and how they get into the weights."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from iclgd.models.mlps import is_transposed
from iclgd.models.subject import Subject


@dataclass(frozen=True)
class Outer:
    """left ⊗ right, for each query its own."""

    left: Float[Tensor, "query out"]
    right: Float[Tensor, "query in"]

    def __call__(self, x: Float[Tensor, "query token in"]) -> Float[Tensor, "query token out"]:
        return (x @ self.right[..., None]) * self.left[:, None]

    @property
    def norms(self) -> Float[Tensor, " query"]:
        """Spectral and Frobenius norm alike: the rank is one."""
        return self.left.norm(dim=-1) * self.right.norm(dim=-1)

    def of(self, query: int) -> Float[Tensor, "out in"]:
        return torch.outer(self.left[query], self.right[query])


@dataclass(frozen=True)
class Added:
    """What is added to the parameters of one block, the same for every query."""

    last: Float[Tensor, "out in"] | None = None
    bias: Float[Tensor, " out"] | None = None
    gain: Float[Tensor, " out"] | None = None
    first: tuple[Float[Tensor, "_ _"], ...] = ()

    def output(self, g: Float[Tensor, "query token in"]) -> Float[Tensor, "query token out"]:
        """What it adds to the last map's output."""
        if self.bias is not None:
            return self.bias.expand(*g.shape[:2], -1)
        assert self.last is not None
        return g @ self.last.T


@dataclass(frozen=True)
class Own:
    """What is added to the parameters of one block, for each query its own."""

    last: Outer | None = None
    bias: Float[Tensor, "query out"] | None = None
    gain: Float[Tensor, "query out"] | None = None
    first: tuple[Outer, ...] = ()

    def output(self, g: Float[Tensor, "query token in"]) -> Float[Tensor, "query token out"]:
        if self.bias is not None:
            return self.bias[:, None].expand(-1, g.shape[1], -1)
        assert self.last is not None
        return self.last(g)

    def of(self, query: int) -> Added:
        return Added(
            None if self.last is None else self.last.of(query),
            None if self.bias is None else self.bias[query],
            None if self.gain is None else self.gain[query],
            tuple(outer.of(query) for outer in self.first),
        )


# the weights themselves


@contextmanager
def written(subject: Subject, added: Sequence[Added]) -> Iterator[None]:
    """The patches in the model's own parameters; those come back bit for bit, whatever happens."""
    with ExitStack() as stack, torch.no_grad():
        for mlp, patch in zip(subject.layout.mlps(), added, strict=True):
            for module, change in ((mlp.last, patch.last), *zip(mlp.first, patch.first, strict=False)):
                if change is not None:
                    _add(stack, module.weight, change.T if is_transposed(module) else change)
            if patch.gain is not None:
                assert mlp.norm is not None
                _add(stack, mlp.norm.weight, patch.gain)
            if patch.bias is not None:
                _add_bias(stack, mlp.last, patch.bias)
        yield


def _add(stack: ExitStack, parameter: Any, change: Tensor) -> None:
    before = parameter.detach().clone()
    stack.callback(lambda: parameter.data.copy_(before))
    parameter.add_(change.to(parameter))


def _add_bias(stack: ExitStack, module: Any, bias: Tensor) -> None:
    """A map without a bias gets one for the time being."""
    if module.bias is not None:
        _add(stack, module.bias, bias)
        return
    stack.callback(lambda: setattr(module, "bias", None))
    module.bias = nn.Parameter(bias.to(module.weight), requires_grad=False)
