"""A claim: a sentence, where it stands, the number to expect, and the way to get it.

python examples/claim.py
iclgd claims --plugin examples/claim.py
iclgd claims run --plugin examples/claim.py example.random-directions
"""

import iclgd


def mean_square_of_cosine(seed):
    import torch  # declarations import nothing heavy: `iclgd claims` lists them at once

    a, b = torch.randn(2, 4096, 64, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return {"mean": float(torch.cosine_similarity(a, b).square().mean())}


iclgd.IDENTITIES.add("example.random-directions", mean_square_of_cosine)  # cells that the claim reads
CLAIM = iclgd.claim(
    "example.random-directions",
    says="The squared cosine of two random directions in 64 dimensions is 1/64 on average.",
    source=iclgd.Place("example", "by symmetry: the 64 squared components of a unit vector sum to 1"),
    expect=iclgd.Within(1 / 64, 0.001),
    reads=iclgd.identity("example.random-directions", seeds=5),
    measure=iclgd.number("mean"),
)

if __name__ == "__main__":
    from iclgd.cli import main

    main(["claims", "run", "example.random-directions"])
