"""Ren and Liu 2024, "… Through a Representation Learning Lens" (arXiv 2310.13220), by the slides of their talk.

The theorem: softmax attention as one step of gradient descent on a kernel model. What they change is in the next file.
"""

from pathlib import Path

from iclgd.claims.claim import Place, Read, claim, exact, identity, number
from iclgd.claims.expect import Above, AtLeast, AtMost, Below, Exactly, Within
from iclgd.claims.reading import bound_slope, label_gap, over_heads, violations

CHECK = tuple(Read("dual check", {"seed": seed, "queries": 1}) for seed in range(3))
BOUND = tuple(Read("dual bound", {"seed": seed, "queries": 1}) for seed in range(3))
HEADS = {"tier": "minutes", "needs": ("model",), "over": "draw"}  # of demonstrations, with a query of its own


def slide(where: str) -> Place:
    return Place("ren2024", where)


claim(
    "ren2024.exp-is-a-kernel",
    "exp(xᵀy) is a kernel: its matrices are positive semidefinite.",
    slide("slide 6"),
    AtLeast(-1e-14, each=True),
    identity("exponential-kernel"),
    number("least eigenvalue"),
    of="least eigenvalue over the largest",
)
exact(
    "ren2024.feature-map",
    "Unnormalised attention is an inner product of features: A_u(i, j) = φ(W_K x_i)·φ(W_Q x_j).",
    slide("slide 6"),
    "exponential-kernel",
    "feature map",
    1e-11,
    note="A root of the Gram matrix is a φ of as many dimensions as there are tokens; 10⁻¹² are added to its diagonal.",
)
exact(
    "ren2024.attention-is-au-over-d",
    "Attention is A_u divided by its column sums.",
    slide("slide 6"),
    "exponential-kernel",
    "normalised",
    1e-13,
)
exact(
    "ren2024.thm31",
    "Softmax attention is the prediction of f = Wφ after one step of gradient descent, with the head's own kernel.",
    slide("theorem 3.1"),
    "softmax-is-one-step",
)
exact(
    "ren2024.thm31-taylor",
    "Softmax attention is that step with a φ that is a function of x alone, too: the features of exp's series.",
    slide("theorem 3.1"),
    "taylor-features",
)
exact(
    "ren2024.thm31-large-scores",
    "Softmax attention is that step with scores of ±300, too, whose exponentials overflow.",
    slide("theorem 3.1"),
    "softmax-is-one-step",
    "large scores",
)
exact(
    "ren2024.thm31-any-weights",
    "No particular weights are assumed: every head of an untrained transformer is such a step.",
    slide("slide 5"),
    "every-head",
    limit=1e-9,
    note="So the identity is no evidence of learning.",
)
exact(
    "ren2024.rate-cancels",
    "The learning rate may be anything: it cancels.",
    slide("theorem 3.1"),
    "softmax-is-one-step",
    "rate",
)
claim(
    "ren2024.step-is-not-nothing",
    "The demonstrations change the output: the step is not zero.",
    slide("slide 7"),
    AtLeast(1e-3, each=True),
    identity("softmax-is-one-step"),
    number("step"),
    chosen_after=True,
)
claim(
    "ren2024.d-is-constant",
    "D is a constant: two queries that attend the same tokens have the same.",
    slide("theorem 3.1"),
    AtMost(1e-9, each=True),
    identity("softmax-is-one-step"),
    number("denominator"),
    stands="fails",
    of="difference of log D between two queries",
    note="D is the softmax's denominator: every query takes the same step with its own learning rate 1/D.",
)
claim(
    "ren2024.one-step-is-descent",
    "The step begins a descent: the next gradient is another one.",
    slide("theorem 3.1"),
    AtLeast(1e-9, each=True),
    identity("softmax-is-one-step"),
    number("second step"),
    stands="fails",
    of="relative difference of the second gradient to the first",
    note="The loss is linear in W and has no minimum.",
)
exact(
    "ren2024.w0-is-the-own-tokens",
    "W₀φ(q) is the part of the output that comes from the query's own tokens.",
    slide("slide 7"),
    "softmax-is-one-step",
    "own tokens",
)
claim(
    "ren2024.w0-is-zero-shot",
    "W₀φ(q) is what the head puts out zero-shot.",
    slide("slides 3 and 7"),
    AtLeast(0.99),
    identity("every-head", 5),
    number("zero-shot"),
    stands="fails",
    of="mean cosine beyond the first layer",
    bounds=(-1.0, 1.0),
    note="Its D counts the demonstrations, and deeper tokens have read them.",
)
exact(
    "ren2024.linear-case",
    "φ the identity and D = 1 give linear attention.",
    slide("slides 3 and 6"),
    "linear-case",
)
exact(
    "ren2024.siamese",
    "The loss is contrastive learning without negatives: −⟨stop-gradient(W_V x), Wφ(W_K x)⟩ has the dual's gradient.",
    slide("slide 9"),
    "siamese-loss",
)
claim(
    "ren2024.no-guard-against-collapse",
    "Nothing holds the weights back: without penalty or normalisation ‖W_n‖ grows like the number of steps.",
    slide("slide 9"),
    Within(1.0, 0.02),
    identity("siamese-loss"),
    number("growth"),
    of="slope of log ‖W_n‖ in log n",
)
exact(
    "ren2024.contrastive-kernel",
    "Contrastive kernel learning is the same loss under a constraint on W: its optimum is the step's direction.",
    slide("slide 9, right"),
    "constrained-loss",
    limit=1e-9,
    note="Our reading of a figure; under ‖W‖ ≤ w the optimum is wΔW/‖ΔW‖.",
)
exact(
    "ren2024.relu",
    "A ReLU network behind attention changes the labels to W_F W_V x.",
    Place("ren2024", "§4 of the paper"),
    "network-behind",
    "relu",
)
exact(
    "ren2024.chain",
    "Several layers are a chain of such models.",
    Place("ren2024", "§4 of the paper"),
    "network-behind",
    "chain",
    1e-11,
)
claim(
    "ren2024.thm32-needs-d_o",
    "The bound needs the factor d_o.",
    slide("eq. 11"),
    Above(1.0),
    identity("rademacher", 5),
    number("ratio"),
    stands="fails",
    of="Rademacher complexity over the bound without d_o",
    note="Exact expectation over all signs of ten demonstrations.",
)

