"""Layer-causal gradient descent: each layer learns from what is known at that layer, as reading does (Deutch 2023, §4).

In-context learning changes a layer's state using earlier layers only. Gradient descent does not: a layer's gradient
comes from all later ones. Here every layer predicts the next token by itself, through the final norm and the
unembedding, and nothing flows back into the layers below.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from iclgd.errors import Refusal
from iclgd.learners.course import Batch, Gradients, Step
from iclgd.learners.descent import GradientDescent
from iclgd.models.layout import Layout
from iclgd.models.subject import Subject
from iclgd.prompts import Demo, Ids

LOGITS = {"cpu": 2**25}  # that are alive at a time, by kind of device
MANY_LOGITS, LEAST_ROWS = 2**27, 256  # fewer rows at a time are a slow product


@dataclass(frozen=True)
class LayerCausal(GradientDescent):
    """LCGD as in the authors' code: Σ over layers of the loss of U(block output), inputs detached, one step a demo."""

    def predictions(self, subject: Subject) -> int:
        return subject.layout.layers

    def check(self, subject: Subject, step: Step) -> None:
        """Refuse a model whose own predictions are not U(last block): the losses would be of something else."""
        outputs: dict[int, Tensor] = {}
        with torch.no_grad(), subject.watched_blocks(outputs.__setitem__):
            final = subject.model(subject.tensor([step.ids]), use_cache=False).logits[0]
        subject.check_unembedding(outputs[subject.layout.layers - 1][0], final)

    def gradients(
        self, subject: Subject, batch: Batch, leaves: Sequence[Tensor]
    ) -> tuple[Float[Tensor, " replica"], Gradients]:
        outputs: dict[int, Tensor] = {}
        with _detached(subject.layout.blocks), subject.watched_blocks(lambda i, y: outputs.update({i: batch.pick(y)})):
            subject.model(batch.ids, use_cache=False, logits_to_keep=1, **batch.extra)
        return _all_layers(subject, outputs, batch, leaves)


@dataclass(frozen=True)
class LayerCausalPaper(LayerCausal):
    """LCGD as in the paper's equations (§4.4): U(attention output), queries held fixed, one step a token.

    h_i = Attn(W_V·SG(X), W_K·SG(X), SG(q_i)) and L = Σ over layers of CE(U(h_i), e_{i+1}); SG stops the gradient. As
    only keys and values learn, holding the queries fixed is holding W_Q fixed. The attention output is taken after
    its output projection and, as printed, without the residual.
    """

    def __post_init__(self) -> None:
        if self.trains != "kv":
            raise Refusal("lcgd-paper holds the queries fixed, so it trains keys and values only: leave out trains.")

    def steps(self, bos: Ids, demo: Demo, index: int) -> list[Step]:
        """One for each token; nothing after it matters to it, but the first step sees the whole demonstration."""
        (whole,) = super().steps(bos, demo, index)
        ids, first = whole.ids, whole.targets.start
        return [Step(ids if t == first else ids[: t + 1], range(t, t + 1), index, t == first) for t in whole.targets]

    def gradients(
        self, subject: Subject, batch: Batch, leaves: Sequence[Tensor]
    ) -> tuple[Float[Tensor, " replica"], Gradients]:
        outputs: dict[int, Tensor] = {}
        layout = subject.layout
        with (
            _detached([*layout.blocks, *layout.attentions]),
            subject.watched_outputs(lambda i, y: outputs.update({i: batch.pick(y)})),
        ):
            subject.model(batch.ids, use_cache=False, logits_to_keep=1, **batch.extra)
        return _all_layers(subject, outputs, batch, leaves)


def _all_layers(
    subject: Subject, outputs: dict[int, Tensor], batch: Batch, leaves: Sequence[Tensor]
) -> tuple[Float[Tensor, " replica"], Gradients]:
    """Σ over layers of each replica's mean loss of U(output), and its gradient.

    All layers go through the final norm and the unembedding together. Their graphs have nothing in common, so that one
    backward pass from the normed outputs is every layer's own.
    """
    last = outputs[max(outputs)].device
    stacked = torch.stack([outputs[layer].to(last) for layer in sorted(outputs)])  # layer row dim
    normed = subject.layout.norm(stacked).flatten(0, 1)
    shares, wanted = (
        part.to(normed.device) for part in (batch.counts.double().reciprocal()[batch.replica], batch.wanted)
    )
    outside = [i for i, leaf in enumerate(leaves) if _is_of(subject.layout.unembedding, leaf)]
    losses, slopes, more = _closed_form(
        subject,
        normed.detach(),
        wanted.repeat(len(stacked)),
        shares.repeat(len(stacked)),
        [leaves[i] for i in outside],
    )
    found = torch.autograd.grad(normed, leaves, slopes, allow_unused=True)
    gradients = [torch.zeros_like(leaf) if g is None else g for leaf, g in zip(leaves, found, strict=True)]
    for i, gradient in zip(outside, more, strict=True):
        gradients[i] = gradients[i] + gradient
    return batch.means(losses.view(len(stacked), -1).sum(0)), gradients


