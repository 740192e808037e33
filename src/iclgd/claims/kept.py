"""Verdicts that were kept: what was measured when, with what, by claim and by model; read without torch.

`claims run --keep` writes them here, one file a paper, and `iclgd claims` shows them. A verdict whose expectation was
changed since counts as not run.
"""

import json
import time
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iclgd.claims.claim import Claim
from iclgd.claims.expect import Finding, Judgement
from iclgd.spec import finite

if TYPE_CHECKING:
    from iclgd.claims.ledger import Row

FOLDER = Path(__file__).parent / "verdicts"
DIGITS = 6
DEFAULT = "smollm2-135m"  # the model of a claim about models, where none is named
Kept = dict[str, Any]


@cache
def _file(paper: str, folder: Path) -> dict[str, dict[str, Kept]]:
    path = folder / f"{paper}.json"
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else {}


def kept(claim: Claim, model: str = "", folder: Path | None = None) -> Kept | None:
    """What is kept of a claim, for a model where it is asked of one; the default model's where none is named."""
    found = _file(claim.paper, folder or FOLDER).get(claim.name, {})
    one = found.get(model or (DEFAULT if "model" in claim.needs else ""))
    return one if one is not None and one["expect"] == str(claim.expect) else None


def models_of(claim: Claim, folder: Path | None = None) -> list[str]:
    """The models of which a verdict is kept."""
    return [model for model in _file(claim.paper, folder or FOLDER).get(claim.name, {}) if model]


def judgement_of(record: Kept) -> Judgement:
    """A kept verdict as it was judged."""
    nan = float("nan")
    findings = {
        name: Finding(**{**one, **{n: nan for n in ("value", "low", "high") if one[n] is None}})
        for name, one in record["findings"].items()
    }
    return Judgement(record["verdict"], findings, record["reason"])


def record_of(row: "Row") -> Kept:
    assert row.judgement is not None
    findings = {
        name: {
            "value": _short(one.value),
            "low": _short(one.low),
            "high": _short(one.high),
            "count": one.count,
            "verdict": one.verdict,
        }
        for name, one in row.judgement.findings.items()
    }
    return finite(
        {
            "verdict": row.judgement.verdict,
            "reason": row.judgement.reason,
            "expect": str(row.claim.expect),
            "findings": findings,
            "cells": [name[:16] for name in row.cells],
            "seconds": row.seconds,
            "device": row.device,
            "versions": dict(row.versions or {}),
            "on": time.strftime("%Y-%m-%d", time.gmtime()),
        }
    )


def _short(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def keep(rows: "Iterable[Row]", model: str = "", folder: Path | None = None) -> int:
    """Keep what was judged; a row without a judgement leaves what is there. How many were kept."""
    folder = folder or FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    by_paper: dict[str, "list[Row]"] = {}
    for row in rows:
        if row.judgement is not None:
            by_paper.setdefault(row.claim.paper, []).append(row)
    for paper, some in by_paper.items():
        found = {name: dict(models) for name, models in _file(paper, folder).items()}
        for row in some:
            about = (model or DEFAULT) if "model" in row.claim.needs else ""
            found.setdefault(row.claim.name, {})[about] = record_of(row)
        (folder / f"{paper}.json").write_text(_text(found), encoding="utf-8")
    _file.cache_clear()
    return sum(map(len, by_paper.values()))


def _text(found: Mapping[str, Mapping[str, Kept]]) -> str:
    """A line a verdict, in order, so that a change is one line."""
    lines = []
    for name in sorted(found):
        models = [f"  {json.dumps(m)}: {json.dumps(found[name][m], ensure_ascii=False)}" for m in sorted(found[name])]
        lines.append(f" {json.dumps(name)}: {{\n" + ",\n".join(models) + "\n }")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def changed(row: "Row", record: Kept | None, exactly: bool = False) -> str:
    """How a run differs from what is kept: another verdict; ``exactly``: or a number further off than the claim allows.

    Of rounding errors, which residuals of an identity are, only the size counts: below a millionth all are alike.
    """
    if record is None or row.judgement is None:
        return ""
    now, then = row.judgement, judgement_of(record)
    if now.verdict != then.verdict:
        return f"the verdict kept is {then.verdict}, this run says {now.verdict}"
    if not exactly:
        return ""
    for name, one in now.findings.items():
        old = then.findings.get(name)
        if old is None:
            return f"{name} is not in the verdict kept"
        room = row.claim.drift * max(abs(old.value), abs(old.high - old.low) if old.high == old.high else 0.0)
        if abs(one.value - old.value) > max(room, 1e-6):
            return f"{name or 'it'} was {old.value:g} and is {one.value:g}, further than {room:.2g}"
    return ""
