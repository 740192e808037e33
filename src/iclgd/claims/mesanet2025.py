"""von Oswald et al. 2025, "MesaNet" (arXiv 2506.05233)."""

from iclgd.claims.claim import Place, claim, exact, identity, number
from iclgd.claims.expect import AtLeast

exact(
    "mesanet2025.conjugate-gradients",
    "The optimal read-out G(H + Λ)⁻¹q is exact after as many steps of conjugate gradients as a key has dimensions.",
    Place("mesanet2025", "§3"),
    "mesa-by-conjugate-gradients",
)
claim(
    "mesanet2025.one-step-is-not",
    "One step of conjugate gradients is not the optimal read-out.",
    Place("mesanet2025", "§3"),
    AtLeast(1e-3, each=True),
    identity("mesa-by-conjugate-gradients"),
    number("after one step"),
    chosen_after=True,
)
