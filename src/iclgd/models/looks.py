"""What a page lets people look at: where the prompt's last token attends, head by head, in few bits."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from iclgd.models.attention import repeat, weights_of
from iclgd.models.capture import Heads, Tape, shared_cache
from iclgd.models.copies import sent
from iclgd.models.subject import Subject
from iclgd.models.traces import Predictor, Trace
from iclgd.prompts import Ids, Prompts

MOST, ROOM = 12, 2**22  # queries that are kept, and bytes that they may take
LEVELS = 255


def coded(share: Tensor) -> UInt8[Tensor, "..."]:
    """Shares of 1 in 8 bits, as 255 √p: small shares are told apart to 1e-5, large ones to .8%."""
    return (share.clamp(0, 1).sqrt() * LEVELS).round().to(torch.uint8)


@dataclass(frozen=True)
class Look:
    """Of the first queries behind a context, at the prompt's last token: shares of each token of context and query.

    A query that is shorter than others ends in zeros. ``terms`` is what each token adds to the head's output, by its
    length: ‖a_i v_i‖ over the sum of all. Attention is one gradient step on a kernel model (Ren and Liu 2024, theorem
    3.1); at this query that step is the sum of these terms over the demonstrations.
    """

    weights: UInt8[np.ndarray, "query layer head key"]
    terms: UInt8[np.ndarray, "query layer head key"]


def how_many(subject: Subject, prompts: Prompts) -> int:
    """Queries that are looked at: twelve, or fewer where the model is large or the context long."""
    layout = subject.layout
    one = 2 * layout.layers * layout.heads * (len(prompts.context) + prompts.longest)
    return max(1, min(MOST, ROOM // one, len(prompts.queries)))


def look(predictor: Predictor, prompts: Prompts, count: int) -> Look | None:
    """Of a predictor that reads; none where the architecture shows no heads."""
    if predictor.subject.capture != "registered" or predictor.prefix is None:
        return None
    width = predictor.prefix.length + max(map(len, prompts.queries[:count]))
    found = [_wide(_one(predictor, query), width) for query in prompts.queries[:count]]
    return Look(*torch.stack(found, 1).cpu().numpy())


def _one(predictor: Predictor, query: Ids) -> UInt8[Tensor, "2 layer head key"]:
    """One query's weights and terms, where the last layer is: all queries go to the host in one copy."""
    subject, prefix = predictor.subject, predictor.prefix
    assert prefix is not None
    ids = subject.tensor([query])
    tape = Tape(sent([[len(query) - 1]], ids.device), prefix, heads={})
    with torch.no_grad():
        cache: Any = shared_cache(prefix)
        subject.model(ids, past_key_values=cache, use_cache=True, tape=tape, logits_to_keep=1)
    assert tape.heads is not None
    parts = [coded(torch.stack(_shares(tape.heads[layer]))) for layer in range(subject.layout.layers)]
    return torch.stack([part.to(parts[-1].device) for part in parts], 1)


def _shares(heads: Heads) -> tuple[Float[Tensor, "head key"], Float[Tensor, "head key"]]:
    weights = weights_of(heads.scores, heads.sinks, torch.float32)[0, :, 0]
    lengths = torch.linalg.vector_norm(heads.value.float(), dim=-1)[..., None]
    terms = weights * repeat(lengths, len(weights) // lengths.shape[1])[0, ..., 0]
    return weights, terms / terms.sum(-1, keepdim=True)


def _wide(values: Tensor, width: int) -> Tensor:
    return torch.nn.functional.pad(values, (0, width - values.shape[-1]))


def own_attention(trace: Trace, count: int) -> UInt8[np.ndarray, "query layer head key"]:
    """Attention among the query's own tokens at the prompt's last one: the softmax of their logits alone.

    Reading, training and neither have these tokens in common, so that they can be compared.
    """
    logits, there = trace.own.padded(0, queries=slice(count)), trace.keys[:count, 0]
    return coded(logits.masked_fill(~there[:, None, None], -torch.inf).softmax(-1)).cpu().numpy()


def pieces(tokenizer: Any, ids: Ids) -> list[str]:
    """The text of every token, which may be a part of a character; joined they are the text."""
    texts, before = [], ""
    for end in range(1, len(ids) + 1):
        whole = tokenizer.decode(list(ids[:end]))
        texts.append(whole[len(before) :] if whole.startswith(before) else tokenizer.decode([ids[end - 1]]))
        before = whole
    return texts


def texts_of(tokenizer: Any, prompts: Prompts, count: int) -> dict[str, Any]:
    """Demonstrations and queries as token texts, as they stand in the prompt: plain data."""
    between = pieces(tokenizer, prompts.separator)
    return {
        "start": pieces(tokenizer, prompts.bos),
        "demos": [pieces(tokenizer, demo.ids) for demo in prompts.demos],
        "label_tokens": [len(demo.label) for demo in prompts.demos],
        "separator": between,
        "queries": [pieces(tokenizer, query) for query in prompts.queries[:count]],
        "answers": list(prompts.answers[:count]),
    }
