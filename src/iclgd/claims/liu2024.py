"""Liu et al. 2024, "In-context Vectors" (arXiv 2311.06668)."""

from iclgd.claims.claim import Place, claim
from iclgd.claims.expect import Above
from iclgd.claims.reading import difference
from iclgd.claims.studies import RIVALS

claim(
    "liu2024.better-than-reading",
    "Steering along an in-context vector does better than reading the demonstrations.",
    Place("liu2024", "abstract"),
    Above(0.0),
    RIVALS,
    difference({"learner": "in-context-vector", "metric": "accuracy"}, {"learner": "icl", "metric": "accuracy"}),
    of="accuracy with the vector less accuracy after reading",
    stands="open",
    note="Their tasks are style, safety and format; these are classifications, on which they claim nothing.",
    tier="minutes",
    needs=("model",),
)
