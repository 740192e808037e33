"""What reading and training do in a tiny random transformer: which layers know of which, how far updates go, order.

The same functions run on any model; a model of three layers makes them a matter of a second.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from iclgd.learners import Learner
from iclgd.learners.course import Batch
from iclgd.learners.descent import GradientDescent
from iclgd.learners.layercausal import LayerCausal
from iclgd.learners.prompted import InContext, ZeroShot
from iclgd.learners.vocabulary import Desk
from iclgd.metrics.likeness import cosine
from iclgd.metrics.nulls import isotropic, other_query
from iclgd.metrics.updates import update_size
from iclgd.models.subject import Subject
from iclgd.models.traces import Trace
from iclgd.prompts import Demo, Prompts

LAYERS, WORDS = 3, 61


def tiny(seed: int, layers: int = LAYERS, words: int = WORDS) -> Subject:
    """A random Llama, without a tokenizer: its prompts are drawn as ids."""
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=words,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=256,
    )
    model: Any = LlamaForCausalLM(config)
    return Subject(model.double(), None, "tiny")


def prompts(seed: int, demos: int = 4, queries: int = 3) -> Prompts:
    """Random demonstrations of six tokens and a label, and queries."""
    g = torch.Generator().manual_seed(seed + 1)

    def draw(count: int) -> tuple[int, ...]:
        return tuple(torch.randint(5, WORDS, (count,), generator=g).tolist())

    labels = ((3,), (4,))
    shown = tuple(Demo(draw(6) + labels[i % 2], labels[i % 2]) for i in range(demos))
    return Prompts((1,), shown, (2,), tuple(draw(5) for _ in range(queries)), labels, (0,) * queries)


def answered(subject: Subject, learner: Learner, asked: Prompts) -> Trace:
    with learner.learn(subject, asked) as predictor:
        return predictor.trace(asked)


def update(subject: Subject, learner: Learner, asked: Prompts) -> Tensor:
    """What a learner changes in the attention outputs at the prompt's last token: (query layer dim)."""
    zero = answered(subject, ZeroShot(), asked)
    return (answered(subject, learner, asked).outputs - zero.outputs)[:, :, 0]


@contextmanager
def other_last_layer(subject: Subject, seed: int) -> Iterator[None]:
    """The last layer's keys and values replaced by random ones, and restored."""
    g = torch.Generator().manual_seed(seed + 2)
    with subject.training("kv") as slots:
        for slot in slots:
            if slot.layer == LAYERS - 1:
                slot.parameter.data += torch.randn(slot.parameter.shape, generator=g, dtype=slot.parameter.dtype)
        yield


def layer_causality(seed: int) -> dict[str, float]:
    """How much other weights in the last layer change a learner's update in the layers before it, relative to it."""
    subject, asked = tiny(seed), prompts(seed)
    learners: dict[str, Learner] = {"icl": InContext(), "gd": GradientDescent(0.1), "lcgd": LayerCausal(0.1)}
    found = {}
    for name, learner in learners.items():
        own = update(subject, learner, asked)[:, :-1]
        with other_last_layer(subject, seed):
            other = update(subject, learner, asked)[:, :-1]
        found[name] = float((other - own).norm() / own.norm())
    return found


def layer_losses(seed: int) -> dict[str, float]:
    """LCGD's gradients, layer by layer, against one backward pass through the sum of all layers' losses.

    ``head`` is how far U of the last block is from the model's own answer.
    """
    subject, asked = tiny(seed), prompts(seed)
    learner = LayerCausal()
    with subject.training("kv") as slots:
        batch = Batch.of(learner.course(asked)[:1])
        _, apart = learner.gradients(subject, batch, [slot.parameter for slot in slots], Desk())
        together = [torch.zeros_like(slot.parameter) for slot in slots]
        for layer in range(LAYERS):  # a layer's own loss, by a pass whose lower layers have no history
            outputs: dict[int, Tensor] = {}
            with subject.watched_blocks(outputs.__setitem__):
                final = subject.model(batch.ids, use_cache=False).logits[0]
            loss = cross_entropy(subject.unembed(batch.pick(outputs[layer])), batch.wanted)
            mine = [i for i, slot in enumerate(slots) if slot.layer == layer]
            for i, gradient in zip(mine, torch.autograd.grad(loss, [slots[i].parameter for i in mine]), strict=True):
                together[i] = gradient
        head = (subject.unembed(outputs[LAYERS - 1][0]) - final).abs().max() / final.abs().max()
    pairs = zip(apart, together, strict=True)
    gap = max(float((a - b).norm() / b.norm()) for a, b in pairs)
    return {"residual": gap, "head": float(head.detach())}


