"""Choromanski et al. 2021, "Rethinking Attention with Performers" (2009.14794): the φ that Ren and Liu compute."""

from iclgd.claims.claim import Place, claim, identity, number
from iclgd.claims.expect import AtMost, Within
from iclgd.claims.reading import over_heads
from iclgd.claims.ren2024 import CHECK

claim(
    "choromanski2021.unbiased",
    "Positive random features are unbiased: φ̂(x)·φ̂(y) is exp(x·y) on average.",
    Place("choromanski2021", "lemma 1; the slides' φ"),
    Within(1.0, 0.02),
    identity("random-features", 5),
    number("mean"),
)
claim(
    "choromanski2021.root-m",
    "The error of positive random features falls as one over the root of their number.",
    Place("choromanski2021", "theorem on concentration"),
    Within(-0.5, 0.08),
    identity("random-features", 5),
    number("slope"),
    of="slope of the log error of a head's output in the log number",
)
claim(
    "choromanski2021.real-heads",
    "A thousand random features reproduce the median head of a language model to a tenth.",
    Place("ren2024", "appendix of the paper: approximation by random features"),
    AtMost(0.1),
    CHECK,
    over_heads("random", "median", 1024),
    stands="fails",
    tier="minutes",
    needs=("model",),
    over="draw",
    of="relative error of the median head's output, 1024 features",
    note="A real head's keys are long; moved by one vector they need far fewer.",
)
