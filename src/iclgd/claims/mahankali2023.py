"""Mahankali, Hashimoto and Ma 2023, "One Step of Gradient Descent is Provably the Optimal In-Context Learner"."""

from iclgd.claims.claim import Place, exact

exact(
    "mahankali2023.noisy-rate",
    "With noise σ the best rate of one step is N/(N + d + 1 + σ²) for normal inputs.",
    Place("mahankali2023", "theorem 1"),
    "noisy-rate",
    limit=1e-9,
)
