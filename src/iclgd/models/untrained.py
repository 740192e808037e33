"""Untrained baselines: the same architecture, with some or all of its weights fresh."""

from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from iclgd.errors import Refusal
from iclgd.noise import normal, uniform
from iclgd.spec import Init


def reinitialise(model: Any, init: Init, seed: int) -> None:
    """Replace trained weights by fresh ones, by seed.

    `random`: every parameter as the architecture itself initialises it. `embeddings`: the same, but embeddings,
    unembedding and norms keep what they learned (Deutch 2023's "trained embeddings" baseline).
    """
    kept = _kept(model) if init == "embeddings" else set()
    fresh = dict(_fresh(model, seed).named_parameters())
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if id(parameter) not in kept:
                parameter.copy_(fresh[name])


def _fresh(model: Any, seed: int) -> Any:
    """The architecture with the weights it begins with, made where the model is."""
    with torch.device("meta"):
        fresh = type(model)(model.config)
    fresh.to_empty(device=model.get_input_embeddings().weight.device)
    fresh.tie_weights()
    with torch.no_grad():
        for parameter in fresh.parameters():
            parameter.fill_(torch.nan)
        with _Drawn(seed):
            fresh.init_weights()
    lost = [name for name, parameter in fresh.named_parameters() if bool(parameter.isnan().any())]
    if lost:
        raise Refusal(f"{type(model).__name__} does not say how it initialises {lost[0]}: leave out `init` random.")
    return fresh


CALLED = {"a": "low", "from": "low", "b": "high", "to": "high"}  # the bounds of uniform numbers


class _Drawn(TorchFunctionMode):
    """Random numbers by seed and place, so that a seed means the same weights on every device."""

    def __init__(self, seed: int):
        super().__init__()
        self.seed, self.drawn = seed, 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        named = {CALLED.get(name, name): value for name, value in (kwargs or {}).items() if name != "generator"}
        if func in (Tensor.normal_, torch.nn.init.normal_):
            return self._normal(*args[:3], **named)
        if func in (Tensor.uniform_, torch.nn.init.uniform_):
            return self._uniform(*args[:3], **named)
        return func(*args, **(kwargs or {}))

    def _normal(self, tensor: Tensor, mean: float = 0.0, std: float = 1.0) -> Tensor:
        return tensor.copy_(self._next(normal, tensor).mul_(std).add_(mean))

    def _uniform(self, tensor: Tensor, low: float = 0.0, high: float = 1.0) -> Tensor:
        return tensor.copy_(self._next(uniform, tensor).mul_(high - low).add_(low))

    def _next(self, numbers: Any, tensor: Tensor) -> Tensor:
        self.drawn += 1
        dtype = torch.promote_types(tensor.dtype, torch.float32)
        return numbers(tensor.shape, (self.seed, self.drawn), tensor.device, dtype)


def _kept(model: Any) -> set[int]:
    """Parameters of embeddings (of tokens and positions), of the unembedding and of every norm."""
    kept = {id(p) for p in model.get_output_embeddings().parameters()}
    for name, module in model.named_modules():
        norm = "norm" in type(module).__name__.lower() or name.rsplit(".", 1)[-1].startswith("ln_")
        if norm or isinstance(module, torch.nn.Embedding):
            kept |= {id(p) for p in module.parameters(recurse=False)}
    return kept
