"""Equations of the papers, checked on fresh random inputs; each stands beside the mathematics that it checks."""

from iclgd.lab import LABS
from iclgd.small.known import IDENTITIES

LABS.add(
    "identities",
    "iclgd.labs.identities.lab:IDENTITIES_LAB",
    "Equations of the papers on fresh random inputs: what is left.",
)

for _module, _names in {
    "small.identities.descent": (
        "gd-layer",
        "gd-lowers-loss",
        "k-layers",
        "gdpp-layers",
        "preconditioned-layer",
        "kernel-layers",
        "four-scalar-layers",
        "linear-state",
        "separate-tokens",
        "softmax-pair",
        "order",
        "codes-layer",
    ),
    "small.identities.duality": (
        "dual-form",
        "printed-attention",
        "signals-are-gradients",
        "sgd-is-attention",
        "icl-and-ft-updates",
    ),
    "small.identities.optimum": (
        "one-step",
        "more-steps",
        "off-scale",
        "best-matrix",
        "noisy-rate",
        "other-length",
        "plain-baselines",
        "best-ridge",
        "newton-residual",
        "newton-is-gd-doubled",
        "start-decides",
    ),
    "small.identities.recurrent": (
        "mesa-is-ridge",
        "mesa-by-conjugate-gradients",
        "delta-is-sgd",
        "linear-attention-is-sgd",
        "softmax-is-local-mean",
    ),
    "small.identities.fast": (
        "fast-weight-layers",
        "longhorn-as-built",
        "learning-layers",
        "learning-is-linear-attention",
        "qwen-is-gated-delta",
    ),
    "small.identities.languages": (
        "words-up-to-12",
        "words-are-uniform",
        "membership-as-re",
        "labels-are-plus-minus-one",
    ),
    "metrics.identities": (
        "noise-scores",
        "pythagoras",
        "size-of-updates",
        "direction-of-updates",
        "maps-too-far",
        "vector-nulls",
        "recall-by-chance",
        "ranks-of-noise",
    ),
    "small.identities.implicit": ("rank-one-patch", "any-path-is-descent", "patches-converge"),
    "labs.order.identities": ("order-of-layers",),
    "nulls.identities": (
        "layer-causality",
        "layer-losses",
        "rate-and-size",
        "order-matters",
        "nulls-of-a-learner",
        "work-of-learners",
    ),
    "nulls.prompt_identities": (
        "prompt-as-patches",
        "patches-by-family",
        "patches-behind-norms",
        "generation-with-patches",
        "static-patches",
        "exchanged-runs",
        "heads-add-up",
    ),
}.items():
    for _name in _names:
        IDENTITIES.add(_name, f"iclgd.{_module}:{_name.replace('-', '_')}")
