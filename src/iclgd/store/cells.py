"""Cells on disk: a folder named by the key of its spec, with a record and the arrays, written aside and renamed."""

import json
import platform
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from iclgd.errors import Refusal
from iclgd.files import aside
from iclgd.run import CellResult
from iclgd.spec import CellSpec, canonical

PACKAGES = ("iclgd", "torch", "transformers", "numpy", "scipy")


@dataclass(frozen=True)
class Store:
    """The cells below one folder; ``opening`` is called before anything is written.

    A ``fresh`` store has nothing to begin with, whatever the folder holds: ``opening`` will replace it.
    """

    folder: Path
    opening: Callable[[], None] = lambda: None
    fresh: bool = False

    def path(self, cell: CellSpec) -> Path:
        return self.folder / cell.key()[:16]

    def has(self, cell: CellSpec) -> bool:
        return not self.fresh and self.path(cell).is_dir()

    def write(self, cell: CellSpec, result: CellResult, seconds: float, device: str) -> None:
        """Everything that was found; beside it, what does not change the numbers: machine, versions, time."""
        record = {
            "spec": cell.model_dump(mode="json"),
            "facts": result.facts,
            "provenance": {
                "versions": {name: version(name) for name in PACKAGES},
                "python": sys.version.split()[0],
                "machine": platform.machine(),
                "device": device,
                "threads": torch.get_num_threads(),  # sums on a CPU depend on it in their last bits
                "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                "seconds": round(seconds, 1),
            },
        }
        self.opening()
        with aside(self.path(cell)) as folder:
            folder.mkdir()
            (folder / "record.json").write_text(
                json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
            )
            save_file(
                {name: array.contiguous() for name, array in result.arrays.items()}, folder / "arrays.safetensors"
            )

    def read(self, cell: CellSpec) -> CellResult:
        """A cell that was written before; refused if it is not the one its name says."""
        folder = self.path(cell)
        try:
            record = json.loads((folder / "record.json").read_text(encoding="utf-8"))
            arrays = load_file(folder / "arrays.safetensors")
        except (OSError, ValueError, SafetensorError) as error:
            raise Refusal(f"the cell {folder} cannot be read ({error}): remove that folder and run again.") from None
        if canonical(record["spec"]) != cell.canonical():
            raise Refusal(f"the cell {folder} holds another spec than its name says: remove that folder and run again.")
        return CellResult(record["facts"], arrays)
