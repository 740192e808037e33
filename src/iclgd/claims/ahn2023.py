"""Ahn, Cheng, Daneshmand and Sra 2023, "Transformers learn to implement preconditioned gradient descent …"."""

from iclgd.claims.claim import Place, claim, exact, identity, number
from iclgd.claims.expect import AtLeast, AtMost, Within

exact(
    "ahn2023.layer-is-preconditioned",
    "One layer of linear attention is a step of preconditioned gradient descent.",
    Place("ahn2023", "§3"),
    "preconditioned-layer",
)
exact(
    "ahn2023.best-matrix",
    "For normal inputs the best single layer has the matrix [(1 + 1/N)Σ + (tr Σ/N) I]⁻¹.",
    Place("ahn2023", "theorem 1; Zhang 2023"),
    "best-matrix",
    "printed",
)
claim(
    "ahn2023.preconditioned",
    "Preconditioned gradient descent is optimal for one layer: least squares over all layers finds that matrix.",
    Place("deutch2023", "appendix D"),
    AtMost(0.03),
    identity("best-matrix", 5),
    number("fitted"),
    of="relative distance of the matrix fitted to 300 000 episodes",
)
claim(
    "ahn2023.not-a-rate",
    "The best single layer is not plain gradient descent unless inputs are isotropic: its matrix is no "
    "multiple of the identity.",
    Place("ahn2023", "theorem 1; Mahdavi 2024"),
    AtLeast(2.0, each=True),
    identity("best-matrix", 1),
    number("not a rate"),
    of="largest eigenvalue over the smallest",
    note="The limit of 2 is ours.",
)
exact(
    "ahn2023.inverse-covariance",
    "With weights of covariance Σ⁻¹ the matrix is N/(N + d + 1) Σ⁻¹.",
    Place("ahn2023", "theorem 1"),
    "best-matrix",
    "inverse covariance",
)
claim(
    "ahn2023.inverse-risk",
    "With weights of covariance Σ⁻¹ the best layer has the risk d(d + 1)/(N + d + 1), 1.154 at d = 5 and N = 20.",
    Place("ahn2023", "theorem 1"),
    Within(30 / 26, 1e-6, each=True),
    identity("best-matrix", 1),
    number("inverse risk"),
)
