"""What a grid is made of: the cells of every part with their keys, as planned now or as its folder recorded them."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iclgd.errors import Refusal
from iclgd.files import file_sha256, holder
from iclgd.grid.file import FILE, Grid, Part, read_grid
from iclgd.lab import LABS
from iclgd.overview import RUNS
from iclgd.registry import load_plugin
from iclgd.report.numbers import counted
from iclgd.report.terminal import CellProgress
from iclgd.results import Label
from iclgd.running import planned
from iclgd.store.cells import NAME, Store
from iclgd.study import open_study, read_record
from iclgd.tools import Tools

if TYPE_CHECKING:
    from iclgd.engine.work import Job


@dataclass(frozen=True)
class PartPlan:
    """The cells of one part: key and labels of each, and the fields in which it differs from other parts."""

    name: str
    lab: str
    fields: Mapping[str, Label]
    keys: Sequence[str]
    labels: Sequence[Mapping[str, Label]]
    answer: str = ""

    def plain(self) -> dict[str, Any]:
        cells = [{"key": key, "labels": dict(labels)} for key, labels in zip(self.keys, self.labels, strict=True)]
        told = {"name": self.name, "lab": self.lab, "fields": dict(self.fields), "answer": self.answer}
        return {**told, "cells": cells}

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> "PartPlan":
        cells = plain["cells"]
        keys, labels = [cell["key"] for cell in cells], [cell["labels"] for cell in cells]
        return cls(plain["name"], plain["lab"], plain["fields"], keys, labels, plain.get("answer", ""))


@dataclass(frozen=True)
class Plan:
    """The parts of a grid, the store that has their cells, and the folder that shows them, if there is one."""

    name: str
    parts: Sequence[PartPlan]
    store: Path
    folder: Path | None = None
    ended: str = ""  # what the last run said when it could not finish
    failed: tuple[str, ...] = ()  # the cells that it could not have
    leaving: tuple[str, ...] = ()  # parts of an earlier run whose pages are still there
    answer: str = ""  # what all parts together found

    @cached_property
    def done(self) -> set[str]:
        """Names of the cells that the store has."""
        store, there = Store(self.store), set(Store(self.store).names())
        return {key[:NAME] for key in self.keys if key[:NAME] in there and store.has(key)}

    @property
    def unfinished(self) -> str:
        """How many cells are done, where some are not."""
        every = {key[:NAME] for key in self.keys}
        return "" if self.done == every else f"{len(self.done)} of {counted(len(every), 'cell')} are done."

    @property
    def keys(self) -> Iterator[str]:
        """Every cell, those that parts share once."""
        return iter(dict.fromkeys(key for part in self.parts for key in part.keys))

    def cells(self) -> Iterator[tuple[PartPlan, str, dict[str, Label]]]:
        """Part, key and labels of every cell; the part's name and the fields it has for itself are labels too."""
        for part in self.parts:
            for key, labels in zip(part.keys, part.labels, strict=True):
                yield part, key, {"part": part.name, **part.fields, **labels}

    def among(self, names: Collection[str]) -> Iterator[dict[str, Label]]:
        """The cells of these names, by part and labels; one that parts share is the first one's."""
        left = set(names)
        for part in self.parts:
            for key, labels in zip(part.keys, part.labels, strict=True):
                if key[:NAME] in left:
                    left.remove(key[:NAME])
                    yield {"part": part.name, **labels}


def jobs_of(grid: Grid, progress: CellProgress | None = None) -> "list[tuple[Part, Tools, list[Job]]]":
    """Every part with its cells; parts that read one data folder share their tools, hence what they read."""
    tools: dict[Path | None, Tools] = {}
    found = []
    for part in grid.parts:
        if progress:
            progress.doing(f"listing the cells of {part.name}", 0)
        data = getattr(part.spec, "data", None)
        mine = tools.setdefault(data, Tools(data, progress.doing) if progress else Tools(data))
        jobs = planned(part.lab, part.spec, mine)
        # cells of two parts are never run as one group, whatever their labs call their groups
        found.append(
            (part, mine, [replace(j, cell=replace(j.cell, group=f"{part.name} {j.cell.group}")) for j in jobs])
        )
    return found


