"""Vladymyrov, von Oswald, Sandler and Ge 2024, "Linear Transformers are Versatile In-Context Learners" (2402.14180)."""

from iclgd.claims.claim import Place, exact

exact(
    "vladymyrov2024.implicit-linear-model",
    "Any linear transformer keeps a linear model: all tokens of a prompt move by one matrix, whatever the weights.",
    Place("vladymyrov2024", "theorem 4.1"),
    "linear-state",
    "fit",
    1e-11,
)
exact(
    "vladymyrov2024.moment-is-enough",
    "The matrix by which a linear transformer moves all tokens depends on the demonstrations' second moment alone.",
    Place("vladymyrov2024", "theorem 4.1, ours"),
    "linear-state",
    limit=1e-11,
)
exact(
    "vladymyrov2024.four-scalars",
    "With diagonal heads a layer is four numbers.",
    Place("vladymyrov2024", "§4"),
    "four-scalar-layers",
)
