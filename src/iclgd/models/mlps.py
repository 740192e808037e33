"""Where a family keeps its MLP: the maps that read the residual stream, the last linear map, a norm behind it.

A block ends in ``h + s·(W g + b)``, h being all that does not pass through the last map W, s a scale that few families
have; or, where a norm stands behind the MLP (Gemma 2 and 3, OLMo 2), in ``h + γ ⊙ v / rms(v)`` with v = W g + b.
A family that is not in the table is taken for the common form and refused by name when that is not what it has.
"""

from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from iclgd.errors import Refusal


@dataclass(frozen=True)
class MlpNames:
    """Dotted names from the block; ``scale`` is the configuration's field that the MLP's output is multiplied by."""

    first: tuple[str, ...] = ("mlp.gate_proj", "mlp.up_proj")
    last: str = "mlp.down_proj"
    norm: str | None = None
    scale: str | None = None


NEOX = MlpNames(("mlp.dense_h_to_4h",), "mlp.dense_4h_to_h")
GPT = MlpNames(("mlp.c_fc",), "mlp.c_proj")
OPT = MlpNames(("fc1",), "fc2")
GPTJ = MlpNames(("mlp.fc_in",), "mlp.fc_out")
NORMED = MlpNames(norm="post_feedforward_layernorm")
MLPS: dict[str, MlpNames] = {
    **dict.fromkeys(("gpt2", "gpt_bigcode", "gpt_neo"), GPT),
    **dict.fromkeys(("gpt_neox", "bloom", "falcon"), NEOX),
    **dict.fromkeys(("opt", "xglm"), OPT),
    **dict.fromkeys(("gptj", "codegen"), GPTJ),
    **dict.fromkeys(("gemma2", "gemma3", "gemma3_text", "olmo2", "olmo3"), NORMED),
    "phi": MlpNames(("mlp.fc1",), "mlp.fc2"),
    "phi3": MlpNames(("mlp.gate_up_proj",)),
    "mpt": MlpNames(("ffn.up_proj",), "ffn.down_proj"),
    "granite": MlpNames(scale="residual_multiplier"),
}


EXPERTS = ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts")  # of configurations


@dataclass(frozen=True)
class Mlp:
    """One block's MLP, by role."""

    first: tuple[nn.Module, ...]
    last: nn.Module
    norm: nn.Module | None
    scale: float


def mlps(model: Any, family: str, config: Any, blocks: Any) -> list[Mlp]:
    """The MLP of every block; a family without one that ends in a linear map is refused."""
    names = MLPS.get(family, MlpNames())
    if not getattr(config, "do_layer_norm_before", True):
        raise Refusal(
            f"{type(model).__name__} cannot be patched: its blocks end in a norm of the residual stream itself."
        )
    if any(getattr(config, name, None) for name in EXPERTS):
        raise Refusal(
            f"{type(model).__name__} cannot be patched: its MLPs are mixtures of experts, without one last map."
        )
    scale = 1.0 if names.scale is None else float(getattr(config, names.scale))
    found = []
    for block in blocks:
        first = tuple(_find(model, block, name) for name in names.first)
        norm = None if names.norm is None else _find(model, block, names.norm)
        found.append(Mlp(first, _find(model, block, names.last), norm, scale))
    return found


def _find(model: Any, block: nn.Module, name: str) -> nn.Module:
    try:
        return block.get_submodule(name)
    except AttributeError:
        raise Refusal(
            f"the MLP of {type(model).__name__} cannot be patched: the lab looked for {name} in a block and found none."
        ) from None


def is_transposed(module: nn.Module) -> bool:
    """Whether a map keeps (input, output), as GPT-2's Conv1D does; a Linear keeps (output, input)."""
    return type(module).__name__ == "Conv1D"


def matrix(module: nn.Module) -> Tensor:
    """The weight of a linear map as (output, input), a view of the parameter."""
    weight = module.weight
    assert isinstance(weight, Tensor)
    return weight.T if is_transposed(module) else weight
