"""Untrained baselines: the same architecture, with some or all of its weights fresh."""

from typing import Any

import torch

from iclgd.spec import Init


def reinitialise(model: Any, init: Init, seed: int) -> None:
    """Replace trained weights by fresh ones, by seed.

    `random`: every parameter as the architecture itself initialises it. `embeddings`: the same, but embeddings,
    unembedding and norms keep what they learned (Deutch 2023's "trained embeddings" baseline).
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        fresh = type(model)(model.config).to(dtype=model.dtype)  # on the CPU, so that a seed means the same everywhere
    kept = _kept(model) if init == "embeddings" else set()
    state = fresh.state_dict()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if id(parameter) not in kept:
                parameter.copy_(state[name])


def _kept(model: Any) -> set[int]:
    """Parameters of embeddings (of tokens and positions), of the unembedding and of every norm."""
    kept = {id(p) for p in model.get_output_embeddings().parameters()}
    for name, module in model.named_modules():
        norm = "norm" in type(module).__name__.lower() or name.rsplit(".", 1)[-1].startswith("ln_")
        if norm or isinstance(module, torch.nn.Embedding):
            kept |= {id(p) for p in module.parameters(recurse=False)}
    return kept
