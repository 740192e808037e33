"""What of a reading carries its effect: layers and heads exchanged between runs, heads taken out."""

from iclgd.lab import LABS

LABS.add("causal", "iclgd.labs.causal.lab:CAUSAL", "Layers exchanged between reading and training, heads taken out.")
