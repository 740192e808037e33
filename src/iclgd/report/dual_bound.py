"""What `iclgd dual bound` shows and leaves: theorem 3.2 against the number of demonstrations."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from matplotlib.figure import Figure

from iclgd.dual.bound import DELTA, QUANTITIES, Bound
from iclgd.report.figures import COLOURS, band, figure, save, styled
from iclgd.report.page import Section, write_page
from iclgd.report.terminal import table
from iclgd.spec import with_nulls

HEADER = ("demonstrations", "tokens N", "split", "Tr K_S", "w = ‖W‖", "ρ", "bound", "measured gap")
TITLES = (
    "the head's own split of scores into keys and queries",
    "keys divided and query multiplied by the split with the smallest bound, head by head",
)


@dataclass(frozen=True)
class BoundReport:
    """Sweeps of one episode, one for each query: number of demonstrations → (own split, best split)."""

    title: str
    sweeps: Sequence[Mapping[int, tuple[Bound, Bound]]]
    spec: Mapping[str, object]
    command: str

    def quantile(self, count: int, split: int, name: str, q: float) -> float:
        """log₁₀, over heads and queries."""
        return float(torch.cat([getattr(s[count][split], name).flatten() for s in self.sweeps]).nanquantile(q))

    def rows(self, split: int) -> list[list[str]]:
        counts = list(self.sweeps[0])
        return [
            [
                str(count),
                f"{self.quantile(count, split, 'tokens', 0.5):.0f}",
                *(power(self.quantile(count, split, name, 0.5)) for name in QUANTITIES),
            ]
            for count in counts
        ]

    def violations(self) -> int:
        return sum(int((b.bound < b.gap).sum()) for s in self.sweeps for pair in s.values() for b in pair)

    def blind(self) -> int:
        """Heads whose window leaves out all demonstrations, or all that are held out, at the largest number of them."""
        return int(self.sweeps[0][max(self.sweeps[0])][0].bound.isnan().sum())

    def text(self) -> str:
        parts = [f"{self.title}\n\nmedians over heads and queries; δ = {DELTA}"]
        parts += [f"{TITLES[split]}\n\n{table(HEADER, self.rows(split))}" for split in (0, 1)]
        parts.append(f"the measured gap is above the bound in {self.violations()} of the cases")
        if self.blind():
            parts.append(f"{self.blind()} heads see no demonstration from where they stand and are left out")
        return "\n\n".join(parts)

    @styled
    def drawing(self) -> Figure:
        made, grid = figure(columns=2, width=4.2)
        counts = list(self.sweeps[0])
        for split, axes in enumerate(grid[0]):
            for name, label, colour in (("bound", "bound", COLOURS[1]), ("gap", "measured gap", COLOURS[0])):
                low, middle, high = ([self.quantile(c, split, name, q) for c in counts] for q in (0.1, 0.5, 0.9))
                band(axes, [float(c) for c in counts], middle, low, high, colour, label)
            axes.set(xscale="log", xlabel="demonstrations", ylabel="log₁₀", title=("own split", "best split")[split])
            axes.set_xticks(counts, [str(c) for c in counts], minor=False)
            axes.minorticks_off()
            axes.legend(loc="upper left")
        return made

    def write(self, folder: Path) -> None:
        values = {
            split: {
                str(count): {name: [getattr(s[count][i], name).tolist() for s in self.sweeps] for name in QUANTITIES}
                for count in self.sweeps[0]
            }
            for i, split in enumerate(("own", "best"))
        }
        record = {"spec": self.spec, "log10": values, "axes": ["split", "demonstrations", "quantity", "query"]}
        (folder / "record.json").write_text(json.dumps(with_nulls(record)) + "\n", encoding="utf-8")
        drawing = self.drawing()
        save(drawing, folder, "bound")
        sections = [
            Section("Bound and gap", "Median head and query, with 10% to 90% of them.", figure=drawing),
            *(Section(TITLES[split].capitalize(), "", HEADER, self.rows(split)) for split in (0, 1)),
        ]
        write_page(folder / "index.html", "The dual's generalisation bound", self.title, sections, self.command)


def power(log10: float) -> str:
    """`48.3`, `330`, `10^37.4`; `n/a` for what is undefined."""
    if not math.isfinite(log10):
        return "n/a"
    return f"{10**log10:.3g}" if abs(log10) < 4 else f"10^{log10:.1f}"
