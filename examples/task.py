"""A task: colours.yaml says how a text is asked about, colours.csv holds the examples. This file gives it a name.

python examples/task.py
iclgd compare --task examples/colours.yaml
iclgd compare --plugin examples/task.py --task colours
"""

from pathlib import Path

import iclgd

TASK = Path(__file__).with_name("colours.yaml")
iclgd.TASKS.add("colours", TASK, "the colour of a thing, green or red")

if __name__ == "__main__":
    from model import tiny

    study = iclgd.compare(model=tiny(), task="colours", learners=["gd"], k=4, queries=4, init=["trained"], floor=False)
    print(study.page.text())
