"""Wang, Shi and Fox 2025, "Test-time regression" (arXiv 2501.12352)."""

from iclgd.claims.claim import Place, exact

exact(
    "wang2025.softmax-is-local-mean",
    "Softmax attention is the constant that fits values best under the weights exp(q·k): a local mean.",
    Place("wang2025", "§3"),
    "softmax-is-local-mean",
)
