"""The plain engine: one cell after another, each model loaded once."""

import time
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path

from iclgd.models.load import load_subject
from iclgd.run import Report, run_cell
from iclgd.spec import CellSpec
from iclgd.store.cells import Store

Announce = Callable[[str], None]


def run_cells(
    cells: Sequence[CellSpec], store: Store, data: Path | None, announce: Announce, report: Report | None = None
) -> int:
    """Run the cells that the store does not have yet, and say how many that were."""
    missing = [cell for cell in cells if not store.has(cell)]
    for model, group in groupby(missing, key=lambda cell: cell.model):
        announce(f"loading {model.name}" + ("" if model.init == "trained" else f" ({model.init})"))
        subject = load_subject(model)
        for cell in group:
            announce(f"{cell.task} · seed {cell.episode.seed} · {model.init}")
            start = time.monotonic()
            result = run_cell(subject, cell, data, report)
            store.write(cell, result, time.monotonic() - start, str(subject.device))
    return len(missing)
