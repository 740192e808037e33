"""Yang, Kautz and Hatamizadeh 2025, "Gated Delta Networks" (arXiv 2412.06464), and the layer in Qwen3-Next."""

from iclgd.claims.claim import Place, Read, claim, exact, identity, number
from iclgd.claims.expect import AtMost, Together
from iclgd.claims.reading_layers import own_over_others

exact(
    "yang2025.layer",
    "A layer with a rate and a decay for every token takes, at each, an SGD step on ½‖Sk − v‖² from the decayed state.",
    Place("yang2025", "the gated delta rule"),
    "fast-weight-layers",
    "gated-delta",
)
claim(
    "yang2025.qwen",
    "The linear layers of a language model of today take such steps: transformers' own code for Qwen3-Next is one.",
    Place("yang2025", "the gated delta rule; transformers, modeling_qwen3_next"),
    Together({"by token": AtMost(1e-5, each=True), "in chunks": AtMost(1e-5, each=True)}),
    identity("qwen-is-gated-delta"),
    number("by token", "in chunks"),
    of="relative difference to SGD taken by autograd in float64",
    note="That code computes in float32. The inner rule alone: what its gates are trained to is not asked.",
)
claim(
    "yang2025.gate-is-of-use",
    "A gate is of use: the best gated delta rule is another learner than the best delta rule.",
    Place("yang2025", "title: improving on the delta rule, asked of regressions"),
    AtMost(0.9),
    Read("linear layers"),
    own_over_others({"gated-delta": "gated-delta"}),
    tier="minutes",
    stands="fails",
    of="squared distance of a gated layer's predictions to its own learner over that to the nearest other",
    note="On a family of regressions that stays as it is. Forgetting is for streams that change.",
    chosen_after=True,
)
