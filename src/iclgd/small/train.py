"""One small trainer: many members of a kind train at once, as one tensor program.

A member is a seed, a learning rate, a width, or all of them. Parameters are stacked along a leading member axis, the
loss is written for one member and mapped over all, and Adam and clipping treat every member on its own, so that
training together gives the numbers of training apart.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.func import vmap

from iclgd.errors import Refusal

Params = dict[str, Tensor]
Loss = Callable[[Params, Any], Tensor]


@dataclass(frozen=True)
class Adam:
    """Adam with per-member rates and global-norm clipping; the rate falls to zero along a half cosine if ``decay``."""

    rates: Float[Tensor, " member"]
    betas: tuple[float, float] = (0.9, 0.98)
    clip: float | None = None
    decay: bool = True
    epsilon: float = 1e-8


@dataclass(frozen=True)
class Trained:
    params: Params
    """Stacked along the member axis."""
    loss: Float[Tensor, "step member"]
    """The training loss of every step."""
    watched: dict[int, dict[str, Tensor]]
    """What ``watch`` returned, by step: after 0 steps, every ``every`` steps, and at the end."""


def stack(members: list[Params]) -> Params:
    """Members become one; all must have the same shapes (pad a narrow one with zeros: zero units stay zero)."""
    return {name: torch.stack([member[name] for member in members]) for name in members[0]}


def member(params: Params, index: int) -> Params:
    return {name: value[index] for name, value in params.items()}


def alone(loss: Loss) -> Loss:
    """What ``vmap(loss)`` gives of one member, to rounding; mapping costs a fifth of a small model's step."""
    return lambda params, batch: loss(member(params, 0), _first(batch))[None]


def _first(batch: Any) -> Any:
    """What the first member sees of a batch: a tensor, or a tuple of them that may have names."""
    if isinstance(batch, Tensor):
        return batch[0]
    parts = tuple(map(_first, batch))
    return type(batch)(*parts) if hasattr(batch, "_fields") else parts


@contextmanager
def one_thread() -> Iterator[None]:
    """Small tensors train many times faster on one thread than on two that wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def train(
    loss: Loss,
    params: Params,
    batch: Callable[[int], Any],
    steps: int,
    adam: Adam,
    watch: Callable[[Params], dict[str, Tensor]] | None = None,
    every: int = 0,
) -> Trained:
    """Minimise ``loss(params, batch)`` for every member at once.

    ``loss`` sees one member and returns a scalar; ``params`` and each ``batch(step)`` have a leading member axis.
    ``watch`` sees the stacked parameters. A member whose loss stops being finite hurts no other; if none is left the
    run is refused.
    """
    params = {name: value.detach().clone().requires_grad_() for name, value in params.items()}
    names = list(params)
    first, second = ({name: torch.zeros_like(params[name]) for name in names} for _ in range(2))
    losses, watched = [], {}
    mapped = vmap(loss) if len(adam.rates) > 1 else alone(loss)
    with one_thread():
        for step in range(steps):
            if watch and every and step % every == 0:
                watched[step] = watch(detached(params))
            value = mapped(params, batch(step))
            if not value.isfinite().any():
                rates = ", ".join(f"{rate:g}" for rate in adam.rates.unique().tolist())
                raise Refusal(f"training diverged at step {step} with learning rate {rates}; lower the rate.")
            gradients = dict(zip(names, torch.autograd.grad(value.sum(), [params[n] for n in names]), strict=True))
            losses.append(value.detach())
            _step(params, gradients, first, second, step, steps, adam)
        if watch:
            watched[steps] = watch(detached(params))
    return Trained(detached(params), torch.stack(losses), watched)


def detached(params: Params) -> Params:
    return {name: value.detach() for name, value in params.items()}


@torch.no_grad()
def _step(params: Params, gradients: Params, first: Params, second: Params, step: int, steps: int, adam: Adam) -> None:
    beta1, beta2 = adam.betas
    fall = 0.5 * (1 + torch.cos(torch.tensor(torch.pi * step / steps))) if adam.decay else 1.0
    scale = None
    if adam.clip is not None:
        norm = sum(g.reshape(g.shape[0], -1).square().sum(1) for g in gradients.values()) ** 0.5  # [member]
        scale = adam.clip / norm.clamp_min(adam.clip)
    for name, value in params.items():
        rest = (-1, *[1] * (value.ndim - 1))
        gradient = gradients[name] if scale is None else gradients[name] * scale.view(rest)
        first[name].lerp_(gradient, 1 - beta1)
        second[name].mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
        mean = first[name] / (1 - beta1 ** (step + 1))
        spread = (second[name] / (1 - beta2 ** (step + 1))).sqrt_().add_(adam.epsilon)
        value -= (adam.rates.to(value.dtype) * fall).view(rest) * mean / spread
