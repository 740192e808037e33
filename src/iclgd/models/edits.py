"""A subject whose residual stream is edited while it runs: what vectors that stand in for a prompt do to it."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor, nn

from iclgd.models.subject import Captured, Subject

Edit = Callable[[int, Tensor, Tensor], Tensor]  # layer, a block's output, each sequence's last prompt token → output


class EditedSubject(Subject):
    """The same model, with every block's output passed through an edit in each captured forward pass.

    The first of the rows that a pass is asked about is the prompt's last token: traces and scores both begin there.
    """

    def __init__(self, subject: Subject, edit: Edit):
        self.__dict__.update(subject.__dict__)
        self._edit = edit

    def run(
        self, ids: Int[Tensor, "batch token"], rows: Int[Tensor, "batch row"], *args: Any, **kwargs: Any
    ) -> Captured:
        with self._edited(rows[:, 0]):
            return super().run(ids, rows, *args, **kwargs)

    @contextmanager
    def _edited(self, last: Int[Tensor, " batch"]) -> Iterator[None]:
        def hook(layer: int, output: Any) -> Any:
            hidden = output if isinstance(output, Tensor) else output[0]
            hidden = self._edit(layer, hidden, last.to(hidden.device))
            return hidden if isinstance(output, Tensor) else (hidden, *output[1:])

        with ExitStack() as stack:
            for layer, block in enumerate(self.layout.blocks):
                stack.callback(_hooked(block, layer, hook).remove)
            yield


def _hooked(block: nn.Module, layer: int, hook: Callable[[int, Any], Any]) -> Any:
    return block.register_forward_hook(lambda _module, _args, output: hook(layer, output))


def replaced(where: int, state: Tensor) -> Edit:
    """One block's output at the prompt's last token is the state given."""

    def edit(layer: int, hidden: Tensor, last: Tensor) -> Tensor:
        if layer != where:
            return hidden
        hidden = hidden.clone()
        hidden[torch.arange(len(hidden), device=hidden.device), last] = state.to(hidden)
        return hidden

    return edit


def added(where: int, vector: Tensor) -> Edit:
    """A vector added to one block's output at the prompt's last token."""

    def edit(layer: int, hidden: Tensor, last: Tensor) -> Tensor:
        if layer != where:
            return hidden
        hidden = hidden.clone()
        hidden[torch.arange(len(hidden), device=hidden.device), last] += vector.to(hidden)
        return hidden

    return edit


def steered(vectors: Tensor, strength: float) -> Edit:
    """Every block's output moved along a direction of its own, at every token, and brought back to its length."""

    def edit(layer: int, hidden: Tensor, _last: Tensor) -> Tensor:
        moved = hidden + strength * vectors[layer].to(hidden)
        return moved * (hidden.norm(dim=-1, keepdim=True) / moved.norm(dim=-1, keepdim=True))

    return edit
