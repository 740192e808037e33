"""Wang, Shi and Fox 2025, "Test-time regression" (arXiv 2501.12352)."""

from iclgd.claims.claim import Place, Read, claim, exact
from iclgd.claims.expect import AtMost
from iclgd.claims.reading_layers import own_over_others

exact(
    "wang2025.softmax-is-local-mean",
    "Softmax attention is the constant that fits values best under the weights exp(q·k): a local mean.",
    Place("wang2025", "§3"),
    "softmax-is-local-mean",
)
OWN = {"linear": "gd", "longhorn": "longhorn", "ttt": "ttt", "mesa": "mesa"}
claim(
    "wang2025.training-finds-the-regression",
    "Trained on regressions with inputs of one variance, layers become the regression that their update rule is, and "
    "no other's.",
    Place("wang2025", "abstract, read as a statement on training"),
    AtMost(0.5),
    Read("linear layers"),
    own_over_others(OWN),
    tier="minutes",
    of="squared distance of predictions to its own learner over that to the nearest other",
    note="The limit is ours. The delta rule and the gated one are left out: the best decay of a family that does not "
    "change is none, so their learners are one. On inputs of unlike variances only the mesa layer is near its own: "
    "others learn to read keys as well (docs/linear.md).",
    chosen_after=True,
)
