"""Layer-causal gradient descent: each layer learns from what is known at that layer, as reading does (Deutch 2023, §4).

In-context learning changes a layer's state using earlier layers only. Gradient descent does not: a layer's gradient
comes from all later ones. Here every layer predicts the next token by itself, through the final norm and the
unembedding, and nothing flows back into the layers below.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from iclgd.errors import Refusal
from iclgd.learners.descent import GradientDescent, Gradients, Lesson, lesson_loss, step
from iclgd.models.layout import Slot
from iclgd.models.subject import Subject


@dataclass(frozen=True)
class LayerCausal(GradientDescent):
    """LCGD as in the authors' code: Σ over layers of the loss of U(block output), inputs detached, one step a demo.

    Each layer's loss is taken and backpropagated on its own, so that one vocabulary of logits is alive at a time.
    """

    def predictions(self, subject: Subject) -> int:
        return subject.layout.layers

    def gradients(self, subject: Subject, lesson: Lesson, slots: Sequence[Slot]) -> tuple[float, Gradients]:
        outputs: dict[int, Tensor] = {}
        with _detached(subject.layout.blocks), subject.watched_blocks(outputs.__setitem__):
            final = subject.model(lesson.ids, use_cache=False).logits[0]
        subject.check_unembedding(outputs[subject.layout.layers - 1][0], final)
        return _layer_by_layer(subject, outputs, lesson, slots)


@dataclass(frozen=True)
class LayerCausalPaper(GradientDescent):
    """LCGD as in the paper's equations (§4.4): U(attention output), queries held fixed, one step a token.

    h_i = Attn(W_V·SG(X), W_K·SG(X), SG(q_i)) and L = Σ over layers of CE(U(h_i), e_{i+1}); SG stops the gradient. As
    only keys and values learn, holding the queries fixed is holding W_Q fixed. The attention output is taken after
    its output projection and, as printed, without the residual.
    """

    def __post_init__(self) -> None:
        if self.trains != "kv":
            raise Refusal("lcgd-paper holds the queries fixed, so it trains keys and values only: leave out trains.")

    def predictions(self, subject: Subject) -> int:
        return subject.layout.layers

    def steps(self, subject: Subject, lesson: Lesson, slots: Sequence[Slot]) -> Iterator[tuple[float, Tensor]]:
        for target in lesson.targets:
            outputs: dict[int, Tensor] = {}
            with _detached(subject.layout.attentions), subject.watched_outputs(outputs.__setitem__):
                subject.model(lesson.ids, use_cache=False)
            token = replace(lesson, targets=range(target, target + 1))
            loss, gradients = _layer_by_layer(subject, outputs, token, slots)
            yield loss, step(slots, gradients, self.rate, self.clip, subject.layout.layers)


def _layer_by_layer(
    subject: Subject, outputs: dict[int, Tensor], lesson: Lesson, slots: Sequence[Slot]
) -> tuple[float, Gradients]:
    """Σ over layers of the loss of U(output), and its gradient; a layer's loss reaches that layer's slots only."""
    gradients = [
        torch.zeros_like(slot.parameter, dtype=torch.promote_types(slot.parameter.dtype, torch.float32))
        for slot in slots
    ]
    losses = []
    for layer, output in outputs.items():
        loss = lesson_loss(subject.unembed(output[0]), lesson)
        losses.append(loss.detach())
        mine = [i for i, slot in enumerate(slots) if slot.layer in (layer, -1)]
        found = torch.autograd.grad(loss, [slots[i].parameter for i in mine], allow_unused=True)
        for i, gradient in zip(mine, found, strict=True):
            if gradient is not None:
                gradients[i] += gradient
    return float(torch.stack([loss.to(losses[0].device) for loss in losses]).sum()), gradients


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
