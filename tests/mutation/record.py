"""What was counted, package by package, kept in the form that docs/fill.py reads."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

HEADER = ("package", "mutants", "killed", "survived", "timeouts", "equivalent", "noticed", "at first")
Counts = dict[str, Any]  # of a package: mutants, killed, survived, timeout, equivalent, survivors, seed, first

NUMBERS, LISTS = ("mutants", "killed", "survived", "timeout"), ("equivalent", "survivors")
NOTHING: Counts = dict.fromkeys(NUMBERS, 0) | {name: [] for name in LISTS}


def together(one: Counts, two: Counts) -> Counts:
    """Of two samples that have no mutant in common."""
    return {name: one[name] + two[name] for name in (*NUMBERS, *LISTS)}


def record(packages: dict[str, Counts]) -> dict[str, Any]:
    rows = [[name, *map(str, row(found))] for name, found in packages.items()]
    table = {"title": "Mutants", "table": {"header": list(HEADER), "rows": rows}}
    return {"title": "Mutation counts", "sections": [table], "figures": {}, "packages": packages}


def row(found: Counts) -> Iterable[Any]:
    counts = [found[part] for part in NUMBERS]
    return [*counts, len(found["equivalent"]), share(first(found)), share(found.get("first"))]


def first(found: Counts) -> dict[str, int]:
    """How many were noticed, of how many that could be."""
    noticed = found["killed"] + found["timeout"]
    return {"noticed": noticed, "of": noticed + found["survived"]}


def again(before: Counts, equivalent: int) -> Counts:
    """What was noticed at first, once it is known that so many more of that sample are equivalent."""
    if "first" not in before:
        return {}
    return {"first": before["first"] | {"of": before["first"]["of"] - equivalent}}


def share(noticed: dict[str, int] | None) -> str:
    return f"{noticed['noticed'] / noticed['of']:.0%}" if noticed and noticed["of"] else "–"


def kept(out: Path) -> dict[str, Counts]:
    return json.loads(out.read_text(encoding="utf-8"))["packages"] if out.is_file() else {}


def written(out: Path, packages: dict[str, Counts], order: Sequence[str]) -> None:
    """A package's row is replaced or put in its place, the others stay."""
    together = kept(out) | packages
    names = [name for name in order if name in together] + sorted(together.keys() - set(order))
    out.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(record({name: together[name] for name in names}), ensure_ascii=False, indent=1)
    out.write_text(text + "\n", encoding="utf-8")
