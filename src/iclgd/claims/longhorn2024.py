"""Liu, Wang, Wu, Feng, Stone and Liu 2024, "Longhorn" (arXiv 2407.14207)."""

from iclgd.claims.claim import Place, exact

exact(
    "longhorn2024.proximal",
    "The layer's state is, at every token, argmin ‖S − S_before‖² + δ‖Sk − v‖²: an online learner's proximal step.",
    Place("longhorn2024", "the online objective of the layer"),
    "fast-weight-layers",
    "longhorn",
)
