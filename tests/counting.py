"""What really runs, counted by torch; and a model whose cost is counted on fingers."""

from collections.abc import Iterable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

from iclgd.models.arithmetic import WIDE, Arithmetic


class Counter(TorchDispatchMode):
    """Operations of every matrix product, those of backward passes included; float64 ones as often as they take."""

    flops = 0.0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        if (count := flop_registry.get(func._overloadpacket)) is not None:
            wide = any(isinstance(one, torch.Tensor) and one.dtype == torch.float64 for one in tree_leaves(found))
            self.flops += (WIDE if wide else 1) * count(*args, **(kwargs or {}), out_val=found)
        return found


class Tokens(Arithmetic):
    """A model in which a token costs 1 and a hundredth for each that stands before its text; an answer a thousandth.

    Its last maps have ten weights.
    """

    def __init__(self) -> None:
        super().__init__(layers=1, blocks=0, head=0, width=0, trained={"down": 10})

    def read(self, lengths: Iterable[int], context: int = 0, rows: int = 0) -> float:
        return sum(lengths) * (1 + context / 100) + rows / 1000
