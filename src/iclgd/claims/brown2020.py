"""Brown et al. 2020, "Language Models are Few-Shot Learners" (arXiv 2005.14165), as the review quotes it."""

from iclgd.claims.claim import Place, claim
from iclgd.claims.expect import Above
from iclgd.claims.reading import difference
from iclgd.claims.studies import FEW

claim(
    "brown2020.icl-improves",
    "Demonstrations raise accuracy without any training.",
    Place("natan2023", "§1; Deutch 2023, §1"),
    Above(0.0),
    FEW,
    lambda study: {
        name: difference({"learner": "icl", "metric": name}, {"learner": "zero-shot", "metric": name})(study)
        for name in ("accuracy", "calibrated")
    },
    tier="minutes",
    needs=("model",),
    stands="open",
    note="Raw and after batch calibration. SmolLM2's raw accuracy falls; that the calibrated one rises is not sure of "
    "one case in two, so that it does not surely depend. Gemma gains by both, raw not surely.",
)
