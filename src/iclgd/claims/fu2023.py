"""Fu, Chen, Jia and Sharan 2023, "Transformers Learn to Achieve Second-Order Convergence Rates …" (2310.17086)."""

from iclgd.claims.claim import Place, claim, exact, identity, number
from iclgd.claims.expect import AtMost, Between, Within

exact(
    "fu2023.newton-residual",
    "Newton's iteration from αS leaves (1 − αλ²)^(2^k) of each eigendirection.",
    Place("fu2023", "§3"),
    "newton-residual",
    limit=1e-11,
)
claim(
    "fu2023.largest-rate",
    "It converges at α = 2/‖SSᵀ‖, as the text allows.",
    Place("fu2023", "§3, the condition on α"),
    Between(0.01, 1.0, each=True),
    identity("newton-residual"),
    number("stays"),
    stands="fails",
    of="how much the largest direction's miss has moved after 20 iterations, in its own lengths",
    note="There the largest direction keeps its miss for ever; 1/‖S‖² converges.",
)
exact(
    "fu2023.newton-is-gd-doubled",
    "k of Newton's iterations from αI are 2^k steps of gradient descent from 0: the same path, at another speed.",
    Place("fu2023", "§3, ours"),
    "newton-is-gd-doubled",
    limit=1e-11,
)
claim(
    "fu2023.gd-grows-with-condition",
    "Ten times the condition number takes ten times the steps of gradient descent.",
    Place("fu2023", "§3: the rates"),
    Within(10.0, 0.5, each=True),
    identity("newton-is-gd-doubled", 1),
    number("grows"),
)
claim(
    "fu2023.newton-adds-a-few",
    "It adds a few of Newton's iterations.",
    Place("fu2023", "§3: the rates"),
    AtMost(8.0, each=True),
    identity("newton-is-gd-doubled", 1),
    number("adds"),
    note="2 log₂ 10 = 6.6 from αS.",
)
