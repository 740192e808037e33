"""Yang, Wang, Zhang, Shen and Kim 2024, "Parallelizing Linear Transformers with the Delta Rule" (arXiv 2406.06484)."""

from iclgd.claims.claim import Place, claim, exact, identity, number
from iclgd.claims.expect import AtLeast

exact(
    "yang2024.delta-is-sgd",
    "The delta rule is SGD on ½‖Sk − v‖² with one token a step.",
    Place("yang2024", "§2"),
    "delta-is-sgd",
)
exact(
    "yang2024.gated-delta",
    "With a gate it is the step from the decayed state.",
    Place("yang2024", "§2; gated delta networks"),
    "delta-is-sgd",
    "gated",
)
exact(
    "yang2024.chunks",
    "In chunks, with one triangular inverse each, it is the same.",
    Place("yang2024", "§3, the WY form"),
    "delta-is-sgd",
    "chunks",
)
exact(
    "yang2024.layer",
    "A layer of it, trained with a rate of its own for every token, answers at every token as SGD up to there.",
    Place("yang2024", "§2"),
    "fast-weight-layers",
    "delta",
)
claim(
    "yang2024.order",
    "The delta rule depends on the order in which it reads.",
    Place("yang2024", "§2"),
    AtLeast(0.1, each=True),
    identity("delta-is-sgd"),
    number("order"),
    of="relative change of the state when the order is reversed",
    chosen_after=True,
)
