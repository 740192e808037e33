"""Akyürek et al. 2023, "What learning algorithm is in-context learning?" (arXiv 2211.15661)."""

from iclgd.claims.claim import Place, claim, identity, number
from iclgd.claims.expect import Exactly

claim(
    "akyurek2023.bayes-is-ridge",
    "For normal weights and noise the best linear learner is ridge regression with the penalty σ²/τ².",
    Place("akyurek2023", "§4.2"),
    Exactly(1.0),
    identity("best-ridge"),
    number("factor"),
    of="which of ¼, ½, 1, 2 and 4 times that penalty has the least risk",
)
