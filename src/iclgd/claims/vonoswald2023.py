"""von Oswald et al. 2023, "Transformers learn in-context by gradient descent" (arXiv 2212.07677).

The sentences are those that Bar Natan's review and Ren and Liu's slides quote, and numbers of the paper's public code.
"""

from iclgd.claims.claim import Place, Published, Read, claim, exact, identity, number
from iclgd.claims.expect import AtLeast, AtMost, Together, Within
from iclgd.claims.reading import cosines, likeness_to, loss_over

QUOTED = "natan2023"
ONE = Read("linear train")
TWO = Read("linear train", {"layers": 2, "shared": True, "learners": ("gd", "gd++")})
SINE = Read("linear train", {"task": "sine", "seeds": 4})
SOFTMAX = Read("linear train", {"attention": "softmax", "seeds": 4})

exact(
    "vonoswald2023.step-on-every-token",
    "One layer of linear attention with the right weights moves every token (x, y) to (x, y − ΔW x), ΔW one step of "
    "gradient descent on the mean squared error.",
    Place(QUOTED, "§1, proposition; prop. 1 of the paper"),
    "gd-layer",
    "every token",
    of="relative difference of tokens",
)
exact(
    "vonoswald2023.step-on-the-test-token",
    "For the test token the dynamics are identical: its label slot holds minus the prediction after the step.",
    Place(QUOTED, "§1, proposition"),
    "gd-layer",
    "test token",
    of="relative difference of answers",
)
claim(
    "vonoswald2023.step-lowers-mse",
    "The step lowers the demonstrations' mean squared error (in all of 200 draws, at a rate of 1/λ).",
    Place(QUOTED, "§1"),
    AtLeast(1.0, each=True),
    identity("gd-lowers-loss"),
    number("share"),
    of="share of draws",
)
exact(
    "vonoswald2023.k-layers-k-steps",
    "The layer that is a gradient step, again, is the next step: twenty layers are twenty steps.",
    Place(QUOTED, "§1"),
    "k-layers",
    limit=1e-11,
)
exact(
    "vonoswald2023.gdpp-layers",
    "Layers can also adjust the curvature: inputs become (I − γS)x while labels take their step.",
    Place(QUOTED, "§1; appendix of the paper"),
    "gdpp-layers",
    limit=1e-11,
)
claim(
    "vonoswald2023.curvature-beats-gd",
    "Curvature adjustments improve on plain gradient descent: two steps of GD++ at their best against two of GD.",
    Place(QUOTED, "§1"),
    AtMost(0.75),
    identity("more-steps"),
    number("ratio"),
    of="ratio of losses",
    published=Published(".1116 over .1588 by the public code", "one training run of the rates there, exact risks here"),
    note="That it improves is the paper's; the .75 is ours, from the published losses.",
)
claim(
    "vonoswald2023.best-rate",
    "The best rate of the paper's task (ten inputs, ten demonstrations) over N is .6061.",
    Place("vonoswald2023", "public code, printed rate"),
    Within(0.6061, 0.0005, each=True),
    identity("one-step"),
    number("rate / N"),
    published=Published(".607, the mean of the learned diagonal"),
)
claim(
    "vonoswald2023.one-step-loss",
    "The loss of one step at the best rate is .206: ½ squared error on new episodes.",
    Place("vonoswald2023", "fig. 2; public code"),
    Together({"loss": Within(0.20623, 0.0002, each=True), "sampled loss": Within(0.206, 0.004)}),
    identity("one-step", 5),
    number("loss", "sampled loss"),
    published=Published(".2074 on the 10 000 episodes of the public code"),
)
claim(
    "vonoswald2023.losses-of-more-steps",
    "The best losses of two and three steps at one rate are .157 and .133, of two steps of GD++ .1105.",
    Place("vonoswald2023", "fig. 3; recomputed from spectra"),
    Together(
        {
            "two steps": Within(0.1567, 0.003),
            "three steps": Within(0.1329, 0.003),
            "two with curvature": Within(0.1105, 0.003),
        }
    ),
    identity("more-steps"),
    number("two steps", "three steps", "two with curvature"),
    published=Published(".1588 and .1116 for two steps of GD and GD++", "of the public code's own episodes and rates"),
)
claim(
    "vonoswald2023.off-scale",
    "On inputs of another size the step's loss changes as a quadratic of it says: .0812, 1.204 and 8.40 at ½, 1½ and "
    "2 times the size.",
    Place("vonoswald2023", "fig. 2, out of distribution"),
    Together(
        {"× 0.5": Within(0.0812, 1e-3, True), "× 1.5": Within(1.204, 1e-2, True), "× 2": Within(8.40, 0.05, True)}
    ),
    identity("off-scale", 1),
    number("× 0.5", "× 1.5", "× 2"),
)
exact(
    "vonoswald2023.separate-tokens",
    "With inputs and labels as separate tokens a copying softmax layer and then the same layers do gradient descent.",
    Place("vonoswald2023", "prop. 2"),
    "separate-tokens",
    limit=1e-11,
)
claim(
    "vonoswald2023.softmax-pair",
    "Two softmax heads come as near to linear attention as one likes, with an error of second order.",
    Place("vonoswald2023", "appendix on softmax"),
    Within(2.0, 0.05),
    identity("softmax-pair"),
    number("slope"),
    of="slope of the error",
    note="To centred linear attention: the demonstrations' mean input is taken off, which plain descent does not do.",
)
claim(
    "vonoswald2023.training-finds-the-step",
    "A trained layer is that step: its sensitivities point the same way and its loss is no higher.",
    Place("ren2024", "slide 4, 'find θ'; fig. 2 of the paper"),
    Together({"cosine": AtLeast(0.998), "loss": AtMost(1.01)}),
    ONE,
    lambda study: {"cosine": likeness_to("gd ×1")(study), "loss": loss_over("gd ×1")(study)},
    tier="minutes",
    published=Published("cosine .9993, loss .2078 against .2074"),
)
claim(
    "vonoswald2023.two-layers-are-gdpp",
    "Two trained layers are GD++ rather than gradient descent.",
    Place(QUOTED, "§1"),
    Together({"gd++": AtLeast(0.99), "gd++ − gd": AtLeast(0.0)}),
    TWO,
    lambda study: {
        "gd++": likeness_to("gd++ ×2")(study),
        "gd++ − gd": [a - b for a, b in zip(*(likeness_to(n)(study) for n in ("gd++ ×2", "gd ×2")), strict=True)],
    },
    tier="minutes",
    published=Published("cosine .997 against .952"),
)
claim(
    "vonoswald2023.deep-representations",
    "Behind a network the layer does gradient descent on the deep representation: sine waves, loss within a fifth of "
    "a step on learned features, and the same direction.",
    Place(QUOTED, "§1; the course project quotes it, too"),
    Together({"cosine": AtLeast(0.95), "loss": AtMost(1.2)}),
    SINE,
    lambda study: {
        "cosine": cosines(likeness_to("gd ×1 on learned features")(study)),
        "loss": loss_over("gd ×1 on learned features")(study),
    },
    tier="minutes",
    stands="open",
    note="The paper shows curves of loss; the numbers are ours.",
)
claim(
    "vonoswald2023.needs-the-construction",
    "Gradient descent takes the linear construction: a trained softmax head is not gradient descent.",
    Place("ren2024", "slide 5, drawback (ii)"),
    AtMost(0.8),
    SOFTMAX,
    likeness_to("gd ×1"),
    tier="minutes",
    of="cosine of sensitivities",
    bounds=(-1.0, 1.0),
    note="The slide says 'specific weight constructions'; the .8 is ours.",
)
