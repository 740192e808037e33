"""A null: the learner's update, taken from another layer. What is as alike as this is no matter of layers.

python examples/null.py
iclgd compare --plugin examples/null.py --nulls other-layer:step=2,random
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import iclgd


@dataclass(frozen=True)
class OtherLayer(iclgd.Null):
    """The learner's update of another layer, so many steps below."""

    step: int = 1
    title: ClassVar[str] = "another layer's update"
    only: ClassVar[tuple[str, ...]] = ("SimAOU", "signs")  # it says nothing of attention maps

    def trace(self, bench, label, learner, run):
        if run.trace is None:  # the learner diverged: there is no update
            return None
        update = run.trace.outputs - bench.zero.outputs  # query layer position dim
        return replace(run.trace, outputs=bench.zero.outputs + update.roll(self.step, dims=1))


iclgd.NULLS.add("other-layer", OtherLayer)

if __name__ == "__main__":
    from model import tiny

    study = iclgd.compare(model=tiny(), nulls=["other-layer", "random"], k=2, queries=4, init=["trained"], floor=False)
    print(study.page.text())
