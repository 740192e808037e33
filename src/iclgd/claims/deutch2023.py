"""Deutch, Magar, Bar Natan and Dar 2023, "In-context Learning and Gradient Descent Revisited" (arXiv 2311.07772).

What their metrics give to vectors without meaning, and what layer causality is. What models do is in the next file.
"""

from iclgd.claims.claim import Place, Published, claim, exact, identity, number
from iclgd.claims.expect import AtLeast, AtMost, Exactly, Ordered, Together, Within


def at(where: str) -> Place:
    return Place("deutch2023", where)


claim(
    "deutch2023.noise-quarter",
    "SimAOU_norm gives ¼ to independent random updates of norm √3·‖z‖.",
    at("§3.1"),
    Within(0.25, 0.01),
    identity("noise-scores"),
    number("norm, √3"),
    published=Published("¼"),
)
claim(
    "deutch2023.noise-zero",
    "SimAOU, without the normalisation, gives 0 to the same updates.",
    at("§3.1"),
    Within(0.0, 0.01),
    identity("noise-scores"),
    number("plain, √3"),
)
claim(
    "deutch2023.footnote-2",
    "At ‖r‖ = ‖z‖ the score is slightly different: (√2−1)²/((√2−1)²+1) = .146.",
    at("footnote 2"),
    Within(0.1464, 0.01),
    identity("noise-scores"),
    number("norm, 1"),
    note="The footnote gives no number; the formula is ours.",
)
claim(
    "deutch2023.noise-half",
    "As random updates grow, SimAOU_norm gives them ½.",
    at("§3.1, carried on"),
    Within(0.5, 0.02),
    identity("noise-scores"),
    number("norm, large"),
    note="Ours: the limit of the paper's computation.",
)
claim(
    "deutch2023.pythagoras",
    "Random updates are orthogonal to everything: ‖z + r‖ = 2‖z‖ at ‖r‖ = √3‖z‖.",
    at("§3.1"),
    Within(2.0, 0.05),
    identity("pythagoras"),
    number("ratio"),
)
claim(
    "deutch2023.norm-sees-size",
    "SimAOU_norm depends on the updates' size; SimAOU does not.",
    at("§3.1"),
    Together({"norm": AtLeast(0.05, each=True), "plain": AtMost(1e-12, each=True)}),
    identity("size-of-updates"),
    number("norm", "plain"),
    of="change when an update is ten times as long",
)
claim(
    "deutch2023.simaou-is-a-direction",
    "SimAOU measures direction: 1 for the same update at any length, −1 for its negative, √½ for it and another mixed.",
    at("§2.2"),
    Together(
        {
            "itself": Within(1.0, 1e-9, True),
            "negative": Within(-1.0, 1e-9, True),
            "half": Within(0.7071, 0.01),
        }
    ),
    identity("direction-of-updates"),
    number("itself", "negative", "half"),
)
exact(
    "deutch2023.simam-delta-size",
    "SimAM_Δ does not see the size of an update.",
    at("§3.2"),
    "maps-too-far",
    "SimAM_Δ",
)
claim(
    "deutch2023.simam-punishes-drift",
    "SimAM falls when the right direction is followed too far.",
    at("§3.2"),
    AtMost(-0.01),
    identity("maps-too-far"),
    number("SimAM"),
    of="SimAM of reading's own direction 30 times as far, less the same once",
)
claim(
    "deutch2023.uniform-is-minuscule",
    "The papers' random baseline, numbers from [0, 1), scores near 0.",
    at("§3.1"),
    Within(0.0, 0.03),
    identity("vector-nulls", 5),
    number("uniform"),
    published=Published(".001 to .004", "an update of a real model, whose components have a mean"),
)
claim(
    "deutch2023.nulls-are-no-learner",
    "What stands in a learner's place has learned nothing: as long as its update, in a random direction.",
    at("§3.1, as a check of this program's nulls"),
    Together({"random": Within(0.0, 0.1), "moved": AtLeast(0.1, each=True), "restored": Exactly(0.0)}),
    identity("nulls-of-a-learner", 5),
    number("random", "moved", "restored"),
    note="On a tiny random transformer that was trained on demonstrations and restored.",
    chosen_after=True,
)
claim(
    "deutch2023.size-follows-rate",
    "The size of an update is set by the learning rate.",
    at("§3.2"),
    Ordered("0.01", "0.1", "1", each=True),
    identity("rate-and-size"),
    number("0.01", "0.1", "1"),
    of="update size at three rates",
)
claim(
    "deutch2023.finetuning-learns",
    "A step of gradient descent on a demonstration lowers its loss.",
    at("§2"),
    AtLeast(1e-6, each=True),
    identity("rate-and-size"),
    number("falls"),
)
claim(
    "deutch2023.icl-is-layer-causal",
    "Reading's update of a layer does not depend on deeper layers.",
    at("§4.1"),
    Exactly(0.0),
    identity("layer-causality"),
    number("icl"),
    of="change of the update when the last layer's keys and values are replaced",
)
claim(
    "deutch2023.gd-is-not",
    "Gradient descent's update of a layer does depend on deeper layers.",
    at("§4.1"),
    AtLeast(1e-3, each=True),
    identity("layer-causality"),
    number("gd"),
)
claim(
    "deutch2023.lcgd-is",
    "LCGD's does not.",
    at("§4.4"),
    Exactly(0.0),
    identity("layer-causality"),
    number("lcgd"),
)
exact(
    "deutch2023.parallel-sum",
    "The losses of all layers may be summed in parallel: each layer's gradient is that of its own loss.",
    at("footnote 5"),
    "layer-losses",
    limit=1e-6,
    of="relative difference of gradients",
)
exact(
    "deutch2023.u-is-the-head",
    "The unembedding head U, applied to the last block, is the model's own prediction.",
    at("§4.3"),
    "layer-losses",
    "head",
    1e-6,
)
claim(
    "deutch2023.low-resource",
    "LCGD is a low-resource form of gradient descent: it takes no more work.",
    at("B.2"),
    AtMost(1.0, each=True),
    identity("work-of-learners", 1),
    number("ratio"),
    stands="fails",
    of="floating-point operations of LCGD over gradient descent's, a model shaped like SmolLM2-135M",
    note="Every layer pays for an unembedding of its own.",
)
claim(
    "deutch2023.sequential-order",
    "Sequential gradient descent does not ignore the order of the demonstrations either.",
    at("§8"),
    Together({"gd": AtLeast(0.05, each=True)}),
    identity("order-matters"),
    number("gd", "icl"),
    of="change of the update when demonstrations are reversed",
)
exact(
    "deutch2023.shallow-closed-form",
    "Gradients of shallow models have closed forms: the error signals are output gradients, by autograd.",
    at("§5, appendix D"),
    "signals-are-gradients",
)
