"""The dual of every head of a pretrained model, on a real prompt, and what the theorem makes visible there."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from iclgd.errors import Refusal
from iclgd.labs.dual.features import directions, log_random_variance, own_points, random_scores, writable
from iclgd.labs.dual.model import Dual, kernel_dual, softmax_dual
from iclgd.models.capture import Heads, Tape, repeat
from iclgd.models.subject import Subject
from iclgd.prompts import Ids, Prompts

SIZES = (16, 64, 256, 1024)
ERROR = 0.1  # relative error asked of random features when their number is counted


@dataclass(frozen=True)
class Layer:
    """One layer's heads at the prompt's last token, in float64 whatever the model computes in.

    Hidden tokens are left out, keys and values repeated for each head.
    """

    scores: Float[Tensor, "head token"]
    keys: Float[Tensor, "head token dim"]  # times √scaling, so that k_i · q is the score before any cap
    query: Float[Tensor, "head dim"]  # times √scaling
    values: Float[Tensor, "head token dv"]
    sinks: Float[Tensor, " head"] | None
    output: Float[Tensor, "head dv"]
    owner: Int[Tensor, " token"]  # which demonstration a token belongs to; −1: bos and the query's own

    @property
    def demos(self) -> Bool[Tensor, " token"]:
        return self.owner >= 0

    @property
    def weights(self) -> Float[Tensor, "head token"]:
        return with_sink(self.scores, self.sinks)


@dataclass(frozen=True)
class Reading:
    """What one query's prompt shows, layer by layer and head by head."""

    residual: Float[Tensor, "layer head"]  # ‖dual − head‖ / ‖head‖
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
    random: Float[Tensor, "size layer head"]  # ‖random features − head‖ / ‖head‖; nan where scores are not k·q
    moved: Float[Tensor, "size layer head"]  # the same with all keys moved by one vector, which no weight depends on
    needed: Float[Tensor, "layer head"]  # log₁₀ of the features for a kernel value known to `ERROR`, own keys
    needed_moved: Float[Tensor, "layer head"]  # the same, keys moved


def owners(prompts: Prompts, query: Ids) -> Int[Tensor, " token"]:
    """A demonstration owns its tokens and the separator behind it; bos and the query own themselves: −1."""
    owner = [-1] * len(prompts.bos)
    for index, demo in enumerate(prompts.demos):
        owner += [index] * (len(demo.ids) + len(prompts.separator))
    return torch.tensor(owner + [-1] * len(query))


def layers(subject: Subject, prompts: Prompts, query: Ids) -> list[Layer]:
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
    owner = owners(prompts, query)
    return [_layer(tape.heads[index], owner) for index in range(subject.layout.layers)]


def _layer(heads: Heads, owner: Int[Tensor, " token"]) -> Layer:
    scores = heads.scores[0, :, 0].cpu()
    seen = (scores > torch.finfo(scores.dtype).min / 2).all(0)  # a mask is the same for all heads of a layer
    groups = heads.query.shape[1] // heads.key.shape[1]
    keys, values = (repeat(states, groups)[0].cpu()[:, seen] for states in (heads.key, heads.value))
    root = heads.scaling**0.5
    sinks = None if heads.sinks is None else heads.sinks.detach().cpu().double()
    query, output = heads.query[0, :, 0].cpu().double() * root, heads.output[0, :, 0].cpu().double()
    return Layer(scores[:, seen].double(), keys.double() * root, query, values.double(), sinks, output, owner[seen])


def with_sink(scores: Float[Tensor, "head token"], sinks: Float[Tensor, " head"] | None) -> Float[Tensor, "head token"]:
    """Softmax, in which a sink takes weight and gives nothing."""
    if sinks is None:
        return scores.softmax(-1)
    return torch.cat([scores, sinks[:, None]], -1).softmax(-1)[:, :-1]


def participation(values: Float[Tensor, "*batch value"]) -> Float[Tensor, "*batch"]:
    """(Σλ)² / Σλ²: n for n equal values, 1 for one that is alone; nan for none."""
    return values.sum(-1).square() / values.square().sum(-1)


def plain_scores(layer: Layer) -> bool:
    """Whether the scores are k·q and nothing more; the head's own precision decides how near is equal."""
    return torch.allclose((layer.keys @ layer.query[..., None])[..., 0], layer.scores, rtol=1e-4, atol=1e-4)


