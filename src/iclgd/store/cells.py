"""Cells on disk: a folder named by the cell's key, with a record and the arrays, written aside and renamed."""

import hashlib
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from iclgd.errors import Refusal
from iclgd.files import aside, building, file_sha256, synced
from iclgd.lab import Cell
from iclgd.results import Array, Result
from iclgd.spec import finite
from iclgd.spec import key as hash_of
from iclgd.system import exchange
from iclgd.system import peak_memory as main_memory

FORMAT = 2
# A record of an older format becomes the next one's when it is read; the files stay as they are.
MIGRATIONS: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {
    1: lambda record: record | {"format": 2},  # had no hash of the record itself
}
RECORD, ARRAYS = "record.json", "arrays.safetensors"
NAME = 32  # characters of the key that name a cell's folder
PACKAGES = ("iclgd", "torch", "transformers", "numpy", "scipy")
DEFAULT = Path("runs") / "cells"


def default_store() -> Path:
    """Where cells are kept when nobody says otherwise: ICLGD_STORE, or runs/cells here."""
    named = os.environ.get("ICLGD_STORE")
    return Path(named) if named else DEFAULT


@dataclass(frozen=True)
class Store:
    """The cells below one folder. What is there is whole: a cell appears with its last byte."""

    folder: Path

    def path(self, key: str) -> Path:
        return self.folder / key[:NAME]

    def has(self, key: str) -> bool:
        return (self.path(key) / RECORD).is_file()

    def stamp(self, key: str) -> str:
        """What changes when the cell is written again; empty where there is none."""
        try:
            stat = os.stat(self.path(key) / RECORD)
        except OSError:
            return ""
        return f"{stat.st_ino} {stat.st_mtime_ns} {stat.st_size}"

    def names(self) -> list[str]:
        """The folders of all cells."""
        try:
            with os.scandir(self.folder) as found:
                return sorted(entry.name for entry in found if is_name(entry.name))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise Refusal(f"cannot read {self.folder}: {error.strerror}; name the folder of a store.") from None

    def write(
        self, key: str, cell: Cell, identity: Any, result: Result, provenance: dict[str, Any], anew: bool = False
    ) -> None:
        """Everything that was found; beside it, what does not change the numbers: machine, versions, time.

        A cell that is there stays; written ``anew`` it is there, the old or the new one, at any moment.
        """
        from safetensors.numpy import save

        numbers = save({str(i): _contiguous(a.values) for i, a in enumerate(result.arrays)})
        record = {
            "format": FORMAT,
            "key": key,
            "lab": cell.lab,
            "spec": cell.spec.model_dump(mode="json"),
            "identity": identity,
            "labels": dict(cell.labels),
            "facts": finite(dict(result.facts)),
            "arrays": [
                {"labels": dict(a.labels), "axes": a.axes, "coordinates": dict(a.coordinates)} for a in result.arrays
            ],
            "arrays_sha256": hashlib.sha256(numbers).hexdigest(),
            "provenance": provenance,
        }
        record["sha256"] = hash_of(json.loads(_text(record)))
        if self.path(key).exists() and not self.has(key):  # what is left of a cell that somebody took apart
            self.remove(key)
        with aside(self.path(key)) as folder:
            folder.mkdir()
            (folder / ARRAYS).write_bytes(numbers)
            (folder / RECORD).write_text(_text(record) + "\n", encoding="utf-8")
            synced(folder)
            if anew and self.path(key).exists():
                exchange(folder, self.path(key))

    def record(self, key: str) -> dict[str, Any]:
        """The record of a cell that was written before; refused if it is not the one its name says."""
        record = self.record_at(key)
        if record["key"] != key:
            raise self._unreadable(key, "it is not the one its name says")
        return record

    def record_at(self, name: str) -> dict[str, Any]:
        """The record in the folder of that name, checked against its own hash and brought to the present format."""
        try:
            record = json.loads((self.path(name) / RECORD).read_text(encoding="utf-8"))
            found = record["format"]
            if found not in (*MIGRATIONS, FORMAT):
                raise ValueError(f"its format is {found}, which this version of iclgd does not know")
            if found > 1 and record.pop("sha256") != hash_of(record):
                raise ValueError("its record was altered")
            if record["key"][:NAME] != name[:NAME]:
                raise ValueError("it is not the one its name says")
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise self._unreadable(name, error) from None
        while record["format"] < FORMAT:
            record = MIGRATIONS[record["format"]](record)
        return record

    def read(self, key: str) -> Result:
        while True:
            stamp = self.stamp(key)
            try:
                return self.result(self.record(key))
            except Refusal:
                if self.stamp(key) == stamp:  # else it was written anew between record and numbers
                    raise

    def result(self, record: dict[str, Any]) -> Result:
        """What the cell of a record found, its arrays checked against their hash."""
        from safetensors import SafetensorError
        from safetensors.numpy import load

        try:
            whole = (self.path(record["key"]) / ARRAYS).read_bytes()
            if hashlib.sha256(whole).hexdigest() != record["arrays_sha256"]:
                raise ValueError("its numbers were altered")
            values = load(whole)
        except (OSError, ValueError, SafetensorError) as error:
            raise self._unreadable(record["key"], error) from None
        arrays = [
            Array(a["labels"], tuple(a["axes"]), values[str(i)], {n: tuple(c) for n, c in a["coordinates"].items()})
            for i, a in enumerate(record["arrays"])
        ]
        return Result(record["facts"], arrays)

    def check(self, name: str) -> None:
        """Refuse a cell whose record or numbers are not what was written."""
        record, path = self.record_at(name), self.path(name) / ARRAYS
        try:
            if file_sha256(path) != record["arrays_sha256"]:
                raise ValueError("its numbers were altered")
        except (OSError, ValueError) as error:
            raise self._unreadable(name, error) from None

    def _unreadable(self, key: str, why: object) -> Refusal:
        return Refusal(f"the cell {self.path(key)} cannot be read ({why}): remove that folder and run again.")

    def remove(self, key: str) -> None:
        """The cell goes at once, as others see it."""
        path = self.path(key)
        if path.exists():
            with tempfile.TemporaryDirectory(prefix=building(), dir=self.folder, ignore_cleanup_errors=True) as away:
                with suppress(FileNotFoundError):  # another process was faster
                    os.replace(path, Path(away) / path.name)


def is_name(text: str) -> bool:
    """Whether a folder of that name may be a cell's."""
    return len(text) == NAME and not set(text) - set("0123456789abcdef")


def _text(record: dict[str, Any]) -> str:
    return json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False)


def _contiguous(values: Any) -> Any:
    import numpy as np

    return np.ascontiguousarray(values).reshape(values.shape)


def provenance(seconds: float, device: str) -> dict[str, Any]:
    """Where and when, and with what: nothing here may change a number beyond its last bits."""
    torch = sys.modules.get("torch")  # a lab may do without it, and its workers start at once

    return {
        "versions": {name: _version(name) for name in PACKAGES},
        "python": sys.version.split()[0],
        "machine": platform.machine(),
        "system": platform.system(),
        "device": device,
        "threads": torch.get_num_threads() if torch else 1,  # sums on a CPU depend on it in their last bits
        "memory": peak_memory(device),
        "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "seconds": round(seconds, 2),
    }


def peak_memory(device: str) -> int:
    """Bytes that this process had at most since it began: of the device it computed on, else of the machine."""
    torch = sys.modules.get("torch")
    if torch and device.startswith("cuda") and torch.cuda.is_available():
        return int(torch.cuda.max_memory_allocated(device))
    return main_memory()


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
