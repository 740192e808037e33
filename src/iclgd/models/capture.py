"""Attention that can be looked into, without patching a model.

One attention function and its mask are registered with transformers. A call of the model hands it a `Tape`, which
says which query rows to keep and where the shared prefix's keys and values are; nothing is global. Architectures
that ignore the switch are captured by intercepting ``softmax`` under eager attention instead.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.cache_utils import Cache, DynamicCache, DynamicLayer
from transformers.masking_utils import causal_mask_function, eager_mask

from iclgd.models.attention import (
    Kernel,
    Pair,
    kernel_for,
    masked,
    merged,
    scores_of,
    summed_scores,
    weighted,
    weights_of,
)
from iclgd.models.packed import Packed

NAME = "iclgd"


@runtime_checkable
class Modification(Protocol):
    """A change of attention while the model runs: of keys and values, and of the weights after the softmax.

    Both see prefix and own tokens. ``scores`` is what went into the softmax, hidden keys at the lowest float.
    """

    def states(
        self, keys: Float[Tensor, "batch keyhead key dim"], values: Float[Tensor, "batch keyhead key dim"]
    ) -> tuple[Tensor, Tensor]: ...

    def weights(
        self, weights: Float[Tensor, "batch head query key"], scores: Float[Tensor, "batch head query key"]
    ) -> Tensor: ...


@dataclass(frozen=True)
class Heads:
    """One layer's attention at the rows kept, as its softmax saw it: rotated, grouped, scaled, capped and masked."""

    query: Float[Tensor, "batch head row dim"]
    key: Float[Tensor, "batch keyhead key dim"]
    value: Float[Tensor, "batch keyhead key dv"]
    scores: Float[Tensor, "batch head row key"]  # hidden keys at the lowest float
    sinks: Float[Tensor, " head"] | None
    scaling: float
    output: Float[Tensor, "batch head row dv"]  # before the output projection


@dataclass
class Tape:
    """What one forward pass is asked to keep of its attention, and what it kept.

    ``rows`` are token indices of the input, one set for each sequence. ``logits`` are the scaled (and soft-capped,
    where the model does that) scores before the mask and the softmax, of those rows, over the sequence's own tokens;
    ``context`` those over the prefix, summed over heads, of the sequences named by ``ranked`` (None: of all).
    Given a dictionary, ``heads`` keeps all of the attention at those rows; ``modification`` changes it on the way.
    """

    rows: Int[Tensor, "batch row"]
    prefix: "Prefix | None" = None
    ranked: Int[Tensor, " sequence"] | None = None
    logits: dict[int, Float[Tensor, "batch row head key"]] = field(default_factory=dict)
    context: dict[int, Float[Tensor, "sequence row prefix"]] = field(default_factory=dict)
    heads: dict[int, Heads] | None = None
    modification: Modification | None = None

    def keep(self, layer: int, scores: Float[Tensor, "batch head query key"]) -> None:
        """Of scores over prefix and own tokens."""
        own = scores.shape[2]
        self.logits[layer] = self.pick(scores[..., -own:]).transpose(1, 2)
        before = scores[..., :-own] if self.ranked is None else scores[self.ranked.to(scores.device), ..., :-own]
        self.context[layer] = self.pick(before, self.ranked).sum(1)

    def keep_merged(
        self, layer: int, query: Tensor, own: Float[Tensor, "batch head query key"], keys: Tensor, scaling: float
    ) -> None:
        """Of own scores; those over the prefix are computed for the rows that are kept, and no others."""
        self.logits[layer] = self.pick(own).transpose(1, 2)
        asked = query if self.ranked is None else query[self.ranked.to(query.device)]
        self.context[layer] = summed_scores(self.pick(asked, self.ranked), keys) * scaling

    def pick(
        self, states: Float[Tensor, "some head query dim"], of: Tensor | None = None
    ) -> Float[Tensor, "some head row dim"]:
        rows = (self.rows if of is None else self.rows[of.to(self.rows.device)]).to(states.device)
        return states.gather(2, rows[:, None, :, None].expand(-1, states.shape[1], -1, states.shape[3]))


