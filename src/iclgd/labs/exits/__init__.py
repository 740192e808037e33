"""What a language model would say if it stopped at an earlier layer."""

from iclgd.lab import LABS

LABS.add("exits", "iclgd.labs.exits.lab:EXITS", "Every layer read out: from which on does a model say what it says?")
