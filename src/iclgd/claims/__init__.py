"""Claims: sentences from papers, made executable. One file a paper; what is run, what it says, what was measured."""

from importlib import import_module
from pkgutil import iter_modules

from iclgd.claims.claim import CLAIMS, Claim, Within, claim

__all__ = ["CLAIMS", "Claim", "Within", "claim"]

for _found in iter_modules(__path__):  # declarations: they import nothing heavy
    import_module(f"{__name__}.{_found.name}")