def rate_and_size(seed: int) -> dict[str, float]:
    """Sizes of gradient descent's updates at three rates, over the zero-shot output's; and whether the loss falls."""
    subject, asked = tiny(seed), prompts(seed)
    zero = answered(subject, ZeroShot(), asked).outputs[:, :, 0]
    found = {}
    for rate in (0.01, 0.1, 1.0):
        tuned = answered(subject, GradientDescent(rate), asked).outputs[:, :, 0]
        found[f"{rate:g}"] = float(update_size(zero, tuned).mean())
    one = replace(asked, demos=asked.demos[:1])
    with GradientDescent(0.1, epochs=2).learn(subject, one) as predictor:
        assert predictor.training is not None
        first, second = predictor.training.losses
    return found | {"falls": first - second}


def order_matters(seed: int) -> dict[str, float]:
    """What reversing the demonstrations changes in an update, relative to it: reading, and one step a demonstration."""
    subject, asked = tiny(seed), prompts(seed)
    mixed = replace(asked, demos=asked.demos[::-1])
    found = {}
    for name, learner in (("icl", InContext()), ("gd", GradientDescent(0.1))):
        own, other = update(subject, learner, asked), update(subject, learner, mixed)
        found[name] = float((other - own).norm() / own.norm())
    return found


def nulls_of_a_learner(seed: int) -> dict[str, float]:
    """Cosines to the learner's own update of what stands in its place, on a trained trace: random ones have none.

    ``restored`` is what is left of training after it: nothing.
    """
    subject, asked = tiny(seed), prompts(seed, queries=12)
    before = subject.fingerprint()
    zero, tuned = (answered(subject, one, asked).outputs[:, :, 0] for one in (ZeroShot(), GradientDescent(0.3)))
    again = answered(subject, ZeroShot(), asked).outputs[:, :, 0]
    random, other = isotropic(zero, tuned, seed), other_query(zero, tuned, seed)
    return {
        "random": float(cosine(random - zero, tuned - zero).mean()),
        "other query": float(cosine(other - zero, tuned - zero).mean()),
        "moved": float(update_size(zero, tuned).mean()),
        "restored": float(subject.fingerprint() != before or not torch.equal(again, zero)),
    }


class _Counted(TorchDispatchMode):
    """Floating-point operations of everything that runs, backward passes included."""

    def __init__(self) -> None:
        super().__init__()
        self.flops = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        if (count := flop_registry.get(func._overloadpacket)) is not None:
            self.flops += count(*args, **(kwargs or {}), out_val=found)
        return found


def work_of_learners(seed: int) -> dict[str, float]:
    """Floating-point operations of LCGD's gradients over gradient descent's, in a model shaped like SmolLM2-135M.

    Thirty layers, 85 words of vocabulary for each of its hidden dimensions, as there.
    """
    subject, asked = tiny(seed, layers=30, words=85 * 32), prompts(seed)
    counted = {}
    for name, learner in (("gd", GradientDescent()), ("lcgd", LayerCausal())):
        step = learner.course(asked)[0]
        learner.check(subject, step)  # what a subject is asked before it is trained is no work of a step
        with subject.training("kv") as slots, _Counted() as counter:
            batch = Batch.of([step])
            learner.gradients(subject, batch, [slot.parameter for slot in slots], Desk())
        counted[name] = counter.flops
    return {"ratio": counted["lcgd"] / counted["gd"]}
