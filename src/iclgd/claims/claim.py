"""What a claim is: a sentence, its source, the number to expect and the way to get it, side by side."""

from collections.abc import Callable
from dataclasses import dataclass

from iclgd.registry import Registry

CLAIMS: Registry["Claim"] = Registry("claim", "iclgd claims", "iclgd.claims", home="iclgd.claims")


@dataclass(frozen=True)
class Within:
    """A value and how far a measurement may be from it."""

    value: float
    tolerance: float

    def holds(self, measured: float) -> bool:
        return abs(measured - self.value) <= self.tolerance

    def __str__(self) -> str:
        return f"{self.value:g} ± {self.tolerance:g}"


@dataclass(frozen=True)
class Claim:
    """One checkable sentence of a paper, in our words."""

    name: str  # paper.sentence
    says: str
    source: str
    expect: Within
    cost: str
    run: Callable[[int], float]  # by seed


def claim(name: str, says: str, source: str, expect: Within, cost: str, run: Callable[[int], float]) -> Claim:
    """Declare a claim, so that `iclgd claims` knows it."""
    made = Claim(name, says, source, expect, cost, run)
    CLAIMS.add(name, made)
    return made
