"""Where training episodes come from: a generator of its own for every purpose, and batches by step for many members."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

Drawn = TypeVar("Drawn", bound=tuple[Tensor, ...])  # Episodes, or what stands for them
TRAINING = 0  # what a generator is for: the first part of its key


def generator(*key: int) -> torch.Generator:
    """A generator of its own for every key. (torch keeps 32 bits of a seed: larger offsets would vanish.)"""
    return torch.Generator().manual_seed(int(np.random.SeedSequence(key).generate_state(1)[0]))


def stream(
    members: Sequence[tuple[int, Callable[[int, torch.Generator], Drawn]]], batch: int, ahead: int = 16
) -> Callable[[int], Drawn]:
    """Batches by step for members, each a seed and what it draws from.

    A member's data depend on its seed and the step, not on who trains beside it. ``ahead`` steps are drawn in one call
    and held.
    """
    held: dict[int, list[Drawn]] = {}

    def at(step: int) -> Drawn:
        block = step // ahead
        if block not in held:
            held.clear()
            drawn = [draw(batch * ahead, generator(TRAINING, seed, block)) for seed, draw in members]
            kind = type(drawn[0])
            held[block] = [kind(*map(torch.stack, zip(*part, strict=True))) for part in _chunks(drawn, ahead)]
        return held[block][step % ahead]

    return at


def _chunks(drawn: Sequence[tuple[Tensor, ...]], parts: int) -> list[list[tuple[Tensor, ...]]]:
    """[member] episodes of ``parts`` batches each → [part][member]."""
    split = [list(zip(*(field.chunk(parts) for field in episodes), strict=True)) for episodes in drawn]
    return [list(part) for part in zip(*split, strict=True)]
