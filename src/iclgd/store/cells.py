"""Cells on disk: a folder named by the cell's key, with a record and the arrays, written aside and renamed."""

import json
import os
import platform
import sys
import time
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from iclgd.errors import Refusal
from iclgd.files import aside, file_sha256, synced
from iclgd.lab import Cell
from iclgd.results import Array, Result
from iclgd.spec import finite

FORMAT = 1
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
        return self.folder / key[:32]

    def has(self, key: str) -> bool:
        return (self.path(key) / "record.json").is_file()

    def write(self, key: str, cell: Cell, identity: Any, result: Result, provenance: dict[str, Any]) -> None:
        """Everything that was found; beside it, what does not change the numbers: machine, versions, time."""
        from safetensors.numpy import save_file

        with aside(self.path(key)) as folder:
            folder.mkdir()
            arrays = folder / "arrays.safetensors"
            save_file({str(i): _contiguous(a.values) for i, a in enumerate(result.arrays)}, arrays)
            record = {
                "format": FORMAT,
                "key": key,
                "lab": cell.lab,
                "spec": cell.spec.model_dump(mode="json"),
                "identity": identity,
                "labels": dict(cell.labels),
                "facts": finite(dict(result.facts)),
                "arrays": [
                    {"labels": dict(a.labels), "axes": a.axes, "coordinates": dict(a.coordinates)}
                    for a in result.arrays
                ],
                "arrays_sha256": file_sha256(arrays),
                "provenance": provenance,
            }
            text = json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False)
            (folder / "record.json").write_text(text + "\n", encoding="utf-8")
            synced(folder)

    def record(self, key: str) -> dict[str, Any]:
        """The record of a cell that was written before; refused if it is not the one its name says."""
        folder = self.path(key)
        try:
            record = json.loads((folder / "record.json").read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise self._unreadable(key, error) from None
        if record.get("key") != key or record.get("format") != FORMAT:
            raise Refusal(f"the cell {folder} is not the one its name says: remove that folder and run again.")
        return record

    def read(self, key: str) -> Result:
        from safetensors import SafetensorError
        from safetensors.numpy import load_file

        record, path = self.record(key), self.path(key) / "arrays.safetensors"
        try:
            values = load_file(path)
            if file_sha256(path) != record["arrays_sha256"]:
                raise ValueError("its numbers were altered")
        except (OSError, ValueError, SafetensorError) as error:
            raise self._unreadable(key, error) from None
        arrays = [
            Array(a["labels"], tuple(a["axes"]), values[str(i)], {n: tuple(c) for n, c in a["coordinates"].items()})
            for i, a in enumerate(record["arrays"])
        ]
        return Result(record["facts"], arrays)

    def _unreadable(self, key: str, error: Exception) -> Refusal:
        return Refusal(f"the cell {self.path(key)} cannot be read ({error}): remove that folder and run again.")

    def remove(self, key: str) -> None:
        import shutil

        shutil.rmtree(self.path(key), ignore_errors=True)


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
        "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "seconds": round(seconds, 2),
    }


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