def plan_of(name: str, found: "Sequence[tuple[Part, Tools, list[Job]]]", store: Path, folder: Path | None) -> Plan:
    varied = varied_fields([part for part, _, _ in found])
    parts = [
        PartPlan(p.name, p.lab, fields, [j.key for j in jobs], [dict(j.cell.labels) for j in jobs])
        for (p, _, jobs), fields in zip(found, varied, strict=True)
    ]
    return Plan(name, parts, store, folder)


def varied_fields(parts: Sequence[Part]) -> list[dict[str, Label]]:
    """Of every part, the fields that are not the same in all parts that have them, as labels."""
    specs = [_labels(part.spec.model_dump(mode="json")) for part in parts]
    values: dict[str, set[Label]] = {}
    for spec in specs:
        for name, value in spec.items():
            values.setdefault(name, set()).add(value)
    return [{name: value for name, value in spec.items() if len(values[name]) > 1} for spec in specs]


def _labels(spec: Mapping[str, Any]) -> dict[str, Label]:
    """The fields that can be labels: single values, and lists of them joined by commas."""
    found: dict[str, Label] = {}
    for name, value in spec.items():
        if isinstance(value, str | int | float | bool):
            found[name] = value
        elif isinstance(value, list) and value and not any(isinstance(one, dict | list) for one in value):
            found[name] = ",".join(map(str, value))
    return found


# where a plan is found again


def find_plan(what: Path, store: Path | None = None, out: Path | None = None) -> Plan:
    """The plan of a study file, of a grid's folder, or of a lab's folder.

    A file whose folder has run it is not planned again; what changed since is found by `study plan` and `study run`.
    """
    if (process := holder(what).process) and not read_record(what):
        raise Refusal(f"process {process} is at work on {what}, which shows a study only when it is done.")
    if what.is_dir():
        return _recorded(what, store)
    if (folder := recorded_folder(what, out)) is not None:
        return _recorded(folder, store)
    from iclgd.store.cells import default_store

    grid = read_grid(what)
    return plan_of(grid.name, jobs_of(grid), store or default_store(), folder)


def recorded_folder(file: Path, out: Path | None = None) -> Path | None:
    """The folder that ran this very file with labs as they are now; none if none did."""
    folder = out or (file.parent if file.name == FILE and "grid" in read_record(file.parent) else None)
    if folder is None:
        try:
            folder = RUNS / read_grid_name(file)
        except OSError as error:
            raise Refusal(f"cannot read {file}: {error.strerror}; name a study file.") from None
    record = read_record(folder)
    own = file.parent.resolve() == folder.resolve() and file.name == FILE
    same = "grid" in record and (own or record.get("file") == file_sha256(file))
    return folder if same and record["labs"] == versions(record) else None


def read_grid_name(file: Path) -> str:
    """The name of a study file's folder, without reading the specs."""
    from iclgd.lines import Lines

    data = Lines.read(file).data
    return str(data.get("name") or file.stem) if isinstance(data, dict) else file.stem


def versions(record: Mapping[str, Any]) -> dict[str, int]:
    """The versions, now, of the labs of a recorded grid."""
    for plugin in record.get("plugins", ()):
        load_plugin(plugin)
    return {lab: LABS[lab].version for lab in record["labs"]}


def _recorded(folder: Path, store: Path | None) -> Plan:
    record = read_record(folder)
    if "grid" in record:
        parts = [PartPlan.of(part) for part in record["parts"]]
        ended, failed = record.get("ended", ""), tuple(record.get("failed", ()))
        return Plan(record["name"], parts, store or Path(record["store"]), folder, ended, failed)
    if "lab" in record:
        study = open_study(folder)
        part = PartPlan(study.lab, study.lab, {}, study.keys, [dict(cell.labels) for cell in study.cells])
        return Plan(folder.name, [part], store or Path(record["store"]), folder)
    raise Refusal(f"{folder} holds no study: name a study file, or a folder that iclgd wrote.")


def record_text(grid: Grid, plan: Plan, file: Path) -> str:
    """What the folder remembers of a grid."""
    record = {
        "grid": grid.key,
        "name": grid.name,
        "file": file_sha256(file),
        "store": str(plan.store.resolve()),
        "labs": {part.lab: LABS[part.lab].version for part in grid.parts},
        "plugins": sorted({plugin for part in grid.parts for plugin in part.spec.plugin}),
        "ended": plan.ended,
        "failed": plan.failed,
        "leaving": plan.leaving,
        "answer": plan.answer,
        "parts": [part.plain() for part in plan.parts],
    }
    return json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n"