# on a language model

claim(
    "ren2024.slide-2",
    "After three reviews a language model says of 'Good meal!' that it is positive.",
    slide("slide 2"),
    AtLeast(0.0, each=True),
    Read("trace", {"task": str(Path(__file__).parent / "episodes" / "good-meal.json")}),
    label_gap,
    of="log p of Positive less that of Negative",
    tier="minutes",
    needs=("model",),
)

claim(
    "ren2024.thm31-real-heads",
    "Every head of a pretrained model is such a step.",
    slide("theorem 3.1"),
    AtMost(1e-9, each=True),
    CHECK,
    over_heads("residual"),
    of="largest residual of any head",
    **HEADS,
)
claim(
    "ren2024.feature-map-real",
    "Between all tokens of all heads of a pretrained model φ·φ is exp of the score.",
    slide("slide 6"),
    AtMost(1e-9, each=True),
    CHECK,
    over_heads("kernel_residual"),
    of="largest kernel residual of any head, relative to the features' lengths",
    **HEADS,
)
claim(
    "ren2024.unsupervised-parts",
    "The loss does not know labels: label words' part of the step is their share of the tokens, a twentieth.",
    slide("slide 5, drawback (i)"),
    Within(0.05, 0.025),
    CHECK,
    over_heads("labels", "mean"),
    stands="fails",
    of="label words' part of a head's step, mean over heads",
    note="The loss does not know them, but heads attend to them.",
    **HEADS,
)
claim(
    "ren2024.unsupervised-flip",
    "Reading is unsupervised, so that flipping every label hardly changes the step.",
    slide("slide 5, drawback (i)"),
    AtLeast(0.95),
    CHECK,
    over_heads("flipped_cosine", "mean"),
    of="cosine of the step to itself with every label wrong, mean over heads",
    bounds=(-1.0, 1.0),
    **HEADS,
)
claim(
    "ren2024.thm32-holds",
    "The gap between demonstrations and held-out ones never exceeds the bound of theorem 3.2.",
    slide("theorem 3.2"),
    Exactly(0.0),
    BOUND,
    violations,
    of="heads in which it does",
    note="Vacuous with the head's own kernel: the bound is 10¹⁸ times the gap.",
    **HEADS,
)
claim(
    "ren2024.thm32-falls-with-n",
    "The bound falls with the number of demonstrations.",
    slide("eq. 11"),
    Below(0.0),
    BOUND,
    bound_slope("own"),
    stands="fails",
    of="log₁₀ of the median bound at the most demonstrations less that at one, own kernel",
    **HEADS,
)
claim(
    "ren2024.thm32-with-the-best-split",
    "With the split of scores into keys and query that makes it smallest, the bound falls.",
    slide("eq. 11, ours"),
    Below(0.0),
    BOUND,
    bound_slope("best"),
    of="log₁₀ of the median bound at the most demonstrations less that at one",
    **HEADS,
)
