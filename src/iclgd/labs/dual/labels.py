"""What labels have to do with a head's step: how much of it comes from label words, and what wrong labels change.

The loss of the dual fits the values of all demonstration tokens and does not know which of them is an answer.
"""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from iclgd.errors import Refusal
from iclgd.labs.dual.heads import LayerHeads, layers
from iclgd.models.subject import Subject
from iclgd.prompts import Demo, Ids, Prompts


@dataclass(frozen=True)
class FlipEffect:
    """A head's step with every demonstration's label wrong, beside its step with the right ones."""

    cosine: Float[Tensor, "layer head"]
    change: Float[Tensor, "layer head"]  # ‖wrong − right‖ / ‖right‖


def flipped(prompts: Prompts) -> Prompts:
    """The same prompts with every demonstration's label word replaced by the next class's, the last by the first's."""
    if len(prompts.labels) < 2:
        raise Refusal("labels cannot be flipped: the task has one label word only.")

    def wrong(demo: Demo) -> Demo:
        label = prompts.labels[(prompts.labels.index(demo.label) + 1) % len(prompts.labels)]
        return Demo(demo.ids[: len(demo.ids) - len(demo.label)] + label, label)

    return replace(prompts, demos=tuple(map(wrong, prompts.demos)))


def step_of(layer: LayerHeads) -> Float[Tensor, "head dv"]:
    """ΔW φ(q) = Σ A_i v_i over the demonstrations' tokens, which `heads.analyse` takes by gradient descent."""
    return (layer.weights[:, None, layer.demos] @ layer.values[:, layer.demos])[:, 0]


def flip_effect(subject: Subject, prompts: Prompts, query: Ids) -> FlipEffect:
    """What flipping every label does to every head's step; the query's tokens and their positions' order stay.

    In deeper layers keys, values and query have read the wrong labels too: the effect is that of the whole prompt.
    """
    right, wrong = (
        torch.stack([step_of(layer) for layer in layers(subject, asked, query)])
        for asked in (prompts, flipped(prompts))
    )
    change = (wrong - right).norm(dim=-1) / right.norm(dim=-1)
    return FlipEffect(torch.cosine_similarity(wrong, right, dim=-1), change)
