"""Zhang, Frei and Bartlett 2023, "Trained Transformers Learn Linear Models In-Context" (arXiv 2306.09927)."""

from iclgd.claims.claim import Place, claim, identity, number
from iclgd.claims.expect import Within

claim(
    "zhang2023.other-length",
    "A layer trained at N demonstrations and shown M has the risk of theorem 4.2.",
    Place("zhang2023", "theorem 4.2"),
    Within(1.0, 0.05),
    identity("other-length", 5),
    number("ratio"),
    of="sampled risk over the formula, N = 20 and M = 40",
    chosen_after=True,
)
