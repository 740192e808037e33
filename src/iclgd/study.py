"""A study: the cells of one spec and what they found, what it shows, and the folder it is opened from again."""

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml

from iclgd.choices import Choice
from iclgd.errors import Refusal
from iclgd.files import output_folder
from iclgd.lab import LABS, Cell, Label, LabSpec
from iclgd.registry import load_plugin
from iclgd.report.numbers import counted
from iclgd.report.page import Page, Table
from iclgd.results import Array, Result, matches
from iclgd.spec import Spec, key
from iclgd.store.cells import Store
from iclgd.tools import MEMORY

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame


SPEC, RECORD = "spec.yaml", "study.json"


class Results(Mapping[str, Result]):
    """The results of a study's cells by key, each read from the store when it is first looked at."""

    def __init__(self, store: Store, keys: Sequence[str]):
        self._store, self._keys, self._read = store, dict.fromkeys(keys), dict[str, Result]()

    def __getitem__(self, name: str) -> Result:
        if name not in self._read:
            self._read[name] = self._store.read(name)
        return self._read[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)


@dataclass(frozen=True, eq=False)
class Study:
    """What running a lab gives, and what opening a finished study's folder gives."""

    lab: str
    spec: LabSpec
    cells: Sequence[Cell]
    keys: Sequence[str]
    results: Mapping[str, Result]
    repeat: str = ""
    fresh: int = 0  # cells that were run just now

    # numbers

    def found(self) -> Iterator[tuple[Cell, Result]]:
        """Every cell with what it found."""
        return ((cell, self.results[name]) for cell, name in zip(self.cells, self.keys, strict=True))

    def arrays(self, **labels: Label | None) -> list[Array]:
        """The arrays with these labels, each carrying its cell's labels too; None: a label that is not there."""
        kept = []
        for cell, name in zip(self.cells, self.keys, strict=True):
            if any(cell.labels[n] != value for n, value in labels.items() if n in cell.labels):
                continue
            for one in self.results[name].arrays:
                both = {**cell.labels, **one.labels}
                if matches(both, labels):
                    kept.append(Array(both, one.axes, one.values, one.coordinates))
        return kept

    def stack(
        self, over: str, places: Sequence[Label], at: Mapping[str, Label] | None = None, **labels: Label | None
    ) -> np.ndarray:
        """Arrays of several cells side by side along a new first axis, nan where a place has none; empty if none has.

        ``at`` takes one place of an axis, for instance ``{"position": "label"}``.
        """
        known = {one.labels.get(over): one.at(**(at or {})).values for one in self.arrays(**labels)}
        if not known:
            return np.empty((0,))
        nothing = np.full_like(next(iter(known.values())), np.nan, dtype=float)
        return np.stack([np.asarray(known.get(place, nothing), dtype=float) for place in places])

    def facts(self, name: str) -> list[Any]:
        """One fact of every cell."""
        return [result.facts[name] for _, result in self.found() if name in result.facts]

    def frame(self, **labels: Label | None) -> "DataFrame":
        """The numbers as a long table: a column for each label and axis, and `value`."""
        import pandas

        parts = []
        for one in self.arrays(**labels):
            index = np.indices(one.values.shape).reshape(len(one.axes), one.values.size)
            columns = {
                a: np.asarray(one.coordinates[a])[i] if a in one.coordinates else i
                for a, i in zip(one.axes, index, strict=True)
            }
            parts.append(pandas.DataFrame({**columns, "value": one.values.ravel()}).assign(**dict(one.labels)))
        return pandas.concat(parts, ignore_index=True) if parts else pandas.DataFrame({"value": []})

    # what is shown

    @cached_property
    def page(self) -> Page:
        return LABS[self.lab].page(self).with_repeat(self.repeat)

    @property
    def answer(self) -> str:
        """What was found, in a sentence."""
        return self.page.answer

    def table(self, title: str = "") -> Table:
        return self.page.table(title)

    def figure(self, name: str = "") -> "Figure":
        """The figure of that name, or the first there is."""
        drawings = self.page.drawings
        name = name or next(iter(drawings), "")
        if name not in drawings:
            raise Refusal(f'this study has no figure "{name}". It has {", ".join(drawings) or "none"}.')
        return drawings[name].figure

    def _repr_html_(self) -> str:
        return self.page._repr_html_()

    def write(self, folder: Path, store: Path) -> None:
        """The view of the study: spec, page in all its forms, figures; the cells stay in the store."""
        from iclgd.report.figures import save

        page = self.page
        record = {
            "lab": self.lab,
            "key": study_key(self.lab, self.spec),
            "store": str(store.resolve()),
            "cells": list(self.keys),
            **page.plain(),
        }
        with output_folder(folder) as new:
            spec = yaml.safe_dump(self.spec.model_dump(mode="json"), sort_keys=False, allow_unicode=True)
            (new / SPEC).write_text(spec, encoding="utf-8")
            text = json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False)
            (new / RECORD).write_text(text + "\n", encoding="utf-8")
            for drawing in page.drawings.values():
                save(drawing, new)
            (new / "index.html").write_text(page.html(), encoding="utf-8")
            (new / "page.md").write_text(page.markdown(), encoding="utf-8")
            for name, content in page.files.items():
                (new / name).write_text(content, encoding="utf-8")