def dual_of_layer(layer: Layer) -> tuple[Dual, bool]:
    """The duals of a layer's heads, and whether they have the heads' own kernels.

    With these nothing of the model's attention is used but its keys, values and query: the scores are computed again.
    """
    at = own_points(layer.query, layer.keys)
    if writable(at) and plain_scores(layer):
        return kernel_dual(at, layer.values, layer.demos, layer.sinks), True
    return softmax_dual(layer.scores, layer.keys, layer.values, layer.demos, layer.sinks), False


def attention_by_random_features(
    layer: Layer, keys: Float[Tensor, "head token dim"], w: Float[Tensor, "feature dim"]
) -> Float[Tensor, " head"]:
    """Relative error of the heads' outputs with random features for these keys."""
    guess = with_sink(random_scores(keys, layer.query, w), layer.sinks)
    return ((guess[:, None] @ layer.values)[:, 0] - layer.output).norm(dim=-1) / layer.output.norm(dim=-1)


def features_needed(layer: Layer, keys: Float[Tensor, "head token dim"]) -> Float[Tensor, " head"]:
    """log₁₀ of the random features at which φ̂(k)·φ̂(q) of the token attended most is known to `ERROR`, at least one."""
    variance = log_random_variance(keys, layer.query).gather(1, layer.scores.argmax(-1, keepdim=True))[:, 0]
    return (variance / math.log(10) - 2 * math.log10(ERROR)).clamp_min(0)


def read_layer(layer: Layer, demos: int, draws: Sequence[Tensor]) -> dict[str, Tensor]:
    """The quantities of `Reading` for one layer."""
    dual, own = dual_of_layer(layer)
    update = dual.update()
    zero, step = dual.zero_shot, dual.predict(update)
    size = layer.output.norm(dim=-1)
    given = (layer.weights[..., None] * layer.values)[:, layer.demos]  # head token dv
    length = step.norm(dim=-1, keepdim=True).clamp_min(torch.finfo(step.dtype).tiny)
    along = (given @ (step / length)[..., None])[..., 0] / length  # head token
    shares = along.new_zeros(len(step), demos).index_add(1, layer.owner[layer.demos], along)
    mean = (layer.weights[..., None] * layer.keys).sum(1) / layer.weights.sum(-1, keepdim=True)
    moved = layer.keys - (mean + layer.query)[:, None]
    known = 1.0 if plain_scores(layer) else torch.nan
    return {
        "residual": (dual.predict(dual.start + update) - layer.output).norm(dim=-1) / size,
        "mass": layer.weights[:, layer.demos].sum(-1),
        "share": step.norm(dim=-1) / (step.norm(dim=-1) + zero.norm(dim=-1)),
        "cosine": torch.cosine_similarity(step, zero, dim=-1),
        "span": participation(torch.linalg.svdvals(given).square()),
        "rank": participation(torch.linalg.svdvals(update).square()),
        "own": torch.full_like(size, float(own)),
        "steps": step,
        "contributions": shares,
        "first": along[:, :1].sum(-1) * float((layer.owner[layer.demos] == 0).any()),
        "random": torch.stack([known * attention_by_random_features(layer, layer.keys, w) for w in draws]),
        "moved": torch.stack([known * attention_by_random_features(layer, moved, w) for w in draws]),
        "needed": known * features_needed(layer, layer.keys),
        "needed_moved": known * features_needed(layer, moved),
    }


def read(subject: Subject, prompts: Prompts, query: Ids, sizes: Sequence[int] = SIZES, seed: int = 0) -> Reading:
    """Every head's dual for one query: build it, take the gradient step by autograd, and compare with the head."""
    if not prompts.demos:
        raise Refusal("without demonstrations there is no gradient step to look at: raise `k`.")
    found = []
    for index, layer in enumerate(layers(subject, prompts, query)):
        g = torch.Generator().manual_seed(seed * 100003 + index)
        draws = [directions(size, layer.keys.shape[-1], g).to(layer.keys) for size in sizes]
        found.append(read_layer(layer, len(prompts.demos), draws))
    stacked = {name: torch.stack([one[name] for one in found]) for name in found[0]}
    stacked |= {name: stacked[name].transpose(0, 1) for name in ("random", "moved")}
    return Reading(**stacked)
