"""A learner with an option of its own: a random change of the weights, as large as is asked for.

python examples/learner.py
iclgd compare --plugin examples/learner.py --learners gd,noise:scale=2
iclgd compare --learners examples/learner.py:Noise:scale=2
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated

import torch
from pydantic import Field

import iclgd


@dataclass(frozen=True)
class Noise:
    """Random weights nearby: what does any change of K and V look like?"""

    scale: Annotated[float, Field(gt=0)] = 1.0  # in thousandths of a weight's own spread
    seed: int = 0

    @contextmanager
    def learn(self, subject, prompts) -> Iterator[iclgd.Predictor]:
        random = torch.Generator().manual_seed(self.seed)
        with subject.training("kv") as slots:  # restored bit for bit on the way out
            for slot in slots:
                weights = slot.parameter.data
                noise = torch.randn(weights.shape, generator=random, dtype=torch.float32).to(weights)
                weights += 1e-3 * self.scale * weights.std() * noise
            yield iclgd.Predictor(subject, subject.encode(prompts.bos))


iclgd.LEARNERS.add("noise", Noise)

if __name__ == "__main__":
    from model import tiny

    learners = [Noise(scale=1), Noise(scale=100), "gd"]
    study = iclgd.compare(model=tiny(), learners=learners, k=2, queries=4, init=["trained"], floor=False)
    print(study.page.text())
