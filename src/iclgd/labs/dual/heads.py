"""The dual of every head of a pretrained model, on a real prompt, and what the theorem makes visible there."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from iclgd.errors import Refusal
from iclgd.labs.dual.features import (
    directions,
    gaussian_gram,
    gram_root,
    kernel_residual,
    log_random_variance,
    nearness,
    own_points,
    points,
    random_scores,
    with_query,
    writable,
)
from iclgd.labs.dual.model import Dual, dual_from
from iclgd.models.attention import repeat
from iclgd.models.capture import Heads, Tape
from iclgd.models.subject import Subject
from iclgd.prompts import Ids, Prompts

SIZES = (16, 64, 256, 1024)
ERROR = 0.1  # relative error asked of random features when their number is counted
TOLERANCE = 1e-9  # of both residuals, where the identity is said to hold


@dataclass(frozen=True)
class LayerHeads:
    """One layer's heads at the prompt's last token, in float64 whatever the model computes in.

    Hidden tokens are left out, keys and values repeated for each head: ``group`` heads in a row have the same.
    """

    scores: Float[Tensor, "head token"]
    keys: Float[Tensor, "head token dim"]  # times √scaling, so that k_i · q is the score before any cap
    query: Float[Tensor, "head dim"]  # times √scaling
    values: Float[Tensor, "head token dv"]
    sinks: Float[Tensor, " head"] | None
    output: Float[Tensor, "head dv"]
    owner: Int[Tensor, " token"]  # which demonstration a token belongs to; −1: bos and the query's own
    label: Bool[Tensor, " token"]  # whether it is part of a demonstration's label word
    group: int = 1

    @property
    def demos(self) -> Bool[Tensor, " token"]:
        return self.owner >= 0

    @property
    def weights(self) -> Float[Tensor, "head token"]:
        return with_sink(self.scores, self.sinks)

    def groups(self) -> "Iterator[LayerHeads]":
        """The heads of one key head at a time."""
        for start in range(0, len(self.scores), self.group):
            heads = slice(start, start + self.group)
            per_head = {n: getattr(self, n)[heads] for n in ("scores", "keys", "query", "values", "output")}
            yield replace(self, **per_head, sinks=None if self.sinks is None else self.sinks[heads])


@dataclass(frozen=True)
class HeadAnalysis:
    """What one query's prompt shows, layer by layer and head by head."""

    residual: Float[Tensor, "layer head"]  # ‖dual − head‖ / ‖head‖
    kernel_residual: Float[Tensor, "layer head"]  # of φ(p)·φ(p') = exp(p·p') over all pairs, see `features`
    mass: Float[Tensor, "layer head"]  # attention on the demonstrations
    share: Float[Tensor, "layer head"]  # ‖step‖ / (‖step‖ + ‖zero-shot part‖)
    cosine: Float[Tensor, "layer head"]  # of step and zero-shot part
    span: Float[Tensor, "layer head"]  # directions in which the demonstrations' contributions lie
    rank: Float[Tensor, "layer head"]  # the same for ΔW, in the kernel space of the dual
    own: Float[Tensor, "layer head"]  # 1 where the dual has the head's own kernel exp(k·k'), 0 where it needs `points`
    steps: Float[Tensor, "layer head dv"]  # ΔW φ(q)
    contributions: Float[
        Tensor, "layer head demo"
    ]  # of each demonstration to the step, along it; they sum to 1 (to 0 without a step)
    first: Float[Tensor, "layer head"]  # of the first demonstration's first token alone
    labels: Float[Tensor, "layer head"]  # of all label words
    random: Float[Tensor, "size layer head"]  # ‖random features − head‖ / ‖head‖; nan where scores are not k·q
    moved: Float[Tensor, "size layer head"]  # the same with all keys moved by one vector, which no weight depends on
    needed: Float[Tensor, "layer head"]  # log₁₀ of the features for a kernel value known to `ERROR`, own keys
    needed_moved: Float[Tensor, "layer head"]  # the same, keys moved

    @property
    def holds(self) -> Bool[Tensor, "layer head"]:
        """Where the head is one gradient step on a model in the kernel's own feature space: both residuals are small.

        The first alone would be small with any φ that is right in the query's direction.
        """
        return (self.residual <= TOLERANCE) & (self.kernel_residual <= TOLERANCE)


def owners(prompts: Prompts, query: Ids) -> Int[Tensor, " token"]:
    """A demonstration owns its tokens and the separator behind it; bos and the query own themselves: −1."""
    owner = [-1] * len(prompts.bos)
    for index, demo in enumerate(prompts.demos):
        owner += [index] * (len(demo.ids) + len(prompts.separator))
    return torch.tensor(owner + [-1] * len(query))


