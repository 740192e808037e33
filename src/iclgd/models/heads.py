"""Heads of a model: what some of them write into the residual stream."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from iclgd.models.mlps import MLPS, MlpNames, matrix
from iclgd.models.patches import gain_of, norm_eps
from iclgd.models.subject import Subject


@torch.no_grad()
def written_by(
    subject: Subject, heads: Float[Tensor, "layer width"], chosen: Bool[Tensor, "layer head"]
) -> Float[Tensor, " dim"]:
    """Σ W_O,h a_h over the chosen heads, a_h their outputs: what they add to the residual stream at one token.

    The output projection's bias is nobody's. Where a norm stands behind it (Gemma 2 and 3, OLMo 2) the sum is scaled as
    that norm scales the whole layer's output, and by the family's own factor where it has one (Granite).
    """
    names, total = MLPS.get(subject.layout.family, MlpNames()), torch.zeros(())
    scale = 1.0 if names.scale is None else float(getattr(subject.layout.config, names.scale))
    for layer, out in enumerate(subject.layout.outs):
        mask = chosen[layer].to(heads.device).repeat_interleave(heads.shape[1] // chosen.shape[1])
        whole, weight = heads[layer].to(out.weight), matrix(out)
        added = weight @ (whole * mask.to(whole))
        if names.norm is not None:  # families with a norm behind the MLP have one behind attention, too
            norm = subject.layout.blocks[layer].get_submodule("post_attention_layernorm")
            given = out(whole[None])[0]
            added = gain_of(norm) * added / (given.square().mean() + norm_eps(norm)).sqrt()
        total = total.to(heads) + scale * added.to(heads)
    return total
