"""A study file: parts that are ordinary specs of labs, with shared defaults, grids of fields, and exclusions.

    name: rates                    # of the folder; else the file's own
    defaults: {k: 32, seeds: 5}    # for every part whose lab has the field
    parts:                         # by name, or a list; a file may also be such a list alone
      small:
        lab: compare
        model: smollm2-135m
        grid: {k: [8, 32], dtype: [float32, bfloat16]}     # every combination is a part of its own
        exclude: [{k: 32, dtype: bfloat16}]

What does not fit is refused with the file's line and the field.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count, product
from math import prod
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from iclgd.complaints import complaint, in_a_file, main_error
from iclgd.errors import Refusal
from iclgd.lab import LABS, LabSpec
from iclgd.lines import Lines
from iclgd.registry import load_plugin, suggest
from iclgd.spec import key, unique
from iclgd.study import RECORD

FILE = "study.yaml"  # in a study's folder: the grid with every field said
FILES = (FILE, RECORD, "index.html", "page.md")  # of a study's folder, beside those of its parts
TOP = ("name", "about", "defaults", "parts")
OWN = ("lab", "grid", "exclude")  # of a part, beside the fields of its lab's spec
ONE_MEANING = ("seeds", "k")  # draws and demonstrations, of whatever the help of a lab says more
MOST = 10_000  # parts
LONGEST = 100  # characters of a part's name


@dataclass(frozen=True)
class Part:
    """One study of a grid: a lab and its spec."""

    name: str
    lab: str
    spec: LabSpec

    def plain(self) -> dict[str, Any]:
        return {"name": self.name, "lab": self.lab, "spec": self.spec.model_dump(mode="json")}


@dataclass(frozen=True)
class Grid:
    """A study file that was read: its name, and its parts in order."""

    name: str
    parts: tuple[Part, ...]
    about: str = ""
    notes: tuple[str, ...] = ()  # defaults that do not mean one thing in all parts that they reach

    @property
    def key(self) -> str:
        return key([part.plain() for part in self.parts])

    def text(self) -> str:
        """The file again, every field said, so that it means the same in any folder and version of the defaults."""
        parts = {part.name: {"lab": part.lab, **part.spec.model_dump(mode="json")} for part in self.parts}
        whole = {"name": self.name, **({"about": self.about} if self.about else {}), "parts": parts}
        return yaml.safe_dump(whole, sort_keys=False, allow_unicode=True)


def read_grid(path: Path) -> Grid:
    """The grid of a study file; whatever does not fit is refused with its line."""
    lines = Lines.read(path)
    whole = lines.data if isinstance(lines.data, dict) else {"parts": lines.data}
    at: tuple[Any, ...] = () if isinstance(lines.data, dict) else (None,)  # a bare list has no `parts` to step through
    for name in whole:
        if name not in TOP:
            raise lines.refusal((name,), f'a study file has no "{name}". {suggest(str(name), TOP)}It has {_and(TOP)}.')
    name = whole.get("name") or path.stem
    if not isinstance(name, str) or not re.fullmatch(r"[\w.=,+-]{1,100}", name) or name.startswith("."):
        raise lines.refusal(("name",), f'"{name}" cannot name a folder: use letters, digits, - and _.')
    defaults, given = whole.get("defaults") or {}, whole.get("parts")
    if not isinstance(defaults, dict):
        raise lines.refusal(("defaults",), "defaults must be a mapping of fields to values.")
    if not given or not isinstance(given, dict | list):
        raise lines.refusal(("parts",), "a study needs parts: a mapping of names to specs, or a list of them.")
    for place in given if isinstance(given, dict) else ():
        if not isinstance(place, str):
            raise lines.refusal(("parts", place), f"YAML reads the name of this part as {place}, no text: quote it.")
    about = whole.get("about")
    if about is not None and not isinstance(about, str):
        raise lines.refusal(("about",), f'"about" takes a text, not {about}: write it in quotes.')
    reader = _Reader(lines, at or ("parts",), defaults)
    parts = [
        part for place in (given if isinstance(given, dict) else range(len(given))) for part in reader.parts(place)
    ]
    reader.check_defaults()
    return Grid(name, tuple(_distinct(parts)), about or "", tuple(reader.notes()))


class _Reader:
    """Parts of one file, each with the lines its fields come from."""

    def __init__(self, lines: Lines, root: tuple[Any, ...], defaults: dict[str, Any]):
        self.lines, self.root, self.defaults = lines, tuple(step for step in root if step is not None), defaults
        self.used: set[str] = set()
        self.reached: dict[str, dict[str, dict[str, None]]] = {}  # default → lab → the parts that take it

    def parts(self, place: str | int) -> Iterator[Part]:
        """The part at a place of the file, or as many as its grid has combinations."""
        where = (*self.root, place)
        given = self.lines.at(where)
        if not isinstance(given, dict) or not isinstance(given.get("lab"), str):
            raise self.lines.refusal(where, 'a part must be a mapping with "lab" and the fields of that lab\'s spec.')
        lab, fixed = given["lab"], {name: value for name, value in given.items() if name not in OWN}
        fixed["plugin"] = self._plugins({**self.defaults, **fixed}.get("plugin", ()), where)
        for plugin in fixed["plugin"]:
            load_plugin(plugin)  # the lab itself may come from it
        if lab not in LABS:
            raise self.lines.refusal((*where, "lab"), f'no lab "{lab}". {suggest(lab, LABS)}`iclgd --help` lists all.')
        kind = LABS[lab].spec
        shared = {name: value for name, value in self.defaults.items() if name in kind.model_fields}
        title, seen = place if isinstance(place, str) else lab.replace(" ", "-"), set[str]()
        combinations = self._combinations(where, given, {**shared, **fixed})
        self._take(shared, given, title)
        for fields in combinations:
            spec = self._spec(kind, {**shared, **fixed, **fields}, where)
            part = Part("-".join([title, *(f"{n}={_short(v)}" for n, v in fields.items())]), lab, spec)
            if (one := key(part.plain()["spec"])) in seen:
                raise self.lines.refusal((*where, "grid"), f'this grid makes "{part.name}" twice: leave one out.')
            seen.add(one)
            yield part

    def _plugins(self, given: Any, where: tuple[Any, ...]) -> list[str]:
        named = unique(given)
        if not isinstance(named, tuple) or not all(isinstance(one, str) for one in named):
            said = f'"plugin" takes a list of Python files, not {given}.'
            raise self.lines.refusal(self._place("plugin", where), said)
        return [str(Path(one).resolve()) for one in named]

    def _take(self, shared: Mapping[str, Any], given: Mapping[str, Any], title: str) -> None:
        """Remember which defaults a part's lab has, and which of them the part leaves as they are."""
        self.used |= set(shared)
        own = {*given, *(given.get("grid") or ())}
        for name in shared:
            if name not in own:
                self.reached.setdefault(name, {}).setdefault(given["lab"], {})[title] = None

    def _combinations(
        self, where: tuple[Any, ...], given: dict[str, Any], other: dict[str, Any]
    ) -> list[dict[str, Any]]:
        """What the grid varies: every combination of its values that is not excluded."""
        grid, exclude, fields = (
            given.get("grid") or {},
            given.get("exclude") or [],
            LABS[given["lab"]].spec.model_fields,
        )
        if not isinstance(grid, dict):
            raise self.lines.refusal((*where, "grid"), "a grid must be a mapping of fields to lists of values.")
        for name, values in grid.items():
            if not isinstance(values, list) or not values:
                raise self.lines.refusal((*where, "grid", name), f'"{name}" of a grid needs a list of values.')
            if name in given:
                said = f'"{name}" is said in the part and in its grid: leave one out.'
                raise self.lines.refusal((*where, "grid", name), said)
        many = prod(map(len, grid.values()))
        if many > MOST:
            raise self.lines.refusal(
                (*where, "grid"), f"this grid has {many:,} combinations; at most {MOST:,} are run."
            )
        found = [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]
        if not isinstance(exclude, list):
            raise self.lines.refusal((*where, "exclude"), "exclude must be a list of mappings of fields to values.")
        for i, rule in enumerate(exclude):
            if not isinstance(rule, dict) or not rule:
                raise self.lines.refusal((*where, "exclude", i), "an exclusion must be a mapping of fields to values.")
            for name in rule:
                if name not in fields:
                    said = f'there is no field "{name}". {suggest(str(name), fields)}'.strip()
                    raise self.lines.refusal((*where, "exclude", i), said)
            kept = [one for one in found if not _excluded({**other, **one}, rule)]
            if len(kept) == len(found):
                raise self.lines.refusal((*where, "exclude", i), "this exclusion excludes nothing: leave it out.")
            found = kept
        if not found:
            raise self.lines.refusal((*where, "exclude"), "every combination of the grid is excluded: exclude fewer.")
        return found

    def _spec(self, kind: type[LabSpec], given: dict[str, Any], where: tuple[Any, ...]) -> LabSpec:
        try:
            return kind.model_validate(given)
        except ValidationError as error:
            field, said = next(iter(main_error(error)["loc"]), None), complaint(error, kind)
        except Refusal as refusal:
            said = str(refusal)
            field = next((name for name in re.findall(r"`(\w+)`", said) if name in given), None)
        raise self.lines.refusal(self._place(field, where), in_a_file(said)) from None

    def _place(self, field: Any, where: tuple[Any, ...]) -> tuple[Any, ...]:
        """Where the value of a field stands: in the part, in its grid, or among the defaults."""
        for place in ((*where, "grid", field), (*where, field), ("defaults", field)):
            if self.lines.has(place):
                return place
        return where

    def check_defaults(self) -> None:
        for name in self.defaults:
            if name not in self.used:
                raise self.lines.refusal(("defaults", name), f'no part\'s lab has a field "{name}": leave it out.')

    def notes(self) -> Iterator[str]:
        """A sentence for each default that reaches fields of one name whose help is not the same."""
        for name, labs in self.reached.items():
            told = {lab: _help(lab, name) for lab in labs}
            if len(set(told.values())) > 1 and name not in ONE_MEANING:
                each = [f'"{told[lab]}" in {", ".join(parts)} ({lab})' for lab, parts in labs.items()]
                yield f'the default "{name}" has more than one meaning: {"; ".join(each)}.'


