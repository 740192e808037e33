"""What reading demonstrations changes inside a language model."""

from iclgd.lab import LABS

LABS.add("trace", "iclgd.labs.trace.lab:TRACE", "What reading demonstrations changes inside a language model.")
