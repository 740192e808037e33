"""Traces behind long contexts: to encode one and to ask behind it, beside a plain pass over the prompt."""

from dataclasses import dataclass, replace

import torch
from subjects import Timing, block_parameters, timed
from torch import Tensor
from traces import attending

from iclgd.learners.prompted import InContext
from iclgd.models.subject import Subject
from iclgd.prompts import Prompts


@dataclass(frozen=True)
class Long:
    """One context: seconds to encode it, of all queries behind it, and of one whole prompt the plain way."""

    encoding: Timing
    queries: Timing
    plain: Timing
    apart: float  # largest difference of attention outputs, of the largest output
    square: float  # GiB of one layer's scores, each token's over each


@torch.no_grad()
def plain(one: Subject, prompts: Prompts) -> Tensor:
    """Attention outputs at a prompt's last token, by the model's own pass over all of it through torch's attention."""
    ids = one.tensor([prompts.context + prompts.queries[0]])
    seen: dict[int, Tensor] = {}
    with attending(one, "sdpa"), one.watched_outputs(lambda layer, y: seen.__setitem__(layer, y[0, -1])):
        one.model(ids, use_cache=False, logits_to_keep=1)
    return torch.stack([seen[layer] for layer in range(len(seen))])


def compare(one: Subject, prompts: Prompts, batch: int | None, within: float) -> Long:
    """Timings, each of one repeat; refused where the first query's outputs are not those of the plain way."""
    length = len(prompts.context)
    first = replace(prompts, queries=prompts.queries[:1], answers=prompts.answers[:1])
    wanted, whole = plain(one, first), timed(lambda: plain(one, first), one.device, 1)
    encoding = timed(lambda: one.encode(prompts.context), one.device, 1)
    with InContext().learn(one, prompts) as predictor:
        found = predictor.trace(first).outputs[0, :, 0].to(wanted)
        queries = timed(lambda: predictor.trace(prompts, batch), one.device, 1)
    apart = float((found - wanted).abs().max() / wanted.abs().max())
    if not apart <= within:
        raise SystemExit(f"{length} tokens: iclgd and a plain pass differ by {apart:.2g} of the largest output")
    square = one.layout.heads * length**2 * one.dtype.itemsize / 2**30
    return Long(encoding, queries, whole, apart, square)


def row(one: Subject, prompts: Prompts, found: Long, top: float) -> list[str]:
    """A line of the table; memory is what was in use beyond the weights, on a GPU."""
    weights = sum(p.numel() * p.element_size() for p in one.model.parameters()) / 2**30
    length, asked = len(prompts.context), len(prompts.queries)
    flop = 2 * block_parameters(one) * length
    most = max((t.gib for t in (found.encoding, found.queries) if t.gib is not None), default=None)
    return [
        f"{length:,}",
        f"{found.plain.seconds:.3g}",
        f"{found.encoding.seconds:.3g}",
        f"{flop / found.encoding.seconds / top:.0%}",
        f"{found.queries.seconds / asked:.3g}",
        f"{found.plain.seconds * asked / (found.encoding.seconds + found.queries.seconds):.0f}",
        "" if most is None else f"{most - weights:.1f}",
        f"{found.square:.3g}",
        f"{found.apart:.1g}",
    ]


HEADER = [
    "context tokens",
    "s a whole prompt, plainly",
    "s to encode",
    "share of the ceiling",
    "s a query behind it",
    "times the plain way",
    "GiB beyond weights",
    "GiB of a square of scores",
    "apart",
]