def _distinct(parts: list[Part]) -> Iterator[Part]:
    """A name is a folder: those of one name, or of a file that the study's folder has, are numbered until unused."""
    used, numbers = set(FILES), dict[str, Iterator[int]]()
    for part in parts:
        name = stem = re.sub(r"[^\w.=,+-]", "_", part.name)[:LONGEST].lstrip(".") or "part"
        while name in used:
            end = f"-{next(numbers.setdefault(stem, count(2)))}"
            name = stem[: LONGEST - len(end)] + end
        used.add(name)
        yield Part(name, part.lab, part.spec)


def _excluded(fields: Mapping[str, Any], rule: Mapping[str, Any]) -> bool:
    return all(name in fields and _compared(fields[name]) == _compared(value) for name, value in rule.items())


def _compared(value: Any) -> Any:
    """A value as it is compared: `1e-3`, which YAML takes for a text, and 0.001 are one, in a list too."""
    if isinstance(value, list):
        return [_compared(one) for one in value]
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return value


def _help(lab: str, field: str) -> str:
    """What a field of a lab is, without its default."""
    return (LABS[lab].spec.model_fields[field].description or "").partition("  [default")[0].rstrip(".")


def _short(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ",".join(map(_short, value))
    return str(value).rstrip("/").rpartition("/")[2]


def _and(words: tuple[str, ...]) -> str:
    return ", ".join(words[:-1]) + f" and {words[-1]}"
