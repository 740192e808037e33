"""What a benchmark found: printed as tables, and kept as a record that docs/fill.py reads.

docs/results/data/bench-cpu.json is what `make bench BENCH="--out docs/results/data/bench-cpu.json"` wrote.
"""

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from iclgd.report.page import Table

FOLDERS = {
    "--data": "DIR",
    "--store": "FOLDER",
    "--tokenizer": "TOKENIZER",
}  # somebody's own: what a command says instead


@dataclass
class Record:
    """Tables of one run on one machine; ``what`` names the machine and what was run on it."""

    title: str
    what: str = ""
    sections: list[dict[str, Any]] = field(default_factory=list)

    def add(self, title: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """A table, shown at once."""
        table = Table(list(header), [list(row) for row in rows])
        self.sections.append({"title": title, "table": {"header": table.header, "rows": table.rows}})
        print(f"\n{title}\n\n{table.markdown()}\n", flush=True)

    def write(self, file: Path | None) -> None:
        if file is None:
            return
        asked = [word for word in sys.argv[1:] if word != str(file) and word not in ("--out", f"--out={file}")]
        asked = [FOLDERS.get(before, word) for before, word in zip(["", *asked], asked, strict=False)]
        command = " ".join(["python", f"benchmarks/{Path(sys.argv[0]).name}", *asked])
        found = {"title": self.title, "what": self.what, "answer": "", "command": command, "figures": {}}
        file.write_text(json.dumps({**found, "sections": self.sections}, ensure_ascii=False, indent=1) + "\n", "utf-8")
