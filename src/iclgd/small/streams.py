"""Where training episodes come from: a generator of its own for every purpose, and batches by step for many members."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
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
    and held; while they are used, a thread draws the next.
    """
    thread = ThreadPoolExecutor(1)
    held: dict[int, Future[list[Drawn]]] = {}

    def block_of(block: int) -> list[Drawn]:
        drawn = [draw(batch * ahead, generator(TRAINING, seed, block)) for seed, draw in members]
        kind = type(drawn[0])
        return [kind(*map(torch.stack, zip(*part, strict=True))) for part in _chunks(drawn, ahead)]

    def at(step: int) -> Drawn:
        used = step // ahead
        for block in set(held) - {used, used + 1}:
            del held[block]
        for block in (used, used + 1):
            if block not in held:
                held[block] = thread.submit(block_of, block)
        return held[used].result()[step % ahead]

    return at


def _chunks(drawn: Sequence[tuple[Tensor, ...]], parts: int) -> list[list[tuple[Tensor, ...]]]:
    """[member] episodes of ``parts`` batches each → [part][member]."""
    split = [list(zip(*(field.chunk(parts) for field in episodes), strict=True)) for episodes in drawn]
    return [list(part) for part in zip(*split, strict=True)]
