"""Heads of a model: what some of them write, what is left without them, and what they look at."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from iclgd.errors import Refusal
from iclgd.models.attention import repeat, weights_of
from iclgd.models.capture import Prefix, Tape, shared_cache
from iclgd.models.mlps import MLPS, MlpNames, matrix
from iclgd.models.patches import gain_of, norm_eps
from iclgd.models.subject import Subject
from iclgd.prompts import Ids

HALF, TEXTS = 24, 8  # tokens that are repeated, and texts of them, for induction scores


@contextmanager
def before_projections(subject: Subject, see: Callable[[int, Tensor], Tensor | None]) -> Iterator[None]:
    """Calls ``see(layer, heads)`` with what every output projection reads; what it returns is read instead.

    That is the outputs of all heads side by side, in every family.
    """

    def hook(layer: int, args: tuple[Tensor, ...]) -> tuple[Tensor, ...] | None:
        changed = see(layer, args[0])
        return None if changed is None else (changed, *args[1:])

    with ExitStack() as stack:
        for layer, out in enumerate(subject.layout.outs):
            handle = out.register_forward_pre_hook(lambda _module, args, layer=layer: hook(layer, args))
            stack.callback(handle.remove)
        yield


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


# without some of them


def mean_outputs(subject: Subject, text: Ids) -> Float[Tensor, "layer width"]:
    """The mean over the tokens of a text of every head's output."""
    kept: dict[int, Tensor] = {}

    def keep(layer: int, heads: Tensor) -> None:
        kept[layer] = heads.reshape(-1, heads.shape[-1]).to(torch.promote_types(heads.dtype, torch.float32)).mean(0)

    with before_projections(subject, keep), torch.no_grad():
        subject.model(subject.tensor([text]), use_cache=False, logits_to_keep=1)
    return torch.stack([kept[layer].to(subject.device) for layer in sorted(kept)])


@contextmanager
def ablated(subject: Subject, chosen: Bool[Tensor, "layer head"], mean: Float[Tensor, "layer width"]) -> Iterator[None]:
    """Every chosen head gives its mean at every token of every pass: those of the context, too."""

    def give(layer: int, heads: Tensor) -> Tensor | None:
        if not bool(chosen[layer].any()):
            return None
        mask = chosen[layer].repeat_interleave(heads.shape[-1] // chosen.shape[1]).to(heads.device)
        return torch.where(mask, mean[layer].to(heads), heads)

    with before_projections(subject, give):
        yield


# what they look at


def induction(subject: Subject, bos: Ids, seed: int = 0) -> Float[Tensor, "layer head"]:
    """Attention from a repeated token to what followed it before (Olsson 2022), on random tokens said twice.

    Sinks and windows are left out of account: the texts are shorter than any window, and a sink takes its share of
    every head's weight.
    """
    random = torch.Generator().manual_seed(seed)
    tokens = torch.randint(0, int(subject.layout.config.vocab_size), (TEXTS, HALF), generator=random)
    ids = subject.tensor([[*bos, *text, *text] for text in tokens.tolist()])
    rows = torch.arange(ids.shape[1] - HALF, ids.shape[1], device=ids.device).expand(TEXTS, -1)
    found = subject.run(ids, rows, None, predicted=rows[:, :1])
    scores = found.logits.float()  # text layer row head key
    future = torch.arange(scores.shape[-1], device=scores.device) > rows[0, :, None].to(scores.device)
    weights = scores.masked_fill(future[:, None], -torch.inf).softmax(-1)
    after = (rows[0] - HALF + 1).to(scores.device)  # where the same token was followed by the next
    at = weights.gather(-1, after[:, None, None].expand(*weights.shape[:-1], 1))[..., 0]
    return at.mean((0, 2)).cpu()


def dual_step(subject: Subject, prefix: Prefix, token: int, demos: Bool[Tensor, " key"]) -> Float[Tensor, "layer head"]:
    """‖step‖ / (‖step‖ + ‖rest‖) of every head at a token: how much of its output comes from the demonstrations.

    In the dual of softmax attention the step is Σ w_i v_i over the demonstrations' tokens, the rest what the model
    would be without them (Ren and Liu 2024); ``demos`` says which keys of the prefix are theirs.
    """
    if subject.capture != "registered":
        raise Refusal(f"{type(subject.model).__name__} keeps its values to itself: its heads have no dual step here.")
    tape = Tape(torch.zeros(1, 1, dtype=torch.long, device=subject.device), prefix, heads={})
    with torch.no_grad():
        subject.model(subject.tensor([[token]]), past_key_values=shared_cache(prefix), use_cache=True, tape=tape)
    assert tape.heads is not None
    found = []
    for layer in range(subject.layout.layers):
        heads = tape.heads[layer]
        weights = weights_of(heads.scores, heads.sinks, heads.scores.dtype)[0, :, 0]  # head key
        values = repeat(heads.value, len(weights) // heads.value.shape[1])[0]  # head key dim
        theirs = torch.nn.functional.pad(demos, (0, weights.shape[1] - len(demos))).to(weights.device)
        step, rest = ((weights * part).to(values)[:, None] @ values for part in (theirs, ~theirs))
        sizes = [part[:, 0].float().norm(dim=-1) for part in (step, rest)]
        found.append((sizes[0] / (sizes[0] + sizes[1])).cpu())
    return torch.stack(found)
