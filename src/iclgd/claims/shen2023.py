"""Shen, Mishra and Khashabi 2023, "Do pretrained Transformers Learn In-Context by Gradient Descent?" (2310.08540)."""

from iclgd.claims.claim import Place, claim, identity, number
from iclgd.claims.expect import AtLeast, AtMost, Together

claim(
    "shen2023.order",
    "Full-batch gradient descent ignores the order of the demonstrations; reading, in a causal transformer, does not.",
    Place("deutch2023", "§8"),
    Together({"full batch": AtMost(1e-12, each=True), "causal": AtLeast(0.01, each=True)}),
    identity("order"),
    number("full batch", "causal"),
    of="change of answers when demonstrations are reversed",
)
claim(
    "shen2023.order-of-reading",
    "A transformer's reading depends on the order of the demonstrations.",
    Place("deutch2023", "§8"),
    AtLeast(0.05, each=True),
    identity("order-matters"),
    number("icl"),
    of="change of the update when demonstrations are reversed, in a tiny random transformer",
    note="So it says nothing of learning: untrained weights do the same.",
)
claim(
    "shen2023.order-free-layers",
    "Attention that is neither causal nor has positions ignores the order, as full-batch gradient descent does.",
    Place("deutch2023", "§8; appendix D"),
    AtMost(1e-12, each=True),
    identity("order"),
    number("linear attention"),
)