def label_tokens(prompts: Prompts, query: Ids) -> Bool[Tensor, " token"]:
    """Which tokens of context and query are demonstrations' label words."""
    found = torch.zeros(len(prompts.context) + len(query), dtype=torch.bool)
    for demo, span in zip(prompts.demos, prompts.context_demos, strict=True):
        found[span.stop - len(demo.label) : span.stop] = True
    return found


def layers(subject: Subject, prompts: Prompts, query: Ids) -> list[LayerHeads]:
    """The heads of every layer, captured in one pass over the whole prompt."""
    if subject.capture != "registered":
        raise Refusal(
            f"{subject.name} keeps its attention to itself ({type(subject.model).__name__} ignores the registered "
            "function), so its heads have no dual here: use another model."
        )
    ids = subject.tensor([prompts.context + query])
    tape = Tape(torch.tensor([[ids.shape[1] - 1]]), heads={})
    with torch.no_grad():
        subject.model(ids, use_cache=False, tape=tape, logits_to_keep=1)
    assert tape.heads is not None
    owner, label = owners(prompts, query), label_tokens(prompts, query)
    return [layer_heads(tape.heads[index], owner, label) for index in range(subject.layout.layers)]


def layer_heads(heads: Heads, owner: Int[Tensor, " token"], label: Bool[Tensor, " token"]) -> LayerHeads:
    scores = heads.scores[0, :, 0].cpu()
    seen = visible(scores)
    group = heads.query.shape[1] // heads.key.shape[1]
    keys, values = (repeat(states, group)[0].cpu()[:, seen] for states in (heads.key, heads.value))
    root = heads.scaling**0.5
    sinks = None if heads.sinks is None else heads.sinks.detach().cpu().double()
    query, output = heads.query[0, :, 0].cpu().double() * root, heads.output[0, :, 0].cpu().double()
    scores, keys, values = scores[:, seen].double(), keys.double() * root, values.double()
    return LayerHeads(scores, keys, query, values, sinks, output, owner[seen], label[seen], group)


def visible(scores: Float[Tensor, "head token"]) -> Bool[Tensor, " token"]:
    """Tokens that the mask leaves; it is the same for all heads of a layer."""
    return (scores > torch.finfo(scores.dtype).min / 2).all(0)


def with_sink(scores: Float[Tensor, "head token"], sinks: Float[Tensor, " head"] | None) -> Float[Tensor, "head token"]:
    """Softmax, in which a sink takes weight and gives nothing."""
    if sinks is None:
        return scores.softmax(-1)
    return torch.cat([scores, sinks[:, None]], -1).softmax(-1)[:, :-1]


def participation(rows: Float[Tensor, "*batch row dim"]) -> Float[Tensor, "*batch"]:
    """How many directions the rows have: (Σλ)² / Σλ² of their Gram matrix's eigenvalues; nan where there is none."""
    if not rows.shape[-2]:
        return rows.new_full(rows.shape[:-2], torch.nan)
    rows = rows / rows.abs().amax((-1, -2), keepdim=True)
    gram = rows.mT @ rows if rows.shape[-1] < rows.shape[-2] else rows @ rows.mT
    return gram.diagonal(dim1=-2, dim2=-1).sum(-1).square() / gram.square().sum((-1, -2))


def plain_scores(layer: LayerHeads) -> bool:
    """Whether the scores are k·q and nothing more; the head's own precision decides how near is equal."""
    return torch.allclose((layer.keys @ layer.query[..., None])[..., 0], layer.scores, rtol=1e-4, atol=1e-4)


def dual_of_group(layer: LayerHeads) -> tuple[Dual, bool, Float[Tensor, " head"]]:
    """The duals of heads with the same keys, whether they have the heads' own kernels, and their kernel residuals.

    With their own kernels nothing of the model's attention is used but keys, values and query: the scores are computed
    again. The keys' Gram matrix and its root, all the cubic work there is, are the same for all heads of the group.
    """
    at, sinks = own_points(layer.query, layer.keys), layer.sinks
    own = bool(writable(at).all()) and plain_scores(layer)
    if own:
        gram = gaussian_gram(layer.keys[0])
        near = nearness(at)
        unit = with_query(gram_root(gram), near)
    else:
        at, middle = points(layer.scores, layer.keys)
        sinks = None if sinks is None else sinks - middle
        gram, near = gaussian_gram(at[:, 1:]), nearness(at)
        unit = with_query(gram_root(gram), near[:, None])[:, 0]
    return dual_from(unit, at, layer.values, layer.demos, sinks), own, kernel_residual(gram, near, unit)