def show(study: object) -> Page:
    """A study's first queries token by token, as its page shows them; in a notebook this is what a cell displays."""
    if not isinstance(study, Study):
        raise Refusal(f"a study can be shown, as `iclgd.trace(…)` gives one, which a {type(study).__name__} is not.")
    found = [one for one in study.page.sections if one.widget is not None and one.widget.kind == "explorer"]
    if not found:
        raise Refusal(
            "this study keeps no attention to show: give one of a lab that does, as `iclgd.trace(…)`, and run anew."
        )
    return Page(study.page.title, study.page.subtitle, study.page.answer, found)


def study_key(lab: str, spec: LabSpec) -> str:
    return key({"lab": lab, "spec": spec.model_dump(mode="json")})


def repeat_line(lab: str, spec: LabSpec, folder: Path | None) -> str:
    """The command that shows the study again, from any folder; none where its model was only in memory."""
    if str(getattr(spec, "model", "")).startswith(MEMORY):
        return ""
    plugins = [word for file in spec.plugin for word in ("--plugin", file)]  # the lab itself may come from one
    if folder is not None:
        return shlex.join(["iclgd", *plugins, *lab.split(), "--spec", str(folder.resolve() / SPEC)])
    return shlex.join(["iclgd", *plugins, *lab.split(), *flags(spec)])


def flags(spec: Spec) -> list[str]:
    """The options that a command has to be given for this spec."""
    given = {name: getattr(spec, name) for name in said(spec) if name != "plugin"}
    off = {name for name, value in given.items() if value is False and type(spec).model_fields[name].default is False}
    return [word for name, value in given.items() if name not in off for word in _flag(name, value)]


def said(spec: Spec) -> dict[str, Any]:
    """The fields that have to be given for this spec: those off their defaults, or all where these do not do."""
    kind, whole = type(spec), {n: v for n, v in spec.model_dump(mode="json").items() if v is not None}
    try:
        usual = kind.of({}).model_dump(mode="json")
        few = {name: value for name, value in whole.items() if name not in usual or value != usual[name]}
        return few if kind.of(few) == spec else whole  # a default may depend on other fields
    except Refusal:  # a field has no default
        return whole


def _flag(name: str, value: Any) -> list[str]:
    flag = f"--{name.replace('_', '-')}"
    if isinstance(value, bool):
        return [flag if value else f"--no-{flag[2:]}"]
    if isinstance(value, tuple):
        words = [one.typed if isinstance(one, Choice) else str(one) for one in value]
        return [flag, ",".join(words) + ("," if len(words) == 1 and words[0].isdigit() else "")]
    return [flag, value.typed if isinstance(value, Choice) else str(value)]


def read_record(folder: Path) -> dict[str, Any]:
    """The record of a study's folder; nothing where there is none."""
    try:
        return dict(json.loads((folder / RECORD).read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return {}


def open_study(folder: str | Path) -> Study:
    """A finished study from its folder, as running it gave it."""
    from iclgd.spec import read_yaml

    folder = Path(folder)
    record = read_record(folder)
    if "lab" not in record:
        raise Refusal(f"{folder} holds no study: name a folder that iclgd wrote.")
    asked = read_yaml(folder / SPEC, "spec")
    for file in asked.get("plugin") or ():  # the lab itself may come from one
        load_plugin(file)
    spec = LABS[record["lab"]].spec.of(asked)
    store, keys = Store(Path(record["store"])), record["cells"]
    lost = [name for name in keys if not store.has(name)]
    if lost:
        some = f"{len(lost)} of {counted(len(keys), 'cell')} of {folder}"
        raise Refusal(f"{some} {'is' if len(lost) == 1 else 'are'} not in {store.folder}: run its spec again.")
    repeat = repeat_line(record["lab"], spec, folder)
    return Study(record["lab"], spec, spec.cells(), keys, Results(store, keys), repeat)
