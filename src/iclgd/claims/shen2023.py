"""Shen, Mishra and Khashabi 2023, "Do pretrained Transformers Learn In-Context by Gradient Descent?" (2310.08540)."""

from iclgd.claims.claim import Place, Read, claim, identity, number
from iclgd.claims.expect import Above, AtLeast, AtMost, Together
from iclgd.claims.reading_layers import of_orders, tokens_with_reading

ORDERS = Read("order", {"seeds": 3})
"""Minutes: an embedded task, three draws of four demonstrations, twenty orders each."""
GD, AT_ONCE = "gd 0.001", "gd 0.001, all at once"

claim(
    "shen2023.order",
    "Full-batch gradient descent ignores the order of the demonstrations; reading, in a causal transformer, does not.",
    Place("deutch2023", "§8"),
    Together({"full batch": AtMost(1e-12, each=True), "causal": AtLeast(0.01, each=True)}),
    identity("order"),
    number("full batch", "causal"),
    of="change of answers when demonstrations are reversed",
)
claim(
    "shen2023.order-of-reading",
    "A transformer's reading depends on the order of the demonstrations.",
    Place("deutch2023", "§8"),
    AtLeast(0.05, each=True),
    identity("order-matters"),
    number("icl"),
    of="change of the update when demonstrations are reversed, in a tiny random transformer",
    note="So it says nothing of learning: untrained weights do the same.",
)
claim(
    "shen2023.order-free-layers",
    "Attention that is neither causal nor has positions ignores the order, as full-batch gradient descent does.",
    Place("deutch2023", "§8; appendix D"),
    AtMost(1e-12, each=True),
    identity("order"),
    number("linear attention"),
)
claim(
    "shen2023.order-anchors",
    "Over twenty orders neither linear nor softmax attention without positions moves; the delta rule does.",
    Place("shen2023", "sensitivity to order, ours"),
    Together(
        {
            "linear attention": AtMost(1e-12, each=True),
            "softmax attention": AtMost(1e-12, each=True),
            "delta rule": AtLeast(0.1, each=True),
        }
    ),
    identity("order-of-layers"),
    number("linear attention", "softmax attention", "delta rule"),
    of="spread of updates over orders, in parts of their size",
)
claim(
    "shen2023.full-batch-in-a-model",
    "In a language model a step on all demonstrations at once does not see their order.",
    Place("shen2023", "sensitivity to order"),
    AtMost(1e-3),
    ORDERS,
    of_orders("updates", AT_ONCE),
    tier="minutes",
    needs=("model",),
    of="spread of updates over twenty orders, in parts of their size",
    note="What is left is the rounding of float32.",
)
claim(
    "shen2023.answers-by-order",
    "Reading and gradient descent differ in how far the order moves the probability of the right label: reading more.",
    Place("shen2023", "abstract: different sensitivity to order"),
    Above(0.0),
    ORDERS,
    of_orders("p", "icl", GD),
    tier="minutes",
    needs=("model",),
    stands="open",
    of="standard deviation over twenty orders, reading less one step a demonstration",
    note="That they differ is the paper's; which is more is ours. Three draws of four demonstrations do not decide it.",
    chosen_after=True,
)
claim(
    "shen2023.updates-by-order",
    "The order moves reading's updates, too, more than those of gradient descent, in parts of their own size.",
    Place("shen2023", "abstract, audited"),
    Above(0.0),
    ORDERS,
    of_orders("updates", "icl", GD),
    tier="minutes",
    needs=("model",),
    stands="open",
    of="spread of updates over twenty orders, reading less one step a demonstration",
    note="On one task training's updates depend on the order more than reading's, on both models; over three tasks the "
    "two are not told apart on either (docs/order.md).",
    chosen_after=True,
)
claim(
    "shen2023.next-tokens",
    "Reading and gradient descent change the next token's distribution differently: most of its ten likeliest differ.",
    Place("shen2023", "abstract; top-K overlap"),
    AtMost(0.5),
    ORDERS,
    tokens_with_reading(GD),
    tier="minutes",
    needs=("model",),
    stands="open",
    of="share of reading's ten likeliest next tokens that gradient descent's has",
    note="The paper's numbers were not at hand; the limit is ours. So on one task of both models; over three tasks the "
    "interval of either straddles it (docs/order.md).",
)
claim(
    "shen2023.next-tokens-come-nearer",
    "Gradient descent brings the ten likeliest next tokens nearer to reading's than they were before.",
    Place("shen2023", "abstract, audited"),
    Above(0.0),
    ORDERS,
    tokens_with_reading(GD, "zero-shot"),
    tier="minutes",
    needs=("model",),
    stands="open",
    of="share in common with reading, gradient descent's less zero-shot's",
    chosen_after=True,
)
