"""A second device for machines that have one: its numbers are a CPU's, and nothing else of it is.

Torch gives one kind of device, `privateuseone`, to whoever brings it. Here a tensor on it wraps one on the CPU, and
every operation is the CPU's own, so that numbers are equal to the last bit; but an operation between tensors on two
devices is refused, as it is between two GPUs. Only a copy goes from one to the other.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map, tree_map_only
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

KIND = "privateuseone"
MOVES = torch.ops.aten._to_copy.default, torch.ops.aten.copy_.default


class Elsewhere(Tensor):
    """A tensor on the second device."""

    here: Tensor

    @staticmethod
    def __new__(cls, here: Tensor, device: torch.device) -> "Elsewhere":
        self = Tensor._make_wrapper_subclass(
            cls, here.shape, here.stride(), here.storage_offset(), dtype=here.dtype, device=device
        )
        self.here = here
        return self

    @property
    def data(self) -> Tensor:
        return Tensor.data.__get__(self)

    @data.setter
    def data(self, given: "Elsewhere") -> None:
        Tensor.data.__set__(self, given)
        self.here = given.here

    def tolist(self) -> Any:
        return self.here.tolist()  # torch reads no subclass's numbers

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(func, args, kwargs or {})


def _run(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    tensors = [x for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor)]
    homes = {x.device for x in tensors if x.dim()}  # one number may come from anywhere, as on a GPU
    if len(homes) > 1 and func not in MOVES:
        raise RuntimeError(f"{func}: tensors on {' and '.join(sorted(map(str, homes)))}")
    if func is torch.ops.aten.copy_.default:
        goal = args[0].device
    elif kwargs.get("device") is not None:
        goal = torch.device(kwargs["device"])
        kwargs = {**kwargs, "device": torch.device("cpu")} if goal.type == KIND else kwargs
    else:
        goal = next((x.device for x in tensors if isinstance(x, Elsewhere)), torch.device("cpu"))
    args, kwargs = tree_map(lambda x: x.here if isinstance(x, Elsewhere) else x, (args, kwargs))
    found = func(*args, **kwargs)
    if goal.type != KIND:
        return found
    known = {id(x.here): x for x in tensors if isinstance(x, Elsewhere)}  # what is changed in place stays itself
    return tree_map_only(Tensor, lambda x: known[id(x)] if id(x) in known else Elsewhere(x, goal), found)


class _Operations(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(func, args, kwargs or {})


class _Made(TorchFunctionMode):
    """Tensors from Python's numbers are made where no mode sees it, so they are made here and moved."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if func in (torch.tensor, torch.as_tensor) and torch.device(kwargs.get("device") or "cpu").type == KIND:
            device = kwargs.pop("device")
            return func(*args, **kwargs).to(device)
        return func(*args, **kwargs)


@contextmanager
def second_device() -> Iterator[str]:
    """The name of a device that is there within; torch remembers it, so this wants a process of its own."""
    _setup_privateuseone_for_python_backend(KIND)
    with _Operations(), _Made():
        yield f"{KIND}:0"
