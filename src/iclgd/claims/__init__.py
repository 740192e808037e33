"""Claims: sentences from papers, made executable. One file a paper; what is run, what it says, what was measured."""

from importlib import import_module
from pkgutil import iter_modules

from iclgd.claims.claim import CLAIMS, Claim, Place, Published, Read, claim, identity, number
from iclgd.claims.expect import (
    Above,
    AtLeast,
    AtMost,
    Below,
    Between,
    Exactly,
    Ordered,
    Signs,
    Together,
    Within,
)
from iclgd.papers import PAPERS

__all__ = [
    "CLAIMS",
    "PAPERS",
    "Above",
    "AtLeast",
    "AtMost",
    "Below",
    "Between",
    "Claim",
    "Exactly",
    "Ordered",
    "Place",
    "Published",
    "Read",
    "Signs",
    "Together",
    "Within",
    "claim",
    "identity",
    "number",
]

for _found in iter_modules(__path__):
    if _found.name.partition("_")[0] in PAPERS:  # declarations: they import nothing heavy
        import_module(f"{__name__}.{_found.name}")
