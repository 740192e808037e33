"""Heads of small random models, and a layer whose heads are planted."""

import torch

from iclgd.labs.dual.heads import LayerHeads, with_sink
from iclgd.models.subject import Subject
from iclgd.prompts import Demo, Prompts
from tiny import tiny_model

PROMPTS = Prompts(
    bos=(0,),
    demos=tuple(Demo((5 + i, 9, 12 + i, 20 + i % 2), (20 + i % 2,)) for i in range(5)),
    separator=(3,),
    queries=((7, 9, 11), (8, 30, 9, 14)),
    labels=((20,), (21,)),
    answers=(0, 1),
    blanks=((9, 11),),
)


def tiny(name: str, scale: float = 1.0) -> Subject:
    """A small random model in float64; ``scale`` spreads its scores."""
    model = tiny_model(name, dtype=torch.float64)
    if name == "gpt-oss":
        model.set_experts_implementation("eager")  # the fast one does not know float64
    subject = Subject(model, None, name)
    with torch.no_grad():
        for slot in subject.layout.slots("qkv"):
            slot.parameter.mul_(scale)
    return subject


def planted(seed: int = 0, sink: bool = False) -> LayerHeads:
    """Two heads of the same keys: bos, demonstrations of 2 and 3 tokens whose last is the label, two own tokens."""
    g = torch.Generator().manual_seed(seed)
    keys, values = (torch.randn(1, 8, 5, generator=g, dtype=torch.float64).repeat(2, 1, 1) for _ in range(2))
    query = torch.randn(2, 5, generator=g, dtype=torch.float64)
    scores = (keys @ query[..., None])[..., 0]
    sinks = torch.tensor([0.5, -1.0], dtype=torch.float64) if sink else None
    owner = torch.tensor([-1, 0, 0, 1, 1, 1, -1, -1])
    label = torch.tensor([0, 0, 1, 0, 0, 1, 0, 0], dtype=torch.bool)
    output = (with_sink(scores, sinks)[:, None] @ values)[:, 0]
    return LayerHeads(scores, keys, query, values, sinks, output, owner, label, 2)
