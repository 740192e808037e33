"""Finetuning on demonstrations: a plain loop, one learner, many at once; seconds a step and finetuning."""

from collections.abc import Callable

import torch
from subjects import Timing, timed
from torch import Tensor
from torch.nn.functional import cross_entropy

from iclgd.models.subject import Subject
from iclgd.prompts import Prompts

RATE = 1e-3


def plain_gd(one: Subject, prompts: Prompts) -> list[Tensor]:
    """PyTorch as anyone would write it: SGD on K and V, one demonstration at a time; what was added to each weight."""
    with one.training("kv") as slots:
        parameters = [slot.parameter for slot in slots]
        optimizer = torch.optim.SGD(parameters, lr=RATE)
        for demo in prompts.demos:
            ids = one.tensor([prompts.bos + demo.ids])
            logits = one.model(ids, use_cache=False).logits[0]
            loss = cross_entropy(logits[:-1].float(), ids[0, 1:])
            optimizer.zero_grad()
            loss.backward()
            if any(slot.keep is not None for slot in slots):
                for slot in slots:
                    slot.parameter.grad = slot.restrict(slot.parameter.grad)  # type: ignore[arg-type]
            optimizer.step()
        return [(slot.parameter.detach() - slot.before).cpu() for slot in slots]  # type: ignore[operator]


def seconds_a_step(work: Callable[[], object], one: Subject, steps: int, repeats: int = 2) -> Timing:
    timing = timed(work, one.device, repeats)
    return Timing(timing.seconds / steps, timing.gib)
