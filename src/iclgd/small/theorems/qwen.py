"""The gated delta rule as transformers has it, for Qwen3-Next: somebody else's code for the same layer."""

import torch
from jaxtyping import Float
from torch import Tensor

from iclgd.errors import Refusal


def gated_delta_rules(
    keys: Float[Tensor, "time dk"],
    values: Float[Tensor, "time dv"],
    queries: Float[Tensor, "time dk"],
    rates: Float[Tensor, " time"],
    decays: Float[Tensor, " time"],
) -> dict[str, Float[Tensor, "time dv"]]:
    """Its answers token by token and in chunks, in float32; decays are given as logarithms."""
    from transformers.utils import logging

    logging.set_verbosity_error()  # it would recommend its faster kernels
    try:
        from transformers.models.qwen3_next import modeling_qwen3_next as qwen
    except ImportError:
        raise Refusal("this transformers has no Qwen3-Next: install a later one.") from None
    given = [part.float()[None, :, None] for part in (queries, keys, values, decays.log(), rates)]  # batch time head …
    rules = {"by token": qwen.torch_recurrent_gated_delta_rule, "in chunks": qwen.torch_chunk_gated_delta_rule}
    with torch.no_grad():
        return {name: rule(*given)[0][0, :, 0] for name, rule in rules.items()}
