"""What `iclgd dual modify` shows and leaves: a pretrained model with its attention modified."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from iclgd.metrics.statistics import interval, share_interval
from iclgd.models.traces import Trace
from iclgd.report.page import Section, write_page
from iclgd.report.terminal import number, table, with_interval

HEADER = ("attention", "accuracy", "log p of the right word", "less plain, same queries")


@dataclass(frozen=True)
class ModifyReport:
    """Traces of one episode by modification; the first is the unmodified model."""

    title: str
    traces: Mapping[str, Trace]
    spec: Mapping[str, object]
    command: str

    def rows(self) -> list[list[str]]:
        rows, base = [], None
        for name, trace in self.traces.items():
            right = int(trace.right.sum())
            scores = trace.scores.log_softmax(-1)[range(len(trace.answers)), list(trace.answers)]
            accuracy = with_interval(right / len(scores), *share_interval(right, len(scores)), digits=2)
            row = [name, accuracy, number(float(scores.mean()))]
            base = scores if base is None else base
            less = scores - base
            rows.append([*row, with_interval(float(less.mean()), *interval(less))])
        return rows

    def text(self) -> str:
        return f"{self.title}\n\n{table(HEADER, self.rows())}"

    def write(self, folder: Path) -> None:
        record = {
            "spec": self.spec,
            "scores": {name: trace.scores.tolist() for name, trace in self.traces.items()},
            "answers": list(next(iter(self.traces.values())).answers),
        }
        (folder / "record.json").write_text(json.dumps(record) + "\n", encoding="utf-8")
        text = "The query's tokens are read with modified attention; p is among the label words. 95% intervals."
        sections = [Section("Accuracy", text, HEADER, self.rows())]
        write_page(folder / "index.html", "Modified attention, pretrained", self.title, sections, self.command)