@torch.no_grad()
def _closed_form(
    subject: Subject,
    normed: Float[Tensor, "row dim"],
    wanted: Tensor,
    shares: Float[Tensor, " row"],
    outside: Sequence[Tensor],
) -> tuple[Float[Tensor, " row"], Float[Tensor, "row dim"], list[Tensor]]:
    """Cross-entropies of U's predictions; ∇ of Σ share·loss in the rows, and in parameters of the unembedding.

    ∂CE/∂logits = softmax(logits) − onehot: no graph over the vocabulary, of which a few rows are alive at a time.
    """
    room = max(LEAST_ROWS, LOGITS.get(normed.device.type, MANY_LOGITS) // subject.layout.config.vocab_size)
    matrix = plain_unembedding(subject.layout)
    if matrix is not None and not outside and matrix.dtype in (torch.float32, torch.float64):
        return *_products(normed, matrix, wanted, shares, room), []
    losses, slopes, more = [], [], [torch.zeros_like(leaf) for leaf in outside]
    for first in range(0, len(normed), room):
        part = slice(first, first + room)
        rows, targets = normed[part].detach().requires_grad_(), wanted[part, None]
        with torch.enable_grad():
            logits = subject.unembed_normed(rows)
        logs = logits.to(torch.promote_types(logits.dtype, torch.float32)).log_softmax(-1)
        losses.append(-logs.gather(1, targets)[:, 0])
        slope = logs.exp_().scatter_add_(1, targets, -torch.ones_like(targets, dtype=logs.dtype))
        slope *= shares[part, None].to(slope)
        slope, *added = torch.autograd.grad(logits, [rows, *outside], slope.to(logits.dtype))
        slopes.append(slope)
        more = [one + other for one, other in zip(more, added, strict=True)]
    return torch.cat(losses), torch.cat(slopes), more


def plain_unembedding(layout: Layout) -> Float[Tensor, "token dim"] | None:
    """U, where logits are U times what the final norm gives, and nothing else is done to them."""
    names, last = layout.names, layout.unembedding
    other = names.scale, names.divisor, getattr(layout.config, "final_logit_softcapping", None)
    if type(last) is not nn.Linear or last.bias is not None or other != (None, None, None):
        return None
    return last.weight


def _products(
    normed: Float[Tensor, "row dim"], matrix: Float[Tensor, "token dim"], wanted: Tensor, shares: Tensor, room: int
) -> tuple[Float[Tensor, " row"], Float[Tensor, "row dim"]]:
    """The same where logits are a product and nothing else: two products a part, and logits in one place throughout."""
    losses, slopes = normed.new_empty(len(normed)), torch.empty_like(normed)
    place = normed.new_empty(min(room, len(normed)), len(matrix))
    for first in range(0, len(normed), room):
        part = slice(first, first + room)
        targets = wanted[part, None]
        logits = torch.mm(normed[part], matrix.T, out=place[: len(targets)])
        top, right = logits.amax(1, keepdim=True), logits.gather(1, targets)
        total = logits.sub_(top).exp_().sum(1, keepdim=True)
        losses[part] = (total.log() + top - right)[:, 0]
        share = shares[part, None].to(logits)
        logits.mul_(share / total).scatter_add_(1, targets, -share)
        torch.mm(logits, matrix, out=slopes[part])
    return losses, slopes


def _is_of(module: nn.Module, leaf: Tensor) -> bool:
    return any(leaf is parameter for parameter in module.parameters())


@contextmanager
def _detached(modules: Sequence[nn.Module]) -> Iterator[None]:
    """The modules' hidden states come in without their history."""

    def detach(_module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
        if "hidden_states" in kwargs:
            return args, {**kwargs, "hidden_states": kwargs["hidden_states"].detach()}
        return (args[0].detach(), *args[1:]), kwargs

    with ExitStack() as stack:
        for module in modules:
            stack.callback(module.register_forward_pre_hook(detach, with_kwargs=True).remove)
        yield