def attention_by_random_features(
    layer: LayerHeads, keys: Float[Tensor, "head token dim"], w: Float[Tensor, "feature dim"]
) -> Float[Tensor, " head"]:
    """Relative error of the heads' outputs with random features for these keys, computed as precisely as ``w`` is."""
    guess = with_sink(random_scores(keys.to(w), layer.query.to(w), w).double(), layer.sinks)
    return ((guess[:, None] @ layer.values)[:, 0] - layer.output).norm(dim=-1) / layer.output.norm(dim=-1)


def features_needed(layer: LayerHeads, keys: Float[Tensor, "head token dim"]) -> Float[Tensor, " head"]:
    """log₁₀ of the random features at which φ̂(k)·φ̂(q) of the token attended most is known to `ERROR`, at least one."""
    variance = log_random_variance(keys, layer.query).gather(1, layer.scores.argmax(-1, keepdim=True))[:, 0]
    return (variance / math.log(10) - 2 * math.log10(ERROR)).clamp_min(0)


def moved_keys(layer: LayerHeads) -> Float[Tensor, "head token dim"]:
    """All keys less their mean under attention and less the query: no weight changes, and ‖k + q‖ is small."""
    mean = (layer.weights[..., None] * layer.keys).sum(1) / layer.weights.sum(-1, keepdim=True)
    return layer.keys - (mean + layer.query)[:, None]


def token_parts(layer: LayerHeads, step: Float[Tensor, "head dv"]) -> Float[Tensor, "head token"]:
    """Each token's part of the step, along the step: 1 in all, 0 for the query's own tokens."""
    length = step.norm(dim=-1, keepdim=True).clamp_min(torch.finfo(step.dtype).tiny)
    along = (layer.values @ (step / length)[..., None])[..., 0]
    return layer.weights * along * layer.demos / length


def analyse_group(layer: LayerHeads, demos: int) -> dict[str, Tensor]:
    """The quantities of `HeadAnalysis` that need a dual, for heads with the same keys."""
    dual, own, kernel = dual_of_group(layer)
    update = dual.update()
    zero, step = dual.zero_shot, dual.predict(update)
    size = layer.output.norm(dim=-1)
    parts = token_parts(layer, step)
    start = (layer.owner == 0).nonzero()[:1, 0]  # the first demonstration's first token, if it is seen
    return {
        "residual": (dual.predict(dual.start + update) - layer.output).norm(dim=-1) / size,
        "kernel_residual": kernel,
        "mass": layer.weights[:, layer.demos].sum(-1),
        "share": step.norm(dim=-1) / (step.norm(dim=-1) + zero.norm(dim=-1)),
        "cosine": torch.cosine_similarity(step, zero, dim=-1),
        "span": participation((layer.weights[..., None] * layer.values)[:, layer.demos]),
        "rank": participation(update),
        "own": torch.full_like(size, float(own)),
        "steps": step,
        "contributions": parts.new_zeros(len(step), demos).index_add(
            1, layer.owner[layer.demos], parts[:, layer.demos]
        ),
        "first": parts[:, start].sum(-1),
        "labels": parts[:, layer.label].sum(-1),
    }


def analyse_features(layer: LayerHeads, draws: Sequence[Tensor]) -> dict[str, Tensor]:
    """The quantities of `HeadAnalysis` about random features, for the heads of a layer."""
    known = 1.0 if plain_scores(layer) else torch.nan
    moved = moved_keys(layer)
    return {
        "random": torch.stack([known * attention_by_random_features(layer, layer.keys, w) for w in draws]),
        "moved": torch.stack([known * attention_by_random_features(layer, moved, w) for w in draws]),
        "needed": known * features_needed(layer, layer.keys),
        "needed_moved": known * features_needed(layer, moved),
    }


def analyse(
    subject: Subject, prompts: Prompts, query: Ids, sizes: Sequence[int] = SIZES, seed: int = 0
) -> HeadAnalysis:
    """Every head's dual for one query: build it, take the gradient step by autograd, and compare with the head."""
    if not prompts.demos:
        raise Refusal("without demonstrations there is no gradient step to look at: give at least one.")
    found = []
    for index, layer in enumerate(layers(subject, prompts, query)):
        g = torch.Generator().manual_seed(seed * 100003 + index)
        # single precision: what is measured is an error of .1 and more, and half of the work is these exponentials
        draws = [directions(size, layer.keys.shape[-1], g).float() for size in sizes]
        parts = [analyse_group(group, len(prompts.demos)) for group in layer.groups()]
        heads = {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
        found.append(heads | analyse_features(layer, draws))
    stacked = {name: torch.stack([one[name] for one in found]) for name in found[0]}
    stacked |= {name: stacked[name].transpose(0, 1) for name in ("random", "moved")}
    return HeadAnalysis(**stacked)
