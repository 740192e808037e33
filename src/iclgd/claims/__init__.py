"""Claims: sentences from papers, made executable. One file a paper; what is run, what it says, what was measured."""

from importlib import import_module
from pkgutil import iter_modules

from iclgd.claims.claim import CLAIMS, Claim, Within, claim

__all__ = ["CLAIMS", "Claim", "Within", "claim", "scan"]


def scan() -> None:
    """Import every file of this folder, so that its claims are known."""
    for found in iter_modules(__path__):
        import_module(f"{__name__}.{found.name}")
