"""Seeds of one stack, trained as one tensor program."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch

from iclgd.errors import Refusal
from iclgd.labs.linear.stacks import OneStack
from iclgd.small import moments
from iclgd.small.streams import stream
from iclgd.small.train import Adam, Params, Trained, member, stack, train


def fitted(specs: Sequence[OneStack]) -> list[Params]:
    """The parameters of each seed; cells differ in nothing else. Moments are drawn where they are all that is seen."""
    cell = specs[0]
    model, task = cell.model, cell.family
    by_moments = model.attention == "linear" and moments.exact(task)
    draw: Any = partial(moments.draw, task) if by_moments else task.draw
    trained = train(
        model.moment_loss if by_moments else model.loss,
        stack([model.init(spec.seed) for spec in specs]),
        stream([(spec.seed, draw) for spec in specs], cell.batch),
        cell.steps,
        Adam(torch.full((len(specs),), cell.rate), clip=cell.clip),
    )
    return members(specs, trained)


def members(specs: Sequence[OneStack], trained: Trained) -> list[Params]:
    """The parameters of each seed; seeds whose training diverged are refused."""
    found = [member(trained.params, i) for i in range(len(specs))]
    if lost := [s.seed for s, p in zip(specs, found, strict=True) if not all(v.isfinite().all() for v in p.values())]:
        raise Refusal(f"training diverged for seeds {lost} with `rate` {specs[0].rate:g}; lower it.")
    return found
