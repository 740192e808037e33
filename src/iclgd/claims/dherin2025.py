"""Dherin et al. 2025, "Learning without training: The implicit dynamics of in-context learning" (arXiv 2507.16003)."""

from iclgd.claims.claim import Place, claim, exact, identity, number
from iclgd.claims.expect import AtLeast, AtMost, Together
from iclgd.claims.reading_prompts import patch_cosine
from iclgd.claims.studies import IMPLICIT

exact(
    "dherin2025.rank-one-patch",
    "Deleting a context and adding a patch of rank one to the weights behind attention leaves the block's output.",
    Place("dherin2025", "theorem 2.2"),
    "rank-one-patch",
)
exact(
    "dherin2025.rank",
    "The patch has rank one.",
    Place("dherin2025", "theorem 2.2"),
    "rank-one-patch",
    "rank",
)
exact(
    "dherin2025.with-a-skip",
    "With a skip connection the last bias takes part of the patch.",
    Place("dherin2025", "theorem B.2"),
    "rank-one-patch",
    "skip",
)
claim(
    "dherin2025.skip-needs-the-bias",
    "Without the bias the patch does not suffice there.",
    Place("dherin2025", "theorem B.2"),
    AtLeast(0.01, each=True),
    identity("rank-one-patch"),
    number("skip, weights only"),
    chosen_after=True,
)
claim(
    "dherin2025.descent-is-evidence",
    "That reading's patches follow gradient descent on linear losses shows that it learns: random paths do not.",
    Place("dherin2025", "§3, audited"),
    AtLeast(1e-6, each=True),
    identity("any-path-is-descent"),
    number("residual"),
    stands="fails",
    of="how far a random path is from the same recursion",
    note="Any path of matrices is gradient descent on tr(ΔᵀW).",
)
claim(
    "dherin2025.convergence-is-evidence",
    "That patches converge as tokens are read shows that the model learned to: untrained blocks do not do it.",
    Place("dherin2025", "§3, audited"),
    AtLeast(-0.5),
    identity("patches-converge", 5),
    number("slope"),
    stands="fails",
    of="log-log slope of the patches' differences in an untrained block",
    note="An average over n tokens moves by 1/n: the slope is −1.",
)
claim(
    "dherin2025.not-unique",
    "Patches of tokens one by one and of all at once differ, and make the same output.",
    Place("dherin2025", "prop. 2.6, corollary C.3"),
    Together({"one by one": AtLeast(0.05, each=True), "same output": AtMost(1e-12, each=True)}),
    identity("patches-converge", 5),
    number("one by one", "same output"),
    chosen_after=True,
)
claim(
    "dherin2025.serves-other-queries",
    "That a prompt is a patch makes it a change of weights that serves whatever is asked, in an untrained transformer, "
    "too.",
    Place("dherin2025", "theorem 2.2, audited"),
    AtMost(0.5, each=True),
    identity("prompt-as-patches"),
    number("another query"),
    stands="fails",
    of="the gap in the logits that another query's patch leaves, in an untrained transformer",
    note="The patch is made from the query's own activations. In pretrained models another query's does serve in part: "
    "over four queries it leaves about half of the gap (docs/implicit.md).",
)
claim(
    "dherin2025.is-training",
    "The implicit update is the one that gradient descent on the demonstrations makes of the same weights.",
    Place("dherin2025", "experiments (linear regression), audited on language models"),
    AtLeast(0.2),
    IMPLICIT,
    patch_cosine,
    stands="fails",
    of="cosine of one patch for all queries with training's update, mean over layers, rate .01",
    note="The limit is ours. At other rates it is about as near to 0, and so it is for queries' own patches; "
    "training on wrong labels is not shown to be farther (docs/implicit.md).",
    tier="minutes",
    needs=("model",),
)
