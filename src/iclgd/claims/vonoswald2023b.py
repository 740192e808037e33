"""von Oswald et al. 2023, "Uncovering mesa-optimization algorithms in Transformers" (arXiv 2309.05858)."""

from iclgd.claims.claim import Place, exact

exact(
    "vonoswald2023b.mesa",
    "The mesa layer is, at every time, ridge regression on what was read.",
    Place("deutch2023", "appendix D; eq. 8 of the paper"),
    "mesa-is-ridge",
)
exact(
    "vonoswald2023b.layer",
    "The mesa layer as it is trained, with a penalty of its own, is ridge regression for every token on those "
    "before it.",
    Place("deutch2023", "appendix D; eq. 8 of the paper"),
    "fast-weight-layers",
    "mesa",
)
