"""Where a model keeps what the lab touches: blocks, attention, its projections, the final norm, the unembedding.

Names differ by architecture, and some keep queries, keys and values in one tensor. A table says which; an
architecture that is not in it is taken for the common form (separate projections in ``self_attn``) and refused by
name when that is not what it has.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from iclgd.errors import Refusal
from iclgd.models.mlps import Mlp, mlps

Part = Literal["kv", "qkv", "attention", "down", "all"]
Fused = Literal["thirds", "heads", "groups", "stacked", "quarters"]
Entry = tuple[str, Tensor, Tensor | None, int]  # name, parameter, which entries of it, along which axis


@dataclass(frozen=True)
class Names:
    """Dotted names: of the list of blocks and the final norm from the model, of the rest from their parent.

    ``scale`` is the configuration's field that the final logits are multiplied by, ``divisor`` the one that they are
    divided by.
    """

    blocks: str = "model.layers"
    norm: str = "model.norm"
    attention: str = "self_attn"
    out: str = "o_proj"
    separate: tuple[str, str, str] | None = ("q_proj", "k_proj", "v_proj")
    fused: tuple[str, Fused] | None = None
    scale: str | None = None
    divisor: str | None = None


COMMON = Names()
TABLE: dict[str, Names] = {
    "gpt2": Names("transformer.h", "transformer.ln_f", "attn", "c_proj", None, ("c_attn", "thirds")),
    "opt": Names("model.decoder.layers", "model.decoder.final_layer_norm", out="out_proj"),
    "gpt_neox": Names(
        "gpt_neox.layers", "gpt_neox.final_layer_norm", "attention", "dense", None, ("query_key_value", "heads")
    ),
    "phi": Names(norm="model.final_layernorm", out="dense"),
    "phi3": Names(separate=None, fused=("qkv_proj", "stacked")),
    "xglm": Names(norm="model.layer_norm", out="out_proj"),
    "gptj": Names("transformer.h", "transformer.ln_f", "attn", "out_proj"),
    "gpt_neo": Names("transformer.h", "transformer.ln_f", "attn.attention", "out_proj"),
    "bloom": Names("transformer.h", "transformer.ln_f", "self_attention", "dense", None, ("query_key_value", "heads")),
    "falcon": Names(
        "transformer.h", "transformer.ln_f", "self_attention", "dense", None, ("query_key_value", "groups")
    ),
    "gpt_bigcode": Names("transformer.h", "transformer.ln_f", "attn", "c_proj", None, ("c_attn", "stacked")),
    "mpt": Names("transformer.blocks", "transformer.norm_f", "attn", "out_proj", None, ("Wqkv", "stacked")),
    "codegen": Names("transformer.h", "transformer.ln_f", "attn", "out_proj", None, ("qkv_proj", "quarters")),
    "cohere": Names(scale="logit_scale"),
    "cohere2": Names(scale="logit_scale"),
    "granite": Names(divisor="logits_scaling"),
}
TEXT_PART = "model.language_model"  # where a model that also sees or hears keeps what "model" is in a text model


@dataclass(frozen=True)
class Slot:
    """A parameter, or the entries of it along its output axis that belong to the part being trained.

    While it is trained, ``before`` is what it was. A parameter coarser than float32 has a float32 ``master`` on which
    steps are taken: most of them are smaller than half a step of bfloat16 and would be rounded away one by one.
    """

    name: str
    parameter: Tensor
    layer: int
    keep: Tensor | None = None  # 0/1 along ``axis``; None: the whole parameter
    axis: int = 0
    before: Tensor | None = None
    master: Tensor | None = None

    def restrict(self, gradient: Tensor) -> Tensor:
        """The gradient, or a stack of them, with everything outside the slot at zero."""
        return gradient if self.keep is None else gradient * self._mask(gradient)

    def _mask(self, like: Tensor) -> Tensor:
        assert self.keep is not None
        shape = [1] * self.parameter.ndim
        shape[self.axis] = -1
        return self.keep.to(like).view(shape)

    def prepared(self) -> "Slot":
        """The slot ready to be trained."""
        before = self.parameter.detach().clone()
        precise = torch.promote_types(before.dtype, torch.float32)
        return replace(self, before=before, master=None if before.dtype == precise else before.to(precise))

    @torch.no_grad()
    def descend(self, gradient: Tensor, rate: float) -> None:
        """w ← w − rate·g, in float32 or better, rounded into the parameter."""
        gradient = gradient.to(self.parameter.device)
        if self.master is None:
            self.parameter.sub_(gradient, alpha=rate)
        else:
            self.parameter.copy_(self.master.sub_(gradient.to(self.master.dtype), alpha=rate))

    @torch.no_grad()
    def restore(self) -> None:
        """Give the parameter back what it was before training, bit for bit."""
        assert self.before is not None
        self.parameter.copy_(self.before)

    @torch.no_grad()
    def moves(self) -> Float[Tensor, "4"]:
        """Of a slot in training: entries that changed, entries there are, ‖w − w_before‖² and ‖w_before‖²."""
        assert self.before is not None
        before, now = self.before.double(), self.parameter.double()
        mask = torch.ones_like(before) if self.keep is None else self._mask(before).expand_as(before)
        return torch.stack(
            [
                ((now != before) * mask).sum(),
                mask.sum(),
                ((now - before).square() * mask).sum(),
                (before.square() * mask).sum(),
            ]
        )


class Layout:
    """The modules of one model, by role."""

    def __init__(self, model: Any):
        self.model, self.config = model, model.config.get_text_config()
        self.family: str = self.config.model_type
        self.names = self._names()
        self.blocks: Sequence[nn.Module] = list(self._find(model, self.names.blocks))
        self.norm = self._find(model, self.names.norm)
        self.attentions = [self._find(block, self.names.attention) for block in self.blocks]
        self.outs = [self._find(attention, self.names.out) for attention in self.attentions]
        self.unembedding: nn.Module = model.get_output_embeddings()
        self.projections()  # refuse now what cannot be finetuned later

    def _names(self) -> Names:
        names = TABLE.get(self.family, COMMON)
        if self.family == "gpt_bigcode" and not self.config.multi_query:
            names = replace(names, fused=("c_attn", "heads"))
        if self.config is not self.model.config:
            blocks, norm = (name.replace("model", TEXT_PART, 1) for name in (names.blocks, names.norm))
            names = replace(names, blocks=blocks, norm=norm)
        return names

    def _find(self, parent: Any, name: str) -> Any:
        try:
            return parent.get_submodule(name)
        except AttributeError:
            raise Refusal(
                f"{type(self.model).__name__} is not supported: the lab looked for {name} in it and found none."
            ) from None

    @property
    def layers(self) -> int:
        return len(self.blocks)

    @property
    def room(self) -> int | None:
        """How many tokens a context holds; None where positions have no bound."""
        names = ("max_position_embeddings", "n_positions", "max_seq_len")
        return next((int(length) for name in names if (length := getattr(self.config, name, None))), None)

    @property
    def window(self) -> int | None:
        """How many tokens back the layers with a window see; None where there are no such layers."""
        if self.family == "gpt_neo":
            return int(self.config.window_size) if "local" in self.config.attention_layers else None
        kinds, window = (getattr(self.config, name, None) for name in ("layer_types", "sliding_window"))
        return int(window) if window and (kinds is None or "sliding_attention" in kinds) else None

    def sees_all(self, tokens: int) -> bool:
        """Whether the last of that many tokens attends to all of them in each layer, by a softmax and no more."""
        bounds = self.window, getattr(self.config, "attention_chunk_size", None)
        softcap = getattr(self.config, "attn_logit_softcapping", None)
        return softcap is None and all(bound is None or bound >= tokens for bound in bounds)

    @property
    def heads(self) -> int:
        return int(self.config.num_attention_heads)

    @property
    def key_heads(self) -> int:
        if self.family == "falcon":
            return self._falcon_key_heads()
        if self.family == "gpt_bigcode":
            return 1 if self.config.multi_query else self.heads
        return int(getattr(self.config, "num_key_value_heads", None) or self.heads)

    def _falcon_key_heads(self) -> int:
        if self.config.new_decoder_architecture:
            return int(self.config.num_kv_heads)
        return 1 if self.config.multi_query else self.heads

    def slopes(self) -> Float[Tensor, "head 1 1"] | None:
        """MPT's ALiBi slopes, as its own table has them (its last step back); None in other families."""
        if self.family != "mpt":
            return None
        return -self.model.transformer.build_mpt_alibi_tensor(self.heads, 2)[..., :1]

    def projections(self) -> str:
        """Where K and V live, in words."""
        if self.names.separate is not None:
            for name in self.names.separate:
                self._find(self.attentions[0], name)
            return f"{self.names.separate[1]} and {self.names.separate[2]}"
        assert self.names.fused is not None
        name, form = self.names.fused
        self._find(self.attentions[0], name)
        how = {
            "thirds": "second and third thirds",
            "heads": "interleaved by head",
            "groups": "interleaved by key group",
            "stacked": "below the queries",
            "quarters": "below the queries of each quarter",
        }[form]
        return f"{name} ({how})"

    def queries(self) -> list[tuple[nn.Module, Tensor | None]]:
        """For each layer the module that projects queries, and which of its outputs they are (None: all)."""
        if self.names.separate is not None:
            return [(attention.get_submodule(self.names.separate[0]), None) for attention in self.attentions]
        assert self.names.fused is not None
        name, form = self.names.fused
        index = (self._key_value_entries(form) == 0).nonzero()[:, 0]
        return [(attention.get_submodule(name), index) for attention in self.attentions]

    def mlps(self) -> list[Mlp]:
        """The MLP of every block."""
        return mlps(self.model, self.family, self.config, self.blocks)

    def slots(self, part: Part) -> list[Slot]:
        """The parameters that a finetuned learner may change.

        `kv`: key and value projections, weights and biases (Dai 2022, §4.1); `qkv`: the query projections too;
        `attention`: everything inside the attention modules; `down`: the last linear map of each MLP, its weight alone;
        `all`: every parameter (layer −1 outside the blocks).
        """
        if part == "all":
            return self._all_slots()
        if part == "down":
            lasts = [mlp.last.weight for mlp in self.mlps()]
            return [Slot(f"{layer}.down", weight, layer) for layer, weight in enumerate(lasts)]  # type: ignore[arg-type]  # torch calls it a tensor or module
        slots = []
        for layer, attention in enumerate(self.attentions):
            if part == "attention":
                chosen: list[Entry] = [(name, p, None, 0) for name, p in attention.named_parameters()]
            else:
                chosen = self._projection_slots(attention, part)
            slots += [Slot(f"{layer}.{name}", p, layer, keep, axis) for name, p, keep, axis in chosen]
        return slots

    def _all_slots(self) -> list[Slot]:
        """Every parameter that text passes through: not those of eyes and ears."""
        layer_of = {id(p): layer for layer, block in enumerate(self.blocks) for p in block.parameters()}
        found = dict(self.model.named_parameters())
        if self.config is not self.model.config:
            text = {id(p) for part in (self._find(self.model, TEXT_PART), self.unembedding) for p in part.parameters()}
            found = {name: p for name, p in found.items() if id(p) in text}
        return [Slot(name, p, layer_of.get(id(p), -1)) for name, p in found.items()]

    def _projection_slots(self, attention: nn.Module, part: Part) -> list[Entry]:
        if self.names.separate is not None:
            wanted = self.names.separate if part == "qkv" else self.names.separate[1:]
            return [
                (f"{name}.{kind}", parameter, None, 0)
                for name in wanted
                for kind, parameter in attention.get_submodule(name).named_parameters()
            ]
        assert self.names.fused is not None
        name, form = self.names.fused
        fused = attention.get_submodule(name)
        keep = None if part == "qkv" else self._key_value_entries(form)
        # GPT-2's Conv1D keeps (input, output); a Linear keeps (output, input); a bias has one axis
        return [
            (f"{name}.{kind}", parameter, keep, parameter.ndim - 1 if form == "thirds" else 0)
            for kind, parameter in fused.named_parameters()
        ]

    def _key_value_entries(self, form: Fused) -> Tensor:
        """1 where an output entry of the fused projection is a key or a value, 0 where it is a query."""
        heads, groups = self.heads, self.key_heads
        size = int(getattr(self.config, "head_dim", None) or self.config.hidden_size // heads)
        if form == "heads":  # head by head: [q, k, v]
            pattern = [0, 1, 1] * heads
        elif form == "groups":  # key group by key group: [its queries, k, v]
            pattern = ([0] * (heads // groups) + [1, 1]) * groups
        elif form == "quarters":  # four times [q, v, k] of a quarter of the heads (CodeGen's four cores)
            pattern = ([0] * (heads // 4) + [1] * (heads // 2)) * 4
        else:  # thirds, stacked: [q of all heads, k of all groups, v of all groups]
            pattern = [0] * heads + [1] * (2 * groups)
        return torch.tensor(pattern).repeat_interleave(size)
