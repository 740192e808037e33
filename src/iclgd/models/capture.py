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
from transformers.masking_utils import eager_mask

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

    ``rows`` are token indices of the input, one set for each sequence; ``logits`` are the scaled (and soft-capped,
    where the model does that) scores before the mask and the softmax, of those rows, over prefix and own tokens.
    Given a dictionary, ``heads`` keeps all of the attention at those rows; ``modification`` changes it on the way.
    """

    rows: Int[Tensor, "batch row"]
    prefix: "Prefix | None" = None
    logits: dict[int, Float[Tensor, "batch row head key"]] = field(default_factory=dict)
    heads: dict[int, Heads] | None = None
    modification: Modification | None = None

    def keep(self, layer: int, scores: Float[Tensor, "batch head query key"]) -> None:
        self.logits[layer] = self.pick(scores).transpose(1, 2)

    def pick(self, states: Float[Tensor, "batch head query dim"]) -> Float[Tensor, "batch head row dim"]:
        rows = self.rows.to(states.device)
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
) -> tuple[Tensor, Tensor]:
    """softmax(q·k·scaling + mask) v, as the models' own eager code computes it, kept on the tape.

    Keys may be grouped (fewer key heads than heads); ``softcap`` is Gemma-2's c·tanh(s/c); ``s_aux`` holds GPT-OSS's
    sinks, one more score per head that takes weight and gives nothing. With a prefix on the tape, the scores over its
    one copy stand in front of those over the own tokens; the mask already covers both. The softmax runs in float32
    or better, in float64 for a float64 model.
    """
    scaling = query.shape[-1] ** -0.5 if scaling is None else scaling
    layer = int(module.layer_idx)  # type: ignore[arg-type]
    prefix = tape.prefix.layers[layer] if tape is not None and tape.prefix is not None else None
    modification = tape.modification if tape is not None else None
    if modification is not None:
        key, value = modification.states(key, value)
        prefix = modification.states(*prefix) if prefix is not None else None

    scores = _scores(query, key, prefix, scaling)
    if softcap is not None:
        scores = torch.tanh(scores / softcap) * softcap
    if tape is not None:
        tape.keep(layer, scores)
    if attention_mask is not None:
        scores = scores + attention_mask
    weights = _weights(scores, s_aux, query.dtype)
    if modification is not None:
        weights = modification.weights(weights, scores)
    weights = nn.functional.dropout(weights, p=dropout, training=module.training)

    output = _weighted(weights, value, prefix)
    if tape is not None and tape.heads is not None:
        both = (key, value) if prefix is None else _joined(prefix, key, value)
        tape.heads[layer] = Heads(tape.pick(query), *both, tape.pick(scores), s_aux, scaling, tape.pick(output))
    return output.transpose(1, 2).contiguous(), weights


def _scores(query: Tensor, key: Tensor, prefix: tuple[Tensor, Tensor] | None, scaling: float) -> Tensor:
    """q·k·scaling over prefix and own tokens."""
    own = query @ repeat(key, query.shape[1] // key.shape[1]).transpose(2, 3) * scaling  # batch head query own
    return own if prefix is None else torch.cat([shared_scores(query, prefix[0]) * scaling, own], dim=-1)


def _weights(scores: Float[Tensor, "batch head query key"], sinks: Tensor | None, dtype: torch.dtype) -> Tensor:
    """The softmax, in float32 or better; sinks take their share of it."""
    precise = torch.promote_types(dtype, torch.float32)
    if sinks is None:
        return torch.softmax(scores, dim=-1, dtype=precise).to(dtype)
    more = sinks.reshape(1, -1, 1, 1).expand(scores.shape[0], -1, scores.shape[2], 1)
    scores = torch.cat([scores, more.to(scores.dtype)], dim=-1)
    return torch.softmax(scores, dim=-1, dtype=precise).to(dtype)[..., :-1]


def _weighted(weights: Tensor, value: Tensor, prefix: tuple[Tensor, Tensor] | None) -> Tensor:
    """The weighted sum of the values of prefix and own tokens."""
    own = value.shape[2]
    output = weights[..., -own:] @ repeat(value, weights.shape[1] // value.shape[1])
    return output if prefix is None else output + shared_values(weights[..., :-own], prefix[1])


def _joined(prefix: tuple[Tensor, Tensor], key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    keys, values = (
        torch.cat([part.expand(len(own), -1, -1, -1), own], 2) for part, own in zip(prefix, (key, value), strict=True)
    )
    return keys, values


def repeat(states: Float[Tensor, "batch keyhead key dim"], groups: int) -> Float[Tensor, "batch head key dim"]:
    return states if groups == 1 else states.repeat_interleave(groups, dim=1)


def shared_scores(
    query: Float[Tensor, "batch head query dim"], keys: Float[Tensor, "1 keyhead prefix dim"]
) -> Float[Tensor, "batch head query prefix"]:
    """q·k against one copy of the prefix: all rows of a key head become one matrix product."""
    batch, _, queries, dim = query.shape
    rows = query.unflatten(1, (keys.shape[1], -1)).permute(1, 0, 2, 3, 4).reshape(keys.shape[1], -1, dim)
    scores = rows @ keys[0].transpose(1, 2)  # keyhead batch·group·query prefix
    return scores.view(keys.shape[1], batch, -1, queries, keys.shape[2]).permute(1, 0, 2, 3, 4).flatten(1, 2)


def shared_values(
    weights: Float[Tensor, "batch head query prefix"], values: Float[Tensor, "1 keyhead prefix dim"]
) -> Float[Tensor, "batch head query dim"]:
    """The weighted sum of one copy of the prefix's values: `shared_scores` with keys and queries swapped."""
    return shared_scores(weights, values.transpose(2, 3))


AttentionInterface.register(NAME, attention)
AttentionMaskInterface.register(NAME, eager_mask)  # without it attention would silently see the future


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
