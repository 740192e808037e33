"""Self-attention trained on regressions, held against the learners it may have become.

Conventions of the whole lab: demonstrations are rows, x [demo, dx] and y [demo, dy]; losses carry the factor ½;
gradients are means over demonstrations, so a rate η here is von Oswald's η and his printed "best lr" is η / N.
"""

from iclgd.lab import GROUPS, LABS

GROUPS["linear"] = "Regressions, learned in context by layers of attention."
LABS.add(
    "linear train",
    "iclgd.labs.linear.lab:TRAIN",
    "Train self-attention on regressions; which learner has it become?",
)
LABS.add(
    "linear layers",
    "iclgd.labs.linear.lab:LAYERS",
    "Layers of every kind, some with a state that learns: which learner does each become?",
)
LABS.add(
    "linear depth",
    "iclgd.labs.linear.lab:DEPTH",
    "Stacks of linear attention: a gradient step a layer, or Newton's speed?",
)
LABS.add(
    "linear optimum",
    "iclgd.labs.linear.lab:OPTIMUM",
    "The best that each learner can do on a linear family, without training.",
)
