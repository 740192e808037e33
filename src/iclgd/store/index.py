"""An index of a store: what can be asked of ten thousand cells at once without opening each of them.

The cells are the truth. The index is one DuckDB file beside them that is only ever replaced as a whole, so it is read
by as many as like; one that is missing, damaged or of another version is made anew from the cells. A number of a cell
is the mean of an array over the axes that have no names for their places (queries, layers); places with names are
labels of the number.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from iclgd.errors import Refusal
from iclgd.files import aside
from iclgd.results import Array, Label, Result
from iclgd.spec import canonical
from iclgd.store.cells import ARRAYS, RECORD, Store

VERSION = 1  # of the tables below
FILE = "index.duckdb"
TABLES = """
CREATE TABLE about (version INTEGER);
CREATE TABLE cells (name VARCHAR, stamp VARCHAR, key VARCHAR, lab VARCHAR, spec VARCHAR, numbers VARCHAR,
                    seconds DOUBLE, memory DOUBLE, bytes BIGINT, damage VARCHAR);
CREATE TABLE labels (id INTEGER, labels VARCHAR);
CREATE TABLE numbers (name VARCHAR, id INTEGER, value DOUBLE);
"""
Labels = Mapping[str, Label]


@dataclass(frozen=True)
class Kept:
    """A cell as the index has it; ``damage`` says why it cannot be read."""

    key: str
    lab: str
    spec: dict[str, Any]
    numbers: str  # hash of its arrays
    seconds: float
    memory: float
    bytes: int
    damage: str


class Index:
    """An open index; `opened` brings it up to date first."""

    def __init__(self, connection: Any):
        self._ask = connection

    def cells(self) -> dict[str, Kept]:
        """Every cell of the store by the name of its folder."""
        rows = self._ask.execute(
            "SELECT name, key, lab, spec, numbers, seconds, memory, bytes, damage FROM cells"
        ).fetchall()
        found = {}
        for name, key, lab, spec, sha, seconds, memory, size, damage in rows:
            took, most = (np.nan if number is None else number for number in (seconds, memory))
            found[name] = Kept(key, lab, json.loads(spec), sha, took, most, size, damage)
        return found

    def damaged(self) -> set[str]:
        """Names of the cells that cannot be read."""
        return {name for (name,) in self._ask.execute("SELECT name FROM cells WHERE damage != ''").fetchall()}

    def labels(self) -> dict[int, Labels]:
        """The labels that numbers have, each set once."""
        return {i: json.loads(text) for i, text in self._ask.execute("SELECT id, labels FROM labels").fetchall()}

    def numbers(self, ids: Iterable[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Names of cells, ids of labels and values: every number whose labels are among the ids."""
        wanted = ", ".join(str(int(i)) for i in ids) or "-1"
        found = self._ask.execute(f"SELECT name, id, value FROM numbers WHERE id IN ({wanted})").fetchnumpy()
        return found["name"], found["id"], np.ma.filled(np.ma.masked_invalid(found["value"]), np.nan)


@contextmanager
def opened(store: Store) -> Iterator[Index]:
    """The index of a store as the store is now; where it cannot be written, it is made for this once."""
    duckdb = _duckdb()
    target = store.folder / FILE
    stamps = _stamps(store)
    connection = _current(duckdb, target, stamps)
    if connection is not None:
        with connection:
            yield Index(connection)
        return
    try:
        room = tempfile.TemporaryDirectory(prefix="iclgd-")
    except OSError as error:
        raise Refusal(f"the index of {store.folder} cannot be made: {error.strerror}.") from None
    with room as folder:
        made = Path(folder) / FILE
        try:
            _updated(duckdb, store, target, made, stamps)
        except (duckdb.Error, OSError) as error:
            raise Refusal(f"the index of {store.folder} cannot be made in {folder}: {error}.") from None
        _keep(made, target)
        with duckdb.connect(str(made), read_only=True) as connection:
            yield Index(connection)


def _duckdb() -> Any:
    try:
        import duckdb
    except ImportError:
        raise Refusal("what is asked of many cells at once needs DuckDB: pip install duckdb.") from None
    return duckdb


def _stamps(store: Store) -> dict[str, str]:
    """Every cell's folder with what changes when the cell is written again."""
    found = {name: store.stamp(name) for name in store.names()}
    return {name: stamp for name, stamp in found.items() if stamp}


def _connected(duckdb: Any, target: Path) -> Any:
    """The index on disk, if it is one of this version."""
    if not target.is_file():
        return None
    try:
        connection = duckdb.connect(str(target), read_only=True)
    except (duckdb.Error, OSError):
        return None
    try:
        ours = _layout(connection) == _usual(duckdb)
        if ours and connection.execute("SELECT version FROM about").fetchall() == [(VERSION,)]:
            for table in ("cells", "labels", "numbers"):  # reads every block, and checks it
                connection.execute(f"SELECT bit_xor(hash(t)) FROM {table} t").fetchall()
            return connection
    except duckdb.Error:
        pass
    connection.close()
    return None


