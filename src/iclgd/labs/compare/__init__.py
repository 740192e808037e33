"""Reading demonstrations against training on them, on any causal language model."""

from iclgd.lab import LABS

LABS.add("compare", "iclgd.labs.compare.lab:COMPARE", "The main job: reading demonstrations against training on them.")
