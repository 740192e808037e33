"""Sun et al. 2024, "Learning to (Learn at Test Time)" (arXiv 2407.04620)."""

from iclgd.claims.claim import Place, exact

exact(
    "sun2024.linear-attention-is-batch-gd",
    "A test-time-training layer with a linear model and one batch step from 0 is linear attention.",
    Place("sun2024", "theorem 1"),
    "linear-attention-is-sgd",
    "batch",
)
exact(
    "sun2024.linear-attention-is-sgd",
    "SGD on −⟨Sk, v⟩, one token a step, is linear attention.",
    Place("sun2024", "theorem 1"),
    "linear-attention-is-sgd",
)
exact(
    "sun2024.decay-is-l2",
    "A decay of the state is an L2 term in the loss.",
    Place("sun2024", "§2, ours"),
    "linear-attention-is-sgd",
    "decay",
)
exact(
    "sun2024.mini-batches",
    "With mini-batches and a trained start the layer is mini-batch gradient descent from there, token by token.",
    Place("sun2024", "mini-batch TTT"),
    "fast-weight-layers",
    "ttt",
    note="The linear model without the norm and the residual that the published layer puts around it.",
)
