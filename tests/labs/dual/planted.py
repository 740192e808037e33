"""Studies with results that were made up, so that it is known what their pages have to say."""

from collections.abc import Callable
from typing import Any

from iclgd.lab import Cell, LabSpec
from iclgd.results import Result
from iclgd.study import Study


def study_of(lab: str, spec: LabSpec, result: Callable[[Cell], Result]) -> Study:
    cells = spec.cells()
    keys = [str(i) for i in range(len(cells))]
    return Study(lab, spec, cells, keys, {key: result(cell) for key, cell in zip(keys, cells, strict=True)})


def facts(demos: int = 2, query: str = "a film") -> dict[str, Any]:
    return {
        "device": "cpu",
        "k": demos,
        "demonstrations": [{"label": ("bad", "good")[i % 2], "text": f"text\n{i}  word " * 9} for i in range(demos)],
        "episode": {"task": "films", "queries": [{"fields": {"text": query}, "label": 1}]},
    }


def row(table: Any, first: str) -> list[str]:
    (found,) = [line for line in table.texts() if line[0] == first]
    return found
