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
from iclgd.learners.vocabulary import Desk, beside_unembedding, cross_entropies, of_unembedding
from iclgd.models.subject import Subject
from iclgd.prompts import Demo, Ids


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
        self, subject: Subject, batch: Batch, leaves: Sequence[Tensor], desk: Desk
    ) -> tuple[Float[Tensor, " replica"], Gradients]:
        outputs: dict[int, Tensor] = {}
        with _detached(subject.layout.blocks), subject.watched_blocks(lambda i, y: outputs.update({i: batch.pick(y)})):
            subject.model(batch.ids, use_cache=False, logits_to_keep=1, **batch.extra)
        return _all_layers(subject, outputs, batch, leaves, desk)


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
        self, subject: Subject, batch: Batch, leaves: Sequence[Tensor], desk: Desk
    ) -> tuple[Float[Tensor, " replica"], Gradients]:
        outputs: dict[int, Tensor] = {}
        layout = subject.layout
        with (
            _detached([*layout.blocks, *layout.attentions]),
            subject.watched_outputs(lambda i, y: outputs.update({i: batch.pick(y)})),
        ):
            subject.model(batch.ids, use_cache=False, logits_to_keep=1, **batch.extra)
        return _all_layers(subject, outputs, batch, leaves, desk)


def _all_layers(
    subject: Subject, outputs: dict[int, Tensor], batch: Batch, leaves: Sequence[Tensor], desk: Desk
) -> tuple[Float[Tensor, " replica"], Gradients]:
    """Σ over layers of each replica's mean loss of U(output), and its gradient.

    All layers go through the final norm and the unembedding together. Their graphs have nothing in common, so that one
    backward pass from the normed outputs is every layer's own.
    """
    last = outputs[max(outputs)].device
    stacked = torch.stack([outputs[layer].to(last) for layer in sorted(outputs)])  # layer row dim
    normed = beside_unembedding(subject, subject.layout.norm(stacked).flatten(0, 1))
    shares, wanted = (part.to(normed.device) for part in (batch.shares, batch.wanted))
    outside = of_unembedding(subject, leaves)
    losses, slopes, more = cross_entropies(
        subject,
        normed.detach(),
        wanted.repeat(len(stacked)),
        shares.repeat(len(stacked)),
        [leaves[i] for i in outside],
        desk,
    )
    found = torch.autograd.grad(normed, leaves, slopes, allow_unused=True)
    gradients = [torch.zeros_like(leaf) if g is None else g for leaf, g in zip(leaves, found, strict=True)]
    for i, gradient in zip(outside, more, strict=True):
        gradients[i] = gradients[i] + gradient
    return batch.means(losses.view(len(stacked), -1).sum(0)), gradients


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
