"""Padding passes by the MLPs: they see the rows of a padded batch that are text, and no others.

A row of an MLP's output is a function of the same row of its input, and nobody asks what stands at padding: with texts
of many lengths side by side that is half of the arithmetic.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from jaxtyping import Int
from torch import Tensor, nn

from iclgd.errors import Refusal
from iclgd.models.layout import Layout, Slot

WORTH = 0.95  # more text than this in a batch, and it is left as it is


def row_wise(layout: Layout, trained: Sequence[Slot]) -> list[nn.Module]:
    """The MLPs that are modules of their own and have nothing in them that is trained; those of experts are not."""
    try:
        lasts = [mlp.last for mlp in layout.mlps()]
    except Refusal:
        return []
    own = {id(slot.parameter) for slot in trained}
    found = []
    for block, last in zip(layout.blocks, lasts, strict=True):
        holder = next(child for child in block.children() if any(module is last for module in child.modules()))
        if holder is not last and not any(id(parameter) in own for parameter in holder.parameters()):
            found.append(holder)
    return found


@contextmanager
def unpadded(modules: Sequence[nn.Module], text: Int[Tensor, " text"], batch: tuple[int, int]) -> Iterator[None]:
    """The modules run on the rows ``text`` of a flattened batch of so many texts and tokens; other rows become 0."""
    if len(text) > WORTH * batch[0] * batch[1]:
        yield
        return

    def enter(_module: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
        if len(args) != 1:  # it is given more than states, which would have to be the same rows
            return None
        return (args[0].flatten(0, 1).index_select(0, text.to(args[0].device))[None],)

    def leave(_module: nn.Module, args: tuple[Any, ...], output: Tensor) -> Tensor | None:
        if len(args) != 1:
            return None
        rows = output.new_zeros(batch[0] * batch[1], output.shape[-1])
        return rows.index_copy(0, text.to(output.device), output[0]).unflatten(0, batch)

    with ExitStack() as stack:
        for module in modules:
            stack.callback(module.register_forward_pre_hook(enter).remove)
            stack.callback(module.register_forward_hook(leave).remove)
        yield