def _layout(connection: Any) -> list[tuple[str, str, str]]:
    """Tables, columns and their types."""
    asked = "SELECT table_name, column_name, data_type FROM information_schema.columns ORDER BY ALL"
    found: list[tuple[str, str, str]] = connection.execute(asked).fetchall()
    return found


def _usual(duckdb: Any) -> list[tuple[str, str, str]]:
    with duckdb.connect() as connection:
        connection.execute(TABLES)
        return _layout(connection)


def _current(duckdb: Any, target: Path, stamps: Mapping[str, str]) -> Any:
    connection = _connected(duckdb, target)
    if connection is not None and dict(connection.execute("SELECT name, stamp FROM cells").fetchall()) != stamps:
        connection.close()
        return None
    return connection


def _updated(duckdb: Any, store: Store, old: Path, new: Path, stamps: Mapping[str, str]) -> None:
    """A new index: a copy of the old one with what was added, changed or removed since, or all of it."""
    known: dict[str, str] = {}
    if (connection := _connected(duckdb, old)) is not None:
        known = dict(connection.execute("SELECT name, stamp FROM cells").fetchall())
        connection.close()
        shutil.copyfile(old, new)
    fresh = [name for name in stamps if known.get(name) != stamps[name]]
    with duckdb.connect(str(new)) as connection:
        if not known and not _has_tables(connection):
            connection.execute(TABLES)
            connection.execute("INSERT INTO about VALUES (?)", [VERSION])
        _forget(connection, [name for name in known if known[name] != stamps.get(name)])
        _add(connection, store, {name: stamps[name] for name in fresh})


def _has_tables(connection: Any) -> bool:
    return bool(connection.execute("SELECT count(*) FROM information_schema.tables").fetchone()[0])


def _forget(connection: Any, names: Sequence[str]) -> None:
    if names:
        import pandas

        connection.register("gone", pandas.DataFrame({"name": list(names)}))
        for table in ("cells", "numbers"):
            connection.execute(f"DELETE FROM {table} WHERE name IN (SELECT name FROM gone)")
        connection.unregister("gone")


def _add(connection: Any, store: Store, stamps: Mapping[str, str]) -> None:
    import pandas

    ids = {text: i for i, text in connection.execute("SELECT id, labels FROM labels").fetchall()}
    before, cells, numbers = len(ids), [], []
    for name, stamp in stamps.items():
        cell, found = _read(store, name)
        damage = cell[-1]
        cells.append((name, "" if damage else stamp, *cell))  # a damaged one is looked at again each time
        for labels, value in found:
            numbers.append((name, ids.setdefault(canonical(dict(labels)), len(ids)), value))
    rows = {
        "cells": pandas.DataFrame(
            cells, columns=["name", "stamp", "key", "lab", "spec", "numbers", "seconds", "memory", "bytes", "damage"]
        ),
        "labels": pandas.DataFrame(list(ids.items())[before:], columns=["labels", "id"])[["id", "labels"]],
        "numbers": pandas.DataFrame(numbers, columns=["name", "id", "value"]),
    }
    for table, frame in rows.items():
        if len(frame):
            connection.register("new", frame)
            connection.execute(f"INSERT INTO {table} SELECT * FROM new")
            connection.unregister("new")


def _read(store: Store, name: str) -> tuple[tuple[Any, ...], list[tuple[Labels, float]]]:
    """A cell's row, and its numbers; of one that cannot be read, why."""
    try:
        record = store.record_at(name)
        found = list(summaries(store.result(record)))
    except Refusal as refusal:
        return ("", "", "{}", "", np.nan, np.nan, 0, str(refusal)), []
    told = record["provenance"]
    size = sum((store.path(name) / file).stat().st_size for file in (RECORD, ARRAYS))
    seconds, memory = float(told.get("seconds", np.nan)), float(told.get("memory", np.nan))
    row = (record["key"], record["lab"], canonical(record["spec"]), record["arrays_sha256"], seconds, memory, size, "")
    return row, found


def summaries(result: Result) -> Iterator[tuple[Labels, float]]:
    """The numbers of a cell: facts that are numbers, and means of its arrays at each place that has a name."""
    for name, value in result.facts.items():
        if isinstance(value, int | float):
            yield {"fact": name}, float(value)
    for one in result.arrays:
        if np.issubdtype(one.values.dtype, np.number) or one.values.dtype == bool:
            yield from _means(one)


def _means(one: Array) -> Iterator[tuple[Labels, float]]:
    named = [axis for axis in one.axes if axis in one.coordinates]
    for places in product(*(one.coordinates[axis] for axis in named)):
        part = one.at(**dict(zip(named, places, strict=True)))
        values = np.asarray(part.values, dtype=float)
        known = values[np.isfinite(values)]
        yield part.labels, float(known.mean()) if known.size else float("nan")


def _keep(made: Path, target: Path) -> None:
    """Put the new index in the old one's place; a store that cannot be written has none, and that costs only time."""
    try:
        with aside(target) as part:
            shutil.copyfile(made, part)
            if target.is_dir():  # an empty one goes; what somebody put into one is not ours to remove
                target.rmdir()
            os.replace(part, target)
    except (Refusal, OSError):
        pass
