"""Yin and Steinhardt 2025, "Which Attention Heads Matter for In-Context Learning?" (arXiv 2502.14010)."""

from iclgd.claims.claim import Place, claim
from iclgd.claims.expect import Below
from iclgd.claims.reading_prompts import left_less
from iclgd.claims.studies import CAUSAL

MINUTES = {"tier": "minutes", "needs": ("model",)}

claim(
    "yin2025.function-vector-heads",
    "Learning in context depends mainly on function-vector heads, more than on induction heads.",
    Place("yin2025", "abstract"),
    Below(0.0),
    CAUSAL,
    left_less("function vector", "induction"),
    of="reading's effect left without function-vector heads, less without induction heads",
    stands="open",
    note="Of label margins of a small model; they say it holds above all for larger ones. Three draws show it of "
    "SmolLM2 and not of Gemma; five draws of the same task (studies/rivals.yaml) show it of neither.",
    **MINUTES,
)
claim(
    "yin2025.induction-heads",
    "Without induction heads less is left than without random heads of the same layers.",
    Place("yin2025", "§4, audited"),
    Below(0.0),
    CAUSAL,
    left_less("induction"),
    of="reading's effect left without ten induction heads, less without random heads",
    stands="open",
    note="Three draws of one task show it of Gemma and not of SmolLM2; five draws of three tasks show it of neither "
    "(docs/implicit.md).",
    **MINUTES,
)
