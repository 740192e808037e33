"""Prompts of random tokens whose demonstrations have given lengths."""

from collections.abc import Sequence

import torch

from iclgd.prompts import Demo, Prompts


def drawn_prompts(lengths: Sequence[int], seed: int) -> Prompts:
    generator = torch.Generator().manual_seed(seed)

    def ids(length: int) -> tuple[int, ...]:
        return tuple(torch.randint(3, 60, (length,), generator=generator).tolist())

    demos = tuple(Demo((*ids(length), 5), (5,)) for length in lengths)
    return Prompts((1,), demos, (2,), (ids(4),), ((5,), (6,)), (0,))
