"""What a claim is: a sentence, its source, what to expect and which cells show it, side by side.

A claim is a reader of studies. It names cells of labs (`Read`) and a pure function of what they found; claims that name
the same cells share them. Declarations import nothing heavy: specs are made, and functions called, when a claim is run.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from iclgd.claims.expect import AtMost, Bounds, Expectation, Sample
from iclgd.registry import Registry

if TYPE_CHECKING:
    from iclgd.study import Study

CLAIMS: Registry["Claim"] = Registry("claim", "iclgd claims", "iclgd.claims", home="iclgd.claims")
Tier = Literal["seconds", "minutes", "hours"]
TIERS: tuple[Tier, ...] = ("seconds", "minutes", "hours")
Measure = Callable[..., Sample | Mapping[str, Sample]]  # of one study for each `Read`


@dataclass(frozen=True)
class Place:
    """Where a sentence stands: a document of `papers`, and the section, equation, table or slide in it."""

    document: str
    where: str


@dataclass(frozen=True)
class Read:
    """Cells that a claim reads: a lab, fields of its spec, and which of the spec's cells, by their labels."""

    lab: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    only: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)  # label → values to keep; None: has no such label


@dataclass(frozen=True)
class Published:
    """A number as it was printed, and why ours cannot be laid beside it digit by digit, where it cannot."""

    value: str
    apart: str = ""


@dataclass(frozen=True)
class Claim:
    """One checkable sentence of a paper, in our words.

    ``stands`` is what the ledger says of the sentence: holds, fails, "depends on …" or open. A run has to confirm it: a
    sentence that fails is as it should be when the measurement fails it.
    """

    name: str  # paper.sentence
    says: str
    source: Place
    expect: Expectation
    reads: tuple[Read, ...]
    measure: Measure
    stands: str = "holds"
    tier: Tier = "seconds"
    gpu: bool = False  # whether it is meant for a GPU
    needs: tuple[str, ...] = ()  # "model": asked of a language model; "data": of files that the user has
    of: str = ""  # what is measured, in a few words
    over: str = "seed"  # what a sample has one number for: a seed, a query of one draw, a task
    bounds: Bounds | None = None  # of the quantity itself
    note: str = ""
    published: Published | None = None
    chosen_after: bool = False  # the expectation was set after a measurement was seen
    drift: float = 0.05  # how far a repeat elsewhere may lie, in parts of the value (or of its interval, if wider)

    @property
    def paper(self) -> str:
        return self.name.partition(".")[0]

    @property
    def short(self) -> str:
        return self.name.partition(".")[2]


def claim(
    name: str,
    says: str,
    source: Place,
    expect: Expectation,
    reads: Read | tuple[Read, ...],
    measure: Measure,
    **more: Any,
) -> Claim:
    """Declare a claim, so that `iclgd claims` knows it."""
    stands = more.get("stands", "holds")
    if stands not in ("holds", "fails", "open") and not stands.startswith("depends on "):
        raise ValueError(f'{name} stands "{stands}": holds, fails, open, or depends on something')
    made = Claim(name, says, source, expect, reads if isinstance(reads, tuple) else (reads,), measure, **more)
    CLAIMS.add(name, made)
    return made


# identities: their numbers are read by name


def identity(name: str, seeds: int = 3) -> Read:
    """The cells of one identity."""
    return Read("identities", {"names": (name,), "seeds": seeds})


def exact(
    name: str, says: str, source: Place, check: str, quantity: str = "residual", limit: float = 1e-12, **more: Any
) -> Claim:
    """Declare an equation: of the identity ``check``, one number stays below a limit in every seed."""
    return claim(name, says, source, AtMost(limit, each=True), identity(check), number(quantity), **more)


def number(quantity: str = "residual", *others: str) -> Measure:
    """One quantity of an identity over its seeds; several by name."""

    def over_seeds(study: "Study", name: str) -> list[float]:
        return [float(one.values) for one in study.arrays(quantity=name)]

    if not others:
        return lambda study: over_seeds(study, quantity)
    return lambda study: {name: over_seeds(study, name) for name in (quantity, *others)}