@dataclass(frozen=True)
class Prefix:
    """Keys and values of a context that every query shares: one copy, whatever the batch."""

    length: int
    layers: tuple[tuple[Tensor, Tensor], ...]  # each (1, key head, length, dim)


class SharedLayer(DynamicLayer):
    """A cache layer that counts the prefix but hands back only the new keys and values; attention adds the rest."""

    def __init__(self, keys: Tensor, values: Tensor):
        super().__init__()
        self.lazy_initialization(keys, values)
        self.keys, self.values = keys, values

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        return key_states, value_states


def shared_cache(prefix: Prefix) -> Cache:
    """For the registered attention: positions and masks count the prefix, nothing is copied."""
    return Cache(layers=[SharedLayer(keys, values) for keys, values in prefix.layers])


def expanded_cache(prefix: Prefix, batch: int) -> Cache:
    """For architectures captured by interception: an ordinary cache with the prefix repeated for each sequence."""
    cache = DynamicCache()
    for layer, (keys, values) in enumerate(prefix.layers):
        cache.update(keys.expand(batch, -1, -1, -1), values.expand(batch, -1, -1, -1), layer)
    return cache


def attention(
    module: nn.Module,
    query: Float[Tensor, "batch head query dim"],
    key: Float[Tensor, "batch keyhead key dim"],
    value: Float[Tensor, "batch keyhead key dim"],
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    tape: Tape | None = None,
    **_: Any,
) -> tuple[Tensor, Tensor | None]:
    """softmax(q·k·scaling + mask) v, as the models' own eager code computes it, kept on the tape.

    Keys may be grouped (fewer key heads than heads); ``softcap`` is Gemma-2's c·tanh(s/c); ``s_aux`` holds GPT-OSS's
    sinks, one more score per head that takes weight and gives nothing. With a prefix on the tape, the scores over its
    one copy stand in front of those over the own tokens. Where every row sees all of it they are never in memory, nor
    are those over a context's earlier chunks while it is encoded (see `_behind`). The mask covers the last keys (see
    `mask`). The softmax runs in float32 or better, in float64 for a float64 model.
    """
    scaling = query.shape[-1] ** -0.5 if scaling is None else scaling
    layer = int(module.layer_idx)  # type: ignore[arg-type]  # torch calls it a tensor or module
    prefix = tape.prefix.layers[layer] if tape is not None and tape.prefix is not None else None
    modification = tape.modification if tape is not None else None
    if (behind := _behind(prefix, query, key, value, attention_mask, softcap, tape)) is not None:
        kernel, prefix, key, value = behind
        own = scores_of(query, key, None, scaling)
        if tape is not None:
            tape.keep_merged(layer, query, own, prefix[0], scaling)
        output = merged(query, masked(own, attention_mask), value, prefix, scaling, s_aux, kernel)
        return output.transpose(1, 2).contiguous(), None
    if modification is not None:
        key, value = modification.states(key, value)
        prefix = modification.states(*prefix) if prefix is not None else None
    scores = scores_of(query, key, prefix, scaling)
    if softcap is not None:
        scores = torch.tanh(scores / softcap) * softcap
    if tape is not None:
        tape.keep(layer, scores)
    scores = masked(scores, attention_mask)
    weights = weights_of(scores, s_aux, query.dtype)
    if modification is not None:
        weights = modification.weights(weights, scores)
    weights = nn.functional.dropout(weights, p=dropout, training=module.training)
    output = weighted(weights, value, prefix)
    if tape is not None and tape.heads is not None:
        whole = (*_joined(prefix, key, value), tape.pick(scores), s_aux, scaling, tape.pick(output))
        tape.heads[layer] = Heads(tape.pick(query), *whole)
    return output.transpose(1, 2).contiguous(), weights


def registered(
    module: nn.Module,
    query: Float[Tensor, "batch head query dim"],
    key: Float[Tensor, "batch keyhead key dim"],
    value: Float[Tensor, "batch keyhead key dim"],
    attention_mask: Tensor | None,
    packed: Packed | None = None,
    **given: Any,
) -> tuple[Tensor, Tensor | None]:
    """`attention`; with ``packed``, the batch is one sequence of several texts, and each attends to itself alone."""
    if packed is None:
        return attention(module, query, key, value, attention_mask, **given)
    assert attention_mask is not None  # `mask` gives one
    query, key, value = (packed.padded(states.transpose(1, 2)).transpose(1, 2) for states in (query, key, value))
    output, weights = attention(module, query, key, value, packed.own(attention_mask), **given)
    return packed.joined(output), weights


