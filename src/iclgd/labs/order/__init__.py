"""What the order of the demonstrations changes, in reading and in training."""

from iclgd.lab import LABS

LABS.add("order", "iclgd.labs.order.lab:ORDER", "The same demonstrations in other orders: reading, training, layers.")
