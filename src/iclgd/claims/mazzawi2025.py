"""Mazzawi et al. 2025, "Transmuting prompts into weights" (arXiv 2510.08734)."""

from iclgd.claims.claim import Place, claim, identity, number
from iclgd.claims.expect import Above, AtLeast, AtMost, Below, Together
from iclgd.claims.reading_prompts import missed_less, recovery_less
from iclgd.claims.studies import IMPLICIT

MINUTES = {"tier": "minutes", "needs": ("model",)}
NEARER = Together({"less doing nothing": Below(0.0), "less one answer for all": Below(0.0)})

claim(
    "mazzawi2025.least-squares",
    "Patches of single queries condense, by least squares, into one that serves all that it was fitted on, exactly.",
    Place("mazzawi2025", "abstract"),
    Together({"fitted on": AtMost(1e-9, each=True), "held out": AtLeast(0.5, each=True)}),
    identity("static-patches"),
    number("fitted on", "held out"),
    of="the gap in the logits that is left, for queries it was fitted on and for others",
    chosen_after=True,
    note="Untrained weights, fewer queries than the map has inputs: interpolation. Queries held out are not served.",
)
claim(
    "mazzawi2025.thought-matrix",
    "One matrix a block, the same for all queries, brings the prompt's effect to queries it was not made from.",
    Place("mazzawi2025", "abstract"),
    NEARER,
    IMPLICIT,
    missed_less(centred=False),
    of="share of reading's effect on label margins that it misses, less what doing nothing (1) and one answer for all "
    "queries miss",
    stands="open",
    note="One answer for all queries: the mean of reading's scores over those that the patch was fitted on. Where "
    "reading hardly tells queries apart that is near to it, so a patch has to be nearer. SmolLM2's passed the "
    "limit that was here before, more than 0 recovered.",
    **MINUTES,
)
claim(
    "mazzawi2025.more-than-a-shift",
    "What one patch for all queries brings is more than a shift that all queries share.",
    Place("mazzawi2025", "abstract, audited"),
    NEARER,
    IMPLICIT,
    missed_less(centred=True),
    of="the same after the mean over queries is taken off, so that a shift does nothing",
    stands="open",
    note="Over three tasks it depends on the task (docs/implicit.md). No sign of learning by itself: patches of "
    "untrained weights recover a part of what their prompt does, too.",
    **MINUTES,
)
claim(
    "mazzawi2025.knows-the-labels",
    "What one patch brings beyond a shift comes from the labels: fitted behind wrong labels it brings less.",
    Place("mazzawi2025", "abstract, audited"),
    Above(0.0),
    IMPLICIT,
    recovery_less("wrong labels"),
    of="recovered without the mean shift, behind right less behind wrong labels",
    stands="open",
    **MINUTES,
)
