"""Numbers as people read them, with their intervals, in every form a page has."""

import math
from dataclasses import dataclass
from typing import Any


def number(value: float, digits: int = 3) -> str:
    """`.149`, `1.204`, `-.02`; `n/a` for what is undefined."""
    if not math.isfinite(value):
        return "n/a"
    text = f"{value:.{digits}f}"
    if float(text) == 0:
        text = text.lstrip("-")
    return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text


def significant(value: float, digits: int = 4) -> str:
    """A few significant digits, for quantities of any size: `.0123`, `48.3`, `1.2e-14`."""
    if not math.isfinite(value):
        return "n/a"
    text = f"{value:.{digits}g}"
    return text.replace("0.", ".", 1) if text.lstrip("-").startswith("0.") else text


def counted(count: int, what: str) -> str:
    """`1 seed`, `3 seeds`; `1 query`, `3 queries`."""
    several = f"{what[:-1]}ies" if what.endswith(("ry", "dy")) else f"{what}s"
    return f"1 {what}" if count == 1 else f"{count:,} {several}"


@dataclass(frozen=True)
class Number:
    """A value, its interval where it has one, and how it is written."""

    value: float
    low: float = math.nan
    high: float = math.nan
    digits: int = 3
    note: str = ""

    def written(self, value: float) -> str:
        return number(value, self.digits)

    @property
    def middle(self) -> str:
        return self.written(self.value)

    @property
    def around(self) -> str:
        """`[.141 .157]`; nothing where there is no interval."""
        known = math.isfinite(self.low) and math.isfinite(self.high)
        return f"[{self.written(self.low)} {self.written(self.high)}]" if known else ""

    def __str__(self) -> str:
        """`.149 [.141 .157]`."""
        return " ".join(filter(None, (self.middle, self.around, self.note)))

    def plain(self) -> dict[str, Any]:
        """For JSON: the number, and how the page writes it."""
        given = {"value": self.value, "low": self.low, "high": self.high}
        found: dict[str, Any] = {name: x for name, x in given.items() if math.isfinite(x)}
        return {"value": None, **found, **({"note": self.note} if self.note else {}), "text": str(self)}


@dataclass(frozen=True)
class Size(Number):
    """A quantity of any magnitude, to a few significant digits."""

    digits: int = 4

    def written(self, value: float) -> str:
        return significant(value, self.digits)


def p_value(value: float) -> str:
    """`.030`, `< .001`, or `n/a`."""
    return "n/a" if math.isnan(value) else "< .001" if value < 0.001 else number(value)
