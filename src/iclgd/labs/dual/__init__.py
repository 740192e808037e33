"""Softmax attention as one gradient step on a kernel model f(x) = W φ(x) (Ren and Liu), and what to change in it."""

from iclgd.lab import GROUPS, LABS
from iclgd.small.known import IDENTITIES

GROUPS["dual"] = "Softmax attention as one gradient step on a kernel model."
LABS.add("dual check", "iclgd.labs.dual.lab:CHECK", "Every head of a model as its zero-shot part + one gradient step.")
LABS.add("dual bound", "iclgd.labs.dual.lab:BOUND", "The generalisation bound of that step, beside the measured gap.")
LABS.add("dual modify", "iclgd.labs.dual.lab:MODIFY", "Attention modified inside a pretrained model.")
LABS.add("dual train", "iclgd.labs.dual.lab:TRAIN", "Modified attention trained on regressions or regular languages.")

for _module, _names in {
    "identities": (
        "softmax-is-one-step",
        "exponential-kernel",
        "taylor-features",
        "siamese-loss",
        "linear-case",
        "network-behind",
        "rademacher",
        "random-features",
        "every-head",
        "constrained-loss",
    ),
    "modified_identities": ("modified-steps", "regularised-as-printed", "negatives-as-printed"),
}.items():
    for _name in _names:
        IDENTITIES.add(_name, f"iclgd.labs.dual.{_module}:{_name.replace('-', '_')}")
