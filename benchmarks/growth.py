"""How the cost of a comparison grows: `python benchmarks/growth.py`, one thing changed at a time, in one run.

gd and lcgd on an embedded task with the nulls that need no training; every row is run anew, in a store of its own. The
first row is what the others are divided by.
"""

import argparse
import platform
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from record import Record

import iclgd

BASE: dict[str, Any] = {
    "task": "sentiment",
    "k": 8,
    "queries": 40,
    "seeds": 1,
    "init": "trained",
    "nulls": "random,other-query",
    "contrast": False,
    "floor": False,
}
CHANGES: dict[str, dict[str, Any]] = {
    "as it is": {},
    "4 × demonstrations": {"k": 32},
    "4 × queries": {"queries": 160},
    "4 × draws": {"seeds": 4},
    "4 × rates": {"rates": "1e-4,1e-3,1e-2,1e-1"},
    "every null and the contrast": {"nulls": "default", "contrast": True},
    "noise floor": {"floor": True},
    "a model of twice the weights": {"model": "gemma3-270m"},
}


def seconds(asked: dict[str, Any]) -> tuple[float, int]:
    """Of one whole comparison, with its model loaded and its page left out; and how many cells it has."""
    with tempfile.TemporaryDirectory() as store:
        began = time.perf_counter()
        study = iclgd.compare(store=store, **asked)
        return time.perf_counter() - began, len(study.cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="JSON file for the table")
    asked = parser.parse_args()
    where = torch.cuda.get_device_name() if torch.cuda.is_available() else f"{torch.get_num_threads()} threads"
    seconds({**BASE, "queries": 2})  # what is loaded once
    rows, first = [], None
    for name, change in CHANGES.items():
        if "model" in change:
            seconds({**BASE, **change, "queries": 2})
        taken, cells = seconds({**BASE, **change})
        first = first or taken
        rows.append([name, str(cells), f"{taken:.1f}", f"{taken / first:.1f}"])
    record = Record(
        "Growth", f"smollm2-135m on {platform.machine()}, {where} · sentiment · k = 8 · 40 queries · gd, lcgd"
    )
    record.add("How cost grows", ["", "cells", "seconds", "times"], rows)
    record.write(asked.out)


if __name__ == "__main__":
    main()