def _behind(
    prefix: Pair | None,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    softcap: float | None,
    tape: Tape | None,
) -> tuple[Kernel, Pair, Tensor, Tensor] | None:
    """The fused kernel, what it attends, and own keys and values: for rows behind tokens that each of them sees.

    Those are a prefix on the tape, or what a cache has before the tokens of this pass. None where the mask hides some
    of them from a row, or the scores are asked for.
    """
    if softcap is not None or (tape is not None and (tape.modification is not None or tape.heads is not None)):
        return None
    own = query.shape[2]
    if tape is None and len(query) == 1 and own < key.shape[2] and not (key.requires_grad or value.requires_grad):
        prefix = key[:, :, :-own], value[:, :, :-own]
        key, value = key[:, :, -own:], value[:, :, -own:]
    if prefix is None or (mask is not None and mask.shape[-1] > key.shape[2]):
        return None
    kernel = kernel_for(query, prefix[0].shape[2])
    return None if kernel is None else (kernel, prefix, key, value)


def _joined(prefix: tuple[Tensor, Tensor] | None, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    if prefix is None:
        return key, value
    keys, values = (
        torch.cat([part.expand(len(own), -1, -1, -1), own], 2) for part, own in zip(prefix, (key, value), strict=True)
    )
    return keys, values


def mask(
    batch_size: int,
    q_length: int,
    kv_length: int,
    kv_offset: int = 0,
    mask_function: Callable[..., Any] = causal_mask_function,
    attention_mask: Tensor | None = None,
    use_vmap: bool = False,
    local_size: int | None = None,
    **kwargs: Any,
) -> Tensor | None:
    """The mask of eager attention, over the pass's own tokens alone where every row sees all that came before them.

    That is so for causal attention without padding, and in a window that is as long as all there is to see.
    """
    asked = {"attention_mask": attention_mask, "use_vmap": use_vmap, "mask_function": mask_function, **kwargs}
    plain = mask_function is causal_mask_function or (local_size is not None and local_size >= kv_length)
    if plain and attention_mask is None and not use_vmap and q_length < kv_length:
        before = kv_length - q_length
        return eager_mask(1, q_length, q_length, kv_offset=kv_offset + before, **asked)
    return eager_mask(batch_size, q_length, kv_length, kv_offset=kv_offset, local_size=local_size, **asked)


AttentionInterface.register(NAME, registered)
AttentionMaskInterface.register(NAME, mask)  # without it attention would silently see the future


class Interception(TorchFunctionMode):
    """Keeps what goes into the softmax of each attention module while it runs under eager attention.

    ``current`` names the layer whose attention is running (set by hooks around it). Here the mask is already in the
    scores: a key it hides (the future, or beyond a local window) has no score and is kept as 0.

    ``slopes`` are those of ALiBi in a model that counts positions back from the last token of a batch, padding
    included, which the softmax does not notice. Kept are scores that count from the query's own token: m·(j − i).
    """

    def __init__(self, tape: Tape, current: Callable[[], int | None], slopes: Float[Tensor, "head 1 1"] | None = None):
        super().__init__()
        self.tape, self.current, self.slopes = tape, current, slopes

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        layer = self.current()
        if layer is not None and func in (nn.functional.softmax, torch.softmax, Tensor.softmax):
            scores, hidden = args[0], args[0] < torch.finfo(args[0].dtype).min / 2
            if self.slopes is not None:
                after = torch.arange(scores.shape[-2] - 1, -1, -1, device=scores.device)  # tokens after the query's own
                scores = scores + self.slopes.to(scores.device) * after[:, None]
            scores = scores.masked_fill(hidden, 0)
            batch = len(self.tape.rows)  # some models fold heads into the batch
            self.tape.keep(layer, scores if scores.ndim == 4 else scores.view(batch, -1, *scores.shape[-2:]))
        return func(*args, **(kwargs or {}))
