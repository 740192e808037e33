"""Liu, Wang, Wu, Feng, Stone and Liu 2024, "Longhorn" (arXiv 2407.14207)."""

from iclgd.claims.claim import Place, claim, exact, identity, number
from iclgd.claims.expect import AtMost

exact(
    "longhorn2024.proximal",
    "The closed form of the layer is, at every token, argmin ‖S − S_before‖² + δ‖Sk − v‖²: an online learner's "
    "proximal step.",
    Place("longhorn2024", "the online objective of the layer"),
    "fast-weight-layers",
    "longhorn",
    note="With one δ for all values of a token, where they have one of each.",
)
claim(
    "longhorn2024.as-built",
    "The layer as it is built takes that step.",
    Place("longhorn2024", "public code, models/longhorn.py, audited"),
    AtMost(1e-12, each=True),
    identity("longhorn-as-built"),
    number("residual"),
    stands="fails",
    of="relative distance of its answers to those of the proximal step",
    note="It keeps of kkᵀ the diagonal, so that all entries of the state are read in parallel. The abstract says that "
    "its update resembles the closed form. The layer of this package takes the step itself.",
)
