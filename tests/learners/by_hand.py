"""Steps of gradient descent by autograd alone, and which parameters they moved."""

import torch
from plain import BOS, copy_of, plain_loss, plain_step, weights_of

RATE = 0.05


def whole(demo) -> list[int]:
    """Every token after the first is a target, counted with bos."""
    return list(range(1, len(BOS + demo.ids)))


def by_hand(subject, demos, part="kv", rate=RATE, clip=None, targets=whole):
    model = copy_of(subject)
    for demo in demos:
        plain_step(model, plain_loss(model, BOS + demo.ids, targets(demo)), subject.name, part, rate, clip)
    return weights_of(model)


def moved(before, after) -> set[str]:
    return {name for name in before if not torch.equal(before[name], after[name])}
