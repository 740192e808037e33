"""The same model in a wider format, with nothing left in the narrow one that can be computed again.

Casting the weights is not enough. Most architectures ask for float32 by name in their norms, softmaxes and rotary
tables, and keep tables that were computed in float32 when the model was built. Two computations that share those share
their rounding errors, and a noise floor measured between them is too good.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from transformers import PreTrainedModel

from iclgd.errors import Refusal

# what a computation is checked in: the next format that is much finer
WIDER = {torch.float32: torch.float64, torch.bfloat16: torch.float32, torch.float16: torch.float32}


class CannotWiden(Refusal):
    """The model cannot be computed in the wider format here; the message says why."""


class Widening(TorchFunctionMode):
    """Whoever asks for float32 gets the wider format, while it is on.

    ``narrow`` is what stayed narrow all the same: operations whose result was, and tables that could not be computed
    again. Falcon's position biases, for instance, are bfloat16 by definition.
    """

    def __init__(self, dtype: torch.dtype):
        super().__init__()
        self.dtype, self.narrow = dtype, set[str]()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is Tensor.float:
            func, args = Tensor.to, (*args, self.dtype)
        args = tuple(self.dtype if value is torch.float32 else value for value in args)
        kwargs = {name: self.dtype if value is torch.float32 else value for name, value in (kwargs or {}).items()}
        result = func(*args, **kwargs)
        if isinstance(result, Tensor) and result.is_floating_point() and result.element_size() < self.dtype.itemsize:
            self._note(func, args)
        return result

    def _note(self, func: Any, args: tuple[Any, ...]) -> None:
        """Remember an operation that made something narrow out of nothing narrow."""
        tensors = [value for value in args if isinstance(value, Tensor) and value.is_floating_point()]
        if all(tensor.element_size() == self.dtype.itemsize for tensor in tensors):
            self.narrow.add(func.__name__)


@contextmanager
def widened(model: Any, dtype: torch.dtype) -> Iterator[Widening]:
    """The model's weights, tables and arithmetic in ``dtype``, float32 or float64; all of it as before on the way out.

    Restoring is exact: every number of a narrower format is also one of the wider. Each tensor goes back to its own
    format, as a model in low precision keeps some of its buffers in float32.
    """
    formats = [(parameter, parameter.dtype) for parameter in model.parameters()]
    buffers = [(module, dict(module._buffers)) for module in model.modules()]
    default = torch.get_default_dtype()
    widening = Widening(dtype)
    try:
        model.to(dtype)
        torch.set_default_dtype(dtype)
        with widening, _plain_experts(model):
            widening.narrow |= set(_recompute_tables(model))
            yield widening
    finally:
        torch.set_default_dtype(default)
        for parameter, before in formats:
            parameter.data = parameter.data.to(before)
        for module, own in buffers:
            module._buffers.update(own)


@contextmanager
def _plain_experts(model: Any) -> Iterator[None]:
    """Mixtures of experts without their fast kernels, which do not know float64."""
    before = getattr(model.config, "_experts_implementation", None)
    if before is None:
        yield
        return
    model.set_experts_implementation("eager")
    try:
        yield
    finally:
        model.set_experts_implementation(before)


def _recompute_tables(model: nn.Module) -> Iterator[str]:
    """Compute anew every table a model computes rather than stores; yields the names of those it could not.

    Rotary frequencies, sines and cosines of positions, scales of embeddings: buffers that are in no checkpoint, which
    transformers' ``_init_weights`` computes after loading. Parameters are marked as done, so that it leaves them alone.
    """
    for name, module, owner in _owned("", model, None):
        tables = [key for key in module._non_persistent_buffers_set if _is_float(module._buffers[key])]
        if not tables:
            continue
        before = {key: module._buffers[key] for key in tables}
        for key, table in before.items():
            module._buffers[key] = torch.full_like(table, torch.nan)  # type: ignore[arg-type]  # `_is_float`: it is there
        if owner is not None:
            with _marked_as_done(module), torch.no_grad():
                owner._init_weights(module)
        for key, table in before.items():
            if bool(module._buffers[key].isnan().any()):  # type: ignore[union-attr]  # it is there
                module._buffers[key] = table
                yield f"{name}.{key}"


def _owned(name: str, module: nn.Module, owner: Any) -> Iterator[tuple[str, nn.Module, Any]]:
    """Every module, with the model of the library that it belongs to."""
    owner = module if isinstance(module, PreTrainedModel) else owner
    yield name, module, owner
    for key, child in module.named_children():
        yield from _owned(f"{name}.{key}".lstrip("."), child, owner)


@contextmanager
def _marked_as_done(module: nn.Module) -> Iterator[None]:
    fresh: list[Any] = [p for p in module.parameters() if not getattr(p, "_is_hf_initialized", False)]
    for parameter in fresh:
        parameter._is_hf_initialized = True
    try:
        yield
    finally:
        for parameter in fresh:
            del parameter._is_hf_initialized


def _is_float(buffer: Tensor | None) -> bool:
    return buffer is not None and buffer.is_floating_point()


def tolerance(dtype: torch.dtype) -> float:
    """How far next-token logits may be apart, relative to the largest: 1e-5, or 16 steps of a coarser precision.

    Float32 products on a GPU that was asked for tf32 are the coarser: they keep ten bits.
    """
    coarse = dtype == torch.float32 and torch.get_float32_matmul_precision() != "highest"
    return max(1e-5, 16 * (2**-10 if coarse else torch.finfo(dtype).eps))
