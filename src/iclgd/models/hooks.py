"""Hooks that come off by themselves: what a model's modules give, and which of them is running."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from torch import Tensor, nn

Watch = Callable[[int, Tensor], None]


@contextmanager
def hooked(modules: Sequence[tuple[nn.Module, Tensor | None]], see: Watch) -> Iterator[None]:
    """Forward hooks that hand over each module's output (or the chosen entries of it) with its place in the list."""

    def hand_over(layer: int, output: Any, entries: Tensor | None) -> None:
        output = output if isinstance(output, Tensor) else output[0]  # blocks may give more than hidden states
        see(layer, output if entries is None else output[..., entries])

    with ExitStack() as stack:
        for layer, (module, entries) in enumerate(modules):
            where = None if entries is None else entries.to(next(module.parameters()).device)
            handle = module.register_forward_hook(lambda _m, _a, y, layer=layer, e=where: hand_over(layer, y, e))
            stack.callback(handle.remove)
        yield


@contextmanager
def announced(attentions: Sequence[nn.Module], current: list[int | None]) -> Iterator[None]:
    """``current[0]`` is the layer whose attention module is running, None outside."""

    def enter(layer: int) -> None:
        current[0] = layer

    with ExitStack() as stack:
        for layer, module in enumerate(attentions):
            before = module.register_forward_pre_hook(lambda _m, _a, layer=layer: enter(layer))
            after = module.register_forward_hook(lambda *_: current.__setitem__(0, None), always_call=True)
            stack.callback(before.remove)
            stack.callback(after.remove)
        yield
