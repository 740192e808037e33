"""Innocenti and Achour 2025, "A Simple Generalisation of the Implicit Dynamics of In-Context Learning" (2512.11255)."""

from iclgd.claims.claim import Place, exact

exact(
    "innocenti2025.any-block-with-norms",
    "With a norm before the MLP, a patch that reads the normed state and one of the bias are exact in any block.",
    Place("innocenti2025", "abstract; main result"),
    "prompt-as-patches",
    "form B",
    note="In a stack of three untrained blocks, each patched for what the ones before it now give.",
)
