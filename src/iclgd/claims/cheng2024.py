"""Cheng, Chen and Sra 2024, "Transformers Implement Functional Gradient Descent" (arXiv 2312.06528)."""

from iclgd.claims.claim import Place, exact

exact(
    "cheng2024.functional-gd",
    "Attention with a kernel is gradient descent in its function space, layer after layer, for four kernels.",
    Place("deutch2023", "appendix D; eq. 3.2 of the paper"),
    "kernel-layers",
    limit=1e-11,
)
