"""What `iclgd trace` shows and leaves: the table, the page, the arrays."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure
from safetensors.torch import save_file

from iclgd.metrics.statistics import interval, share_interval
from iclgd.metrics.updates import update_size
from iclgd.models.traces import Trace
from iclgd.prompts import POSITIONS, Prompts
from iclgd.report.figures import COLOURS, band, figure, save, styled
from iclgd.report.page import Section, write_page
from iclgd.report.terminal import number, table, with_interval
from iclgd.tasks.episodes import Episode, write_episode

WHERE = {"prompt": "at the prompt's last token", "label": "at the class-0 label word after the prompt"}


@dataclass(frozen=True)
class TraceReport:
    """Two traces of one episode and everything needed to say what they are."""

    title: str
    episode: Episode
    prompts: Prompts
    zero: Trace
    icl: Trace
    spec: Mapping[str, object]
    command: str

    def learners(self) -> tuple[list[str], list[list[str]]]:
        """Accuracy and mean label probabilities, a row for each learner."""
        header = ["", "accuracy", *(f"p({word})" for word in self.episode.task.labels)]
        rows = []
        for name, trace in (("zero-shot", self.zero), ("icl", self.icl)):
            right, total = int(trace.right.sum()), len(trace.right)
            means = trace.scores.softmax(-1).mean(0).tolist()
            accuracy = with_interval(right / total, *share_interval(right, total), digits=2)
            rows.append([name, accuracy, *(number(p, 2) for p in means)])
        return header, rows

    def sizes(self, position: int) -> list[tuple[float, float, float]]:
        """Mean update size and its interval over queries, layer by layer."""
        sizes = update_size(self.zero.outputs[:, :, position], self.icl.outputs[:, :, position])
        return [(float(column.nanmean()), *interval(column)) for column in sizes.T]

    def layers(self) -> tuple[list[str], list[list[str]]]:
        columns = [self.sizes(position) for position in range(len(POSITIONS))]
        rows = [
            [str(layer), *(with_interval(*column[layer], digits=2) for column in columns)]
            for layer in range(len(columns[0]))
        ]
        return ["layer", *WHERE.values()], rows

    def text(self) -> str:
        update = "what reading changes: size of the update of the attention output, ‖h_icl − h_zero‖ / ‖h_zero‖"
        return f"{self.title}\n\n{table(*self.learners())}\n\n{update}\n\n{table(*self.layers())}"

    @styled
    def drawing(self) -> Figure:
        made, axes = figure(width=6.0)
        for position, name in enumerate(POSITIONS):
            middle, low, high = zip(*self.sizes(position), strict=True)
            band(axes[0, 0], range(len(middle)), middle, low, high, COLOURS[position], WHERE[name])
        axes[0, 0].set(xlabel="layer", ylabel="‖h_icl − h_zero‖ / ‖h_zero‖", title="Size of the update by layer")
        axes[0, 0].set_ylim(bottom=0)
        axes[0, 0].legend()
        return made

    def write(self, folder: Path) -> None:
        """record.json, trace.safetensors, episode.json, figures and index.html."""
        tensors = {
            f"{name}.{part}": getattr(trace, part).contiguous()
            for name, trace in (("zero-shot", self.zero), ("icl", self.icl))
            for part in ("scores", "outputs", "logits", "keys", "context", "vectors")
        }
        save_file(tensors, folder / "trace.safetensors", metadata={"positions": ",".join(POSITIONS)})
        write_episode(self.episode, folder / "episode.json")
        record = {
            "spec": self.spec,
            "episode_sha256": self.episode.sha256(),
            "demonstrations": len(self.prompts.demos),
            "demonstrations_dropped": len(self.prompts.dropped),
            "context_tokens": len(self.prompts.context),
            "accuracy": {"zero-shot": self.zero.accuracy, "icl": self.icl.accuracy},
            "update_size": {name: [list(size) for size in self.sizes(i)] for i, name in enumerate(POSITIONS)},
            "axes": {
                "scores": ["query", "label"],
                "outputs": ["query", "layer", "position", "dim"],
                "logits": ["query", "layer", "position", "head", "key"],
                "keys": ["query", "position", "key"],
                "context": ["query", "layer", "position", "context token"],
                "vectors": ["query", "layer", "position", "query dim"],
            },
        }
        (folder / "record.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        drawing = self.drawing()
        save(drawing, folder, "update-size")
        write_page(
            folder / "index.html",
            "What reading demonstrations changes",
            self.title,
            self._sections(drawing),
            self.command,
        )

    def _sections(self, drawing: Figure) -> list[Section]:
        task, header = self.episode.task, ["query", "right answer", "zero-shot", "icl"]
        zero, icl = self.zero.scores.argmax(-1).tolist(), self.icl.scores.argmax(-1).tolist()
        asked = [
            [task.prompt(query.fields), task.labels[query.label], task.labels[z], task.labels[i]]
            for query, z, i in zip(self.episode.queries, zero, icl, strict=True)
        ]
        return [
            Section("Accuracy", "95% intervals; label probabilities are means over queries.", *self.learners()),
            Section(
                "Updates",
                "How far each attention layer's output moves when the demonstrations are read, relative to its length "
                "without them; means over queries with 95% bootstrap intervals.",
                figure=drawing,
            ),
            Section("Queries", f"The first {min(20, len(asked))} of {len(asked)}.", header, asked[:20]),
        ]
