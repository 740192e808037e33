"""A prompt as a change of weights: exact for one query, how much of it for all, and whether training makes the same."""

from iclgd.lab import LABS

LABS.add("implicit", "iclgd.labs.implicit.lab:IMPLICIT", "Prompt into weights: the patches that stand in for a prompt.")
