"""Fu, Chen, Jia and Sharan 2023, "Transformers Learn to Achieve Second-Order Convergence Rates …" (2310.17086)."""

from iclgd.claims.claim import Place, Published, Read, claim, exact, identity, number
from iclgd.claims.expect import AtLeast, AtMost, Between, Within
from iclgd.claims.reading_layers import growth_by_layer

exact(
    "fu2023.newton-residual",
    "Newton's iteration from αS leaves (1 − αλ²)^(2^k) of each eigendirection.",
    Place("fu2023", "§3"),
    "newton-residual",
)
claim(
    "fu2023.largest-rate",
    "Newton's iteration converges at α = 2/‖SSᵀ‖, as the text allows.",
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
    "Ten times the condition number adds a few of Newton's iterations.",
    Place("fu2023", "§3: the rates"),
    AtMost(8.0, each=True),
    identity("newton-is-gd-doubled", 1),
    number("adds"),
    note="2 log₂ 10 = 6.6 from αS.",
)
claim(
    "fu2023.from-identity-adds-half",
    "From αI, where k iterations are 2^k steps of gradient descent, ten times the condition number adds half as many.",
    Place("fu2023", "§3, ours"),
    Between(3.0, 4.0, each=True),
    identity("newton-is-gd-doubled", 1),
    number("adds, from I"),
    note="log₂ 10 = 3.3.",
)
exact(
    "fu2023.one-path",
    "Gradient descent and Newton's iteration each leave a power of 1 − λ or 1 − λ² of every direction, at any step.",
    Place("fu2023", "§3, ours"),
    "newton-is-gd-doubled",
    "paths",
)
claim(
    "fu2023.stacks-keep-newtons-pace",
    "A trained stack moves along the path of gradient descent by a factor of two or more a layer, as Newton's "
    "iteration.",
    Place("fu2023", "abstract: k iterations in k + O(1) layers; a middle layer is about three"),
    AtLeast(2.0),
    Read("linear depth"),
    growth_by_layer(3),
    tier="minutes",
    of="steps of gradient descent at which a layer's answer is nearest, over those of the layer before",
    note="Stacks of three linear layers, not the paper's GPT-2. One gradient step a layer would have 1.73. Layers of "
    "linear attention raise the degree in S threefold each, so the speed needs no Newton: GD++ has it.",
    published=Published("about three of Newton's iterations a middle layer, a factor of 8", "a GPT-2 there"),
)
