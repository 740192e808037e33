"""Bar Natan 2023, "ICL-vs-FT": a review of the literature; what is its own, and not quoted, is here."""

from iclgd.claims.claim import Place, claim, identity, number
from iclgd.claims.expect import AtMost

claim(
    "natan2023.eq1-as-printed",
    "Linear attention is K V q, as the review prints it.",
    Place("natan2023", "eq. 1"),
    AtMost(1e-12, each=True),
    identity("printed-attention"),
    number("residual"),
    stands="fails",
    of="relative difference to Σ v (k·q); 1 where shapes do not fit",
    note="With keys and values as columns it is V Kᵀ q; the product as printed has no value.",
)
