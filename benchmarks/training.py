"""Finetuning on demonstrations: a plain loop, one learner, many at once; seconds a step and finetuning."""

from dataclasses import replace

import torch
from subjects import Timing, timed
from torch import Tensor
from torch.nn.functional import cross_entropy

from iclgd.learners.descent import GradientDescent
from iclgd.learners.layercausal import LayerCausal
from iclgd.learners.together import Job, Trained, train_together
from iclgd.models.subject import Subject
from iclgd.prompts import Prompts

RATE = 1e-3
STEPS = {"cpu": 8, "cuda": 16}  # demonstrations that are trained on


def plain(one: Subject, prompts: Prompts, layer_causal: bool) -> list[Tensor]:
    """PyTorch as anyone would write it: SGD on K and V, one demonstration at a time; what was added to each weight."""
    with one.training("kv") as slots:
        optimizer = torch.optim.SGD([slot.parameter for slot in slots], lr=RATE)
        for demo in prompts.demos:
            ids = one.tensor([prompts.bos + demo.ids])
            loss = _layer_losses(one, ids) if layer_causal else _loss(one.model(ids, use_cache=False).logits[0], ids)
            optimizer.zero_grad()
            loss.backward()
            for slot in slots:
                slot.parameter.grad = slot.restrict(slot.parameter.grad)
            optimizer.step()
        return [(slot.parameter.detach() - slot.before).cpu() for slot in slots]


def _loss(logits: Tensor, ids: Tensor) -> Tensor:
    return cross_entropy(logits[:-1].float(), ids[0, 1:])


def _layer_losses(one: Subject, ids: Tensor) -> Tensor:
    """Each block's own prediction, nothing flowing back into the blocks below."""
    blocks: dict[int, Tensor] = {}

    def detached(_module: object, args: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return (args[0].detach(), *args[1:])

    handles = [block.register_forward_pre_hook(detached) for block in one.layout.blocks]
    try:
        with one.watched_blocks(blocks.__setitem__):
            one.model(ids, use_cache=False, logits_to_keep=1)
    finally:
        for handle in handles:
            handle.remove()
    return torch.stack([_loss(one.unembed(output[0]), ids) for output in blocks.values()]).sum()


def added(trained: Trained) -> list[Tensor]:
    return [(slot.parameter.detach() - slot.before).cpu() for slot in trained.slots]


def compare(one: Subject, prompts: Prompts, replicas: int, within: float) -> dict[tuple[str, str], Timing]:
    """Seconds a step and finetuning of each way; refused where one of them does not agree with the plain one."""
    steps = STEPS[one.device.type]
    short = replace(prompts, demos=prompts.demos[:steps])
    turned = [replace(short, demos=short.demos[i % steps :] + short.demos[: i % steps]) for i in range(replicas)]
    found: dict[tuple[str, str], Timing] = {}
    for kind, learner in (("gd", GradientDescent(rate=RATE)), ("lcgd", LayerCausal(rate=RATE))):
        wanted = plain(one, short, kind == "lcgd")
        timing = timed(lambda k=kind: plain(one, short, k == "lcgd"), one.device, 2)
        found[kind, "plain loop"] = Timing(timing.seconds / steps, timing.gib)
        for many in (1, replicas):
            jobs = [Job(learner, demos, vectors=i == 0) for i, demos in enumerate(turned[:many])]
            _agree(kind, added(train_together(one, jobs)[0]), wanted, within)
            timing = timed(lambda jobs=jobs: train_together(one, jobs), one.device, 2)
            found[kind, f"{many} at once"] = Timing(timing.seconds / steps / many, timing.gib)
    return found


def _agree(kind: str, ours: list[Tensor], wanted: list[Tensor], within: float) -> None:
    apart = max(float((a - b).float().norm() / b.float().norm()) for a, b in zip(ours, wanted, strict=True))
    if not apart <= within:
        raise SystemExit(f"{kind} and the plain loop differ by {apart:.2g} of the update: no timing counts")
