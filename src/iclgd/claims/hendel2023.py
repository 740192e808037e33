"""Hendel, Geva and Globerson 2023, "In-Context Learning Creates Task Vectors" (arXiv 2310.15916)."""

from iclgd.claims.claim import Place, claim, exact
from iclgd.claims.expect import Above
from iclgd.claims.reading import difference
from iclgd.claims.studies import RIVALS

exact(
    "hendel2023.last-state",
    "The answer depends on the demonstrations through the state at the prompt's last token alone.",
    Place("hendel2023", "§2"),
    "exchanged-runs",
    "stream",
    note="After the last block, and for any weights: that a layer's state carries the task is no evidence by itself.",
)
claim(
    "hendel2023.one-vector",
    "Reading compresses the demonstrations into one vector, with which the task is done without them.",
    Place("hendel2023", "abstract"),
    Above(0.0),
    RIVALS,
    difference({"learner": "task-vector", "metric": "accuracy"}, {"learner": "zero-shot", "metric": "accuracy"}),
    of="accuracy with the task vector less zero-shot accuracy",
    stands="open",
    note="After the middle block; they choose the layer by accuracy. Reading itself does not help SmolLM2 here.",
    tier="minutes",
    needs=("model",),
)
