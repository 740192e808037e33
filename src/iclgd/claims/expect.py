"""What a measurement is expected to be, and what a sample over seeds says about that: holds, fails or undecided.

A sample is one number a seed, or an estimate that brings its own interval. Where chance enters, the 95% interval of the
mean decides (Student's t over seeds, inside the quantity's bounds): all of it where the sentence wants it, all of it
elsewhere, or undecided. An identity has no chance in it: there each seed by itself has to be where it should.

A verdict that all cases share needs no correction: it is wrong only where the last of them is. One that some case of
several decides ("fails in any", "depends") could be the luck of that case, so it is judged by intervals as wide as
Bonferroni asks for, among as many cases as could have had the luck.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Verdict = Literal["holds", "fails", "depends", "undecided"]
Sample = Any  # numbers, one a seed, or what has mean, low and high
Bounds = tuple[float, float]
MISS = 0.05  # how often an interval leaves the truth out
STRADDLES = "the interval straddles the limit"
BY_LUCK = "one case of several may be elsewhere by luck"


@dataclass(frozen=True)
class Finding:
    """What one sample shows of one quantity."""

    value: float
    low: float
    high: float
    count: int  # seeds, or what else the claim's sample is over
    verdict: Verdict
    reason: str = ""


@dataclass(frozen=True)
class Judgement:
    """What was measured, by quantity or case ("" where there is only one), and what it says of the sentence."""

    verdict: Verdict
    findings: Mapping[str, Finding]
    reason: str = ""


@dataclass(frozen=True)
class Region:
    """Numbers from ``least`` to ``most``; ``each``: every seed has to be there, not only their mean."""

    least: float
    most: float
    text: str
    each: bool = False

    def __str__(self) -> str:
        return self.text

    def judge(self, found: Sample | Mapping[str, Sample], bounds: Bounds | None = None) -> Judgement:
        """A mapping is judged case by case: the sentence holds in all, fails in all, or depends on the case."""
        cases = found if isinstance(found, Mapping) else {"": found}
        return self.of({name: self.one(sample, bounds) for name, sample in cases.items()})

    def of(self, findings: Mapping[str, Finding]) -> Judgement:
        alone = {one.verdict for one in findings.values()}
        surely = {self.among(len(findings), one) for one in findings.values()}
        if len(alone) == 1:
            return Judgement(alone.pop(), findings, _first_reason(findings))
        if {"holds", "fails"} <= surely:
            return Judgement("depends", findings, _first_reason(findings))
        return Judgement("undecided", findings, _first_reason(findings) or BY_LUCK)

    def one(self, sample: Sample, bounds: Bounds | None = None) -> Finding:
        return self._each(sample) if self.each else self._mean(sample, bounds)

    def _each(self, sample: Sample) -> Finding:
        values = [float(value) for value in sample]
        inside = [self.least <= value <= self.most for value in values]
        if not values or not all(map(math.isfinite, values)):
            return _undecided(values, "a seed gave no number")
        low, high = min(values), max(values)
        far = max(values, key=self._miss)  # of all seeds the one that is furthest out
        if all(inside) or not any(inside):
            return Finding(far, low, high, len(values), "holds" if inside[0] else "fails")
        return Finding(far, low, high, len(values), "undecided", f"{sum(inside)} of {len(values)} seeds")

    def _miss(self, value: float) -> float:
        middle = (self.least + self.most) / 2
        if math.isfinite(middle):
            return abs(value - middle)
        return value if math.isfinite(self.most) else -value

    def _mean(self, sample: Sample, bounds: Bounds | None) -> Finding:
        value, low, high, count = interval(sample, bounds)
        if not math.isfinite(value):
            return Finding(value, low, high, count, "undecided", "no seed gave a number")
        if not math.isfinite(low) or not math.isfinite(high):
            return Finding(value, low, high, count, "undecided", "one seed has no interval")
        verdict = self._where(low, high)
        return Finding(value, low, high, count, verdict, "" if verdict != "undecided" else STRADDLES)

    def _where(self, low: float, high: float) -> Verdict:
        if self.least <= low and high <= self.most:
            return "holds"
        return "fails" if high < self.least or low > self.most else "undecided"

    def among(self, cases: int, found: Finding) -> Verdict:
        """A finding's verdict where it is one of several by which a sentence could be decided.

        Its interval is widened as Student's t is from .05 to .05 / cases, with one degree of freedom less than it is
        over. Where queries add to what draws know, that is wider than need be.
        """
        if self.each or cases < 2 or found.verdict == "undecided":
            return found.verdict
        from scipy.special import stdtrit

        freedom = max(found.count - 1, 1)
        wider = float(stdtrit(freedom, MISS / 2 / cases) / stdtrit(freedom, MISS / 2))
        reach = wider * max(found.value - found.low, found.high - found.value)
        return self._where(found.value - reach, found.value + reach)


def _undecided(values: Sequence[float], reason: str) -> Finding:
    return Finding(values[0] if values else math.nan, math.nan, math.nan, len(values), "undecided", reason)


def _first_reason(findings: Mapping[str, Finding]) -> str:
    told = [f"{name}: {one.reason}" if name else one.reason for name, one in findings.items() if one.reason]
    return told[0] if told else ""


def interval(sample: Sample, bounds: Bounds | None = None) -> tuple[float, float, float, int]:
    """Mean, low, high and how many they are over, seeds or tasks; an estimate brings its own.

    One that is over queries only, as where every other draw diverged, has none over draws.
    """
    if all(hasattr(sample, name) for name in ("mean", "low", "high")) and not callable(sample.mean):
        kind = getattr(sample, "kind", "")
        ends = (math.nan, math.nan) if kind == "queries only" else (sample.low, sample.high)
        return sample.mean, *ends, int(getattr(sample, "tasks" if kind == "tasks" else "seeds", 1))
    from iclgd.metrics.estimates import over_seeds

    found = over_seeds([float(value) for value in sample], bounds)
    return found.mean, found.low, found.high, len(list(sample))


# the regions, by name


def AtMost(limit: float, each: bool = False) -> Region:
    return Region(-math.inf, limit, f"≤ {limit:g}", each)


def AtLeast(limit: float, each: bool = False) -> Region:
    return Region(limit, math.inf, f"≥ {limit:g}", each)


def Above(limit: float) -> Region:
    """The whole interval above a limit: for differences, where the limit is 0."""
    return Region(math.nextafter(limit, math.inf), math.inf, f"> {limit:g}")


def Below(limit: float) -> Region:
    return Region(-math.inf, math.nextafter(limit, -math.inf), f"< {limit:g}")


def Within(value: float, tolerance: float, each: bool = False) -> Region:
    return Region(value - tolerance, value + tolerance, f"{value:g} ± {tolerance:g}", each)


def Between(least: float, most: float, each: bool = False) -> Region:
    return Region(least, most, f"{least:g} to {most:g}", each)


def Exactly(value: float) -> Region:
    return Region(value, value, f"= {value:g}", each=True)


# several quantities at once


@dataclass(frozen=True)
class Ordered:
    """Each named quantity above the one before it, on the same seeds."""

    names: tuple[str, ...]
    each: bool = False

    def __init__(self, *names: str, each: bool = False):
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "each", each)

    def __str__(self) -> str:
        return " < ".join(self.names)

    def judge(self, found: Mapping[str, Sample], bounds: Bounds | None = None) -> Judgement:
        pairs = zip(self.names, self.names[1:], strict=False)
        return self.of({f"{b} − {a}": self._above.one(_less(found[b], found[a])) for a, b in pairs})

    def of(self, findings: Mapping[str, Finding]) -> Judgement:
        return _all(dict.fromkeys(findings, self._above), findings)

    @property
    def _above(self) -> Region:
        return Region(math.nextafter(0.0, 1.0), math.inf, "> 0", self.each)


def _less(one: Iterable[float], two: Iterable[float]) -> list[float]:
    return [a - b for a, b in zip(one, two, strict=True)]


@dataclass(frozen=True)
class Signs:
    """At least ``enough`` of the named quantities above 0."""

    enough: int

    def __str__(self) -> str:
        return f"> 0 in {self.enough} or more"

    def judge(self, found: Mapping[str, Sample], bounds: Bounds | None = None) -> Judgement:
        return self.of({name: Above(0).one(sample, bounds) for name, sample in found.items()})

    def of(self, findings: Mapping[str, Finding]) -> Judgement:
        """At the edge of the sentence ``enough − 1`` are above 0, and any of the others could seem so by luck."""
        others = len(findings) - self.enough + 1
        above = [Above(0).among(others, one) for one in findings.values()].count("holds")
        below = [Above(0).among(self.enough, one) for one in findings.values()].count("fails")
        if above >= self.enough or below >= others:
            return Judgement("holds" if above >= self.enough else "fails", findings)
        return Judgement("undecided", findings, _first_reason(findings) or BY_LUCK)


@dataclass(frozen=True)
class Together:
    """Several quantities, each with its own region: all have to be where they should."""

    parts: Mapping[str, Region]

    def __str__(self) -> str:
        return ", ".join(f"{name} {region}" for name, region in self.parts.items())

    def judge(self, found: Mapping[str, Sample], bounds: Bounds | None = None) -> Judgement:
        return self.of({name: region.one(found[name], bounds) for name, region in self.parts.items()})

    def of(self, findings: Mapping[str, Finding]) -> Judgement:
        return _all(self.parts, findings)


def _all(regions: Mapping[str, Region], findings: Mapping[str, Finding]) -> Judgement:
    """Holds where every part does; fails where one does, of as many as chance enters."""
    chance = sum(not regions[name].each for name in findings)
    surely = [regions[name].among(chance, one) for name, one in findings.items()]
    if all(one.verdict == "holds" for one in findings.values()):
        return Judgement("holds", findings)
    if "fails" in surely:
        return Judgement("fails", findings, _first_reason(findings))
    return Judgement("undecided", findings, _first_reason(findings) or BY_LUCK)


Expectation = Region | Ordered | Signs | Together


def state_of(stands: str, judgement: Judgement) -> str:
    """Whether a measurement confirms what the ledger says of a sentence; an open one says nothing to be confirmed."""
    if stands == "open":
        return stands
    said = "depends" if stands.startswith("depends") else stands
    return "as we say" if said == judgement.verdict else "not as we say"
