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
    flat = torch.cat([value.detach().reshape(len(value), -1) for value in params.values()], 1)
    params = _views(flat, params)
    first, second = torch.zeros_like(flat), torch.zeros_like(flat)
    losses, watched = [], {}
    mapped = vmap(loss) if len(adam.rates) > 1 else alone(loss)
    with one_thread():
        for step in range(steps):
            if watch and every and step % every == 0:
                watched[step] = watch(_copied(params))
            value = mapped(params, batch(step))
            if not value.isfinite().any():
                rates = ", ".join(f"{rate:g}" for rate in adam.rates.unique().tolist())
                raise Refusal(f"training diverged at step {step} with learning rate {rates}; lower the rate.")
            gradients = torch.autograd.grad(value.sum(), list(params.values()))
            losses.append(value.detach())
            _step(flat, torch.cat([g.reshape(len(g), -1) for g in gradients], 1), first, second, step, steps, adam)
        if watch:
            watched[steps] = watch(_copied(params))
    return Trained(_copied(params), torch.stack(losses), watched)


def _views(flat: Float[Tensor, "member number"], like: Params) -> Params:
    """Leaves to differentiate by that lie in ``flat``: all parameters take a step as one tensor."""
    parts = flat.split([value[0].numel() for value in like.values()], 1)
    return {
        name: part.view(value.shape).detach().requires_grad_()
        for (name, value), part in zip(like.items(), parts, strict=True)
    }


def _copied(params: Params) -> Params:
    """Parameters as they are now, whatever steps follow."""
    return {name: value.detach().clone() for name, value in params.items()}


@torch.no_grad()
def _step(
    flat: Float[Tensor, "member number"],
    gradient: Float[Tensor, "member number"],
    first: Float[Tensor, "member number"],
    second: Float[Tensor, "member number"],
    step: int,
    steps: int,
    adam: Adam,
) -> None:
    beta1, beta2 = adam.betas
    fall = 0.5 * (1 + torch.cos(torch.tensor(torch.pi * step / steps))) if adam.decay else 1.0
    if adam.clip is not None:
        norm = torch.linalg.vector_norm(gradient, dim=1, keepdim=True)
        gradient = gradient * (adam.clip / norm.clamp_min(adam.clip))
    first.lerp_(gradient, 1 - beta1)
    second.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
    mean = first / (1 - beta1 ** (step + 1))
    spread = (second / (1 - beta2 ** (step + 1))).sqrt_().add_(adam.epsilon)
    flat -= (adam.rates.to(flat.dtype) * fall)[:, None] * mean / spread
