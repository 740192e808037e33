"""Running claims: the cells that they read go through the store and an engine like those of any study.

What a claim reads is listed first, for all claims together, so that shared cells run once; then each claim is judged
from what is in the store.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from iclgd.claims.claim import CLAIMS, Claim, Read
from iclgd.claims.expect import Judgement, state_of
from iclgd.errors import Refusal
from iclgd.lab import LABS, Cell, LabSpec
from iclgd.running import Where, run_study
from iclgd.spec import key, option
from iclgd.study import Study

NOT_RUN, ERROR = "not run", "error"


@dataclass(frozen=True)
class Asked:
    """Of which model and of whose data claims are asked; none: as they are declared."""

    model: str = ""
    data: Path | None = None

    def missing(self, claim: Claim) -> str:
        """What a claim needs that is not there."""
        if "data" in claim.needs and self.data is None and not os.environ.get("ICLGD_DATA"):
            return "needs --data"
        return ""


class LedgerSpec(LabSpec):
    """The claims of one run, as a study: its cells are those that the claims read."""

    claims: tuple[str, ...] = option((), "Claims, by name.")
    model: str = option("", "Ask this model what is asked of a model.", keyed=False)
    data: Path | None = option(None, "Folder with <task>/<split> files.", keyed=False)

    def cells(self) -> list[Cell]:
        asked = Asked(self.model, self.data)
        return [cell for name in self.claims for read in CLAIMS[name].reads for cell in cells_of(read, asked)]


def spec_of(read: Read, asked: Asked) -> LabSpec:
    """The spec of a reading, of the model that is asked about."""
    kind = LABS[read.lab].spec
    fields: dict[str, Any] = dict(read.fields)
    if asked.model and "model" in kind.model_fields:
        fields["model"] = asked.model
    if asked.data is not None and "data" in kind.model_fields:
        fields["data"] = asked.data
    return kind.of(fields)


def cells_of(read: Read, asked: Asked) -> list[Cell]:
    """The cells of a reading; a group of its own for each spec, since a lab runs a group as one study."""
    spec = spec_of(read, asked)
    mark = key({"lab": read.lab, "spec": spec.model_dump(mode="json")})[:12]
    kept = [cell for cell in spec.cells() if all(cell.labels.get(n) in among for n, among in read.only.items())]
    if not kept:
        raise ValueError(f"{read} keeps no cell of its spec")
    return [replace(cell, group=f"{mark} {cell.group}") for cell in kept]


@dataclass(frozen=True)
class Row:
    """One claim after a run: what was measured, and whether that is what the ledger says."""

    claim: Claim
    state: str
    judgement: Judgement | None = None
    reason: str = ""  # why it was not run, or what went wrong
    cells: tuple[str, ...] = ()
    seconds: float = 0.0  # that its cells took when they were run
    versions: Mapping[str, str] | None = None
    device: str = ""


def run_claims(names: Sequence[str], where: Where, asked: Asked | None = None, **how: Any) -> list[Row]:
    """Run claims and judge them. One that errs does not keep the others from being run.

    ``how`` goes to `run_study`: jobs, progress, an engine.
    """
    asked = asked or Asked()
    rows: dict[str, Row] = {}
    for name in names:
        if reason := asked.missing(CLAIMS[name]):
            rows[name] = Row(CLAIMS[name], NOT_RUN, reason=reason)
    able = [name for name in names if name not in rows]
    try:
        rows |= _together(able, where, asked, how)
    except Exception:  # some claim's fault: one by one they tell whose; what is done is in the store
        once = replace(where, overwrite=False)
        for name in able:
            rows |= _alone(name, once, asked, how)
    return [rows[name] for name in names]


def _together(names: Sequence[str], where: Where, asked: Asked, how: Mapping[str, Any]) -> dict[str, Row]:
    if not names:
        return {}
    spec = LedgerSpec(claims=tuple(names), model=asked.model, data=asked.data)
    study = run_study("claims run", spec, where, **how)
    keys = iter(study.keys)
    rows = {}
    for name in names:
        studies = [_study(read, asked, keys, study.results) for read in CLAIMS[name].reads]
        rows[name] = _judged(CLAIMS[name], studies, where)
    return rows


def _alone(name: str, where: Where, asked: Asked, how: Mapping[str, Any]) -> dict[str, Row]:
    try:
        return _together([name], where, asked, how)
    except Exception as error:
        told = str(error) if isinstance(error, Refusal) else f"{type(error).__name__}: {error}"
        return {name: Row(CLAIMS[name], ERROR, reason=told)}


def _study(read: Read, asked: Asked, keys: Any, results: Mapping[str, Any]) -> Study:
    """The study that one reading is, from the cells of the whole run, which come in the same order."""
    cells = cells_of(read, asked)
    return Study(read.lab, spec_of(read, asked), cells, [next(keys) for _ in cells], results)


def _judged(claim: Claim, studies: Sequence[Study], where: Where) -> Row:
    from iclgd.store.cells import Store

    try:
        judgement = claim.expect.judge(claim.measure(*studies), claim.bounds)
    except Exception as error:
        return Row(claim, ERROR, reason=f"{type(error).__name__}: {error}")
    cells = tuple(dict.fromkeys(name for study in studies for name in study.keys))
    told = [Store(where.store).record(name)["provenance"] for name in cells]
    return Row(
        claim,
        state_of(claim.stands, judgement),
        judgement,
        judgement.reason,
        cells,
        round(sum(one["seconds"] for one in told), 2),
        told[0]["versions"] if told else {},
        told[0]["device"] if told else "",
    )
