"""What `iclgd dual check` shows and leaves: the residual of every head's dual, and what the theorem makes visible."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import combinations
from pathlib import Path

import torch
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from safetensors.torch import save_file
from torch import Tensor

from iclgd.dual.heads import ERROR, HeadAnalysis
from iclgd.report.figures import COLOURS, band, figure, save, styled
from iclgd.report.page import Section, write_page
from iclgd.report.terminal import number, table
from iclgd.tasks.episodes import Episode, write_episode

BY_LAYER = ("layer", "residual", "attention", "share", "most", "cosine", "directions", "rank of ΔW", "same step")
READ = (
    "attention: the weight on the demonstrations; share: ‖step‖ / (‖step‖ + ‖zero-shot part‖), and the head with most "
    "of it; cosine: of step and zero-shot part; directions: how many the demonstrations' contributions span; rank of "
    "ΔW: the same for the update in the dual's kernel space; same step: mean cosine of two queries' steps. Means over "
    "heads and queries."
)
NO_FEATURES = "none for scores that are not k·q (soft caps, biases)"


@dataclass(frozen=True)
class CheckReport:
    """Analyses of one episode's heads, one for each query."""

    title: str
    episode: Episode
    analyses: Sequence[HeadAnalysis]
    sizes: Sequence[int]
    spec: Mapping[str, object]
    command: str

    def mean(self, name: str) -> Float[Tensor, "layer head *rest"]:
        return torch.stack([getattr(analysis, name) for analysis in self.analyses]).nanmean(0)

    @property
    def residual(self) -> Float[Tensor, "layer head"]:
        """The largest over queries."""
        return torch.stack([analysis.residual for analysis in self.analyses]).amax(0)

    @property
    def kernel_residual(self) -> Float[Tensor, "layer head"]:
        """The largest over queries."""
        return torch.stack([analysis.kernel_residual for analysis in self.analyses]).amax(0)

    @property
    def same(self) -> Float[Tensor, "layer head"]:
        """Mean cosine of two queries' steps; nan for one query."""
        pairs = [torch.cosine_similarity(a.steps, b.steps, dim=-1) for a, b in combinations(self.analyses, 2)]
        return torch.stack(pairs).mean(0) if pairs else torch.full_like(self.residual, torch.nan)

    @property
    def contributions(self) -> Float[Tensor, "layer demo"]:
        """Each demonstration's part of a layer's steps: along each head's step, heads weighted by its length."""
        length = torch.stack([analysis.steps.norm(dim=-1) for analysis in self.analyses])[..., None]
        parts = torch.stack([analysis.contributions for analysis in self.analyses])
        return (parts * length).sum((0, 2)) / length.sum((0, 2)).clamp_min(torch.finfo(length.dtype).tiny)

    def by_layer(self) -> list[list[str]]:
        share, columns = self.mean("share"), ("cosine", "span", "rank")
        rows = []
        for layer in range(len(share)):
            most = int(share[layer].argmax())
            row = [str(layer), f"{float(self.residual[layer].max()):.1e}"]
            row += [number(float(self.mean(name)[layer].nanmean()), 2) for name in ("mass", "share")]
            row.append(f"head {most} {number(float(share[layer, most]), 2)}")
            row += [number(float(self.mean(name)[layer].nanmean()), 2) for name in columns]
            rows.append([*row, number(float(self.same[layer].nanmean()), 2)])
        return rows

    def by_size(self) -> list[list[str]]:
        """Random features: relative error of a head's output, by their number."""
        own, moved = (self.mean(name).flatten(1) for name in ("random", "moved"))  # size layer·head
        if not own.isfinite().any():
            return []
        return [
            [str(size), *(number(float(row.nanquantile(q)), 2) for row in rows for q in (0.5, 0.1, 0.9))]
            for size, *rows in zip(self.sizes, own, moved, strict=True)
        ]

    def needed(self) -> str:
        """How many random features it takes, in words; nothing where scores are not k·q."""
        own, moved = (float(self.mean(name).nanquantile(0.5)) for name in ("needed", "needed_moved"))
        if not math.isfinite(own):
            return ""
        return (
            f"for {ERROR:.0%} on the kernel value of the token attended most the median head needs 10^{own:.0f} "
            f"features with its own keys, and 10^{moved:.0f} with the keys moved"
        )

    def kernels(self) -> str:
        own, count = int(self.mean("own").eq(1).sum()), self.residual.numel()
        rest = "" if own == count else f", {count - own} another one (scores that are not k·q, or keys too long)"
        return f"{own} of {count} heads have the kernel exp(k·k') of their own keys{rest}"

    def sink(self) -> str:
        """The part of the first token, which heads attend to whatever it says."""
        length = torch.stack([analysis.steps.norm(dim=-1) for analysis in self.analyses])
        parts = torch.stack([analysis.first for analysis in self.analyses])
        share = (parts * length).sum((0, 2)) / length.sum((0, 2)).clamp_min(torch.finfo(length.dtype).tiny)
        return f"of the first demonstration's part {number(float(share.mean()), 3)} is its first token"

    def by_demo(self) -> list[list[str]]:
        parts, task = self.contributions, self.episode.task
        third = -(-len(parts) // 3)
        return [
            [
                str(index + 1),
                task.labels[demo.label],
                number(float(parts[:, index].mean()), 3),
                number(float(parts[:third, index].mean()), 3),
                number(float(parts[-third:, index].mean()), 3),
                _short(task.prompt(demo.fields)),
            ]
            for index, demo in enumerate(self.episode.demos[: parts.shape[1]])
        ]

    SIZE_HEADER = ("features", "own keys: median error", "10%", "90%", "keys moved: median error", "10%", "90%")
    DEMO_HEADER = ("", "label", "part of the step", "first third of layers", "last third", "demonstration")

    def text(self) -> str:
        verdict = (
            f"largest relative residual of {self.residual.numel()} heads: {float(self.residual.max()):.2g}, "
            f"of their kernels: {float(self.kernel_residual.max()):.2g}"
        )
        sizes = self.by_size()
        random = f"{table(self.SIZE_HEADER, sizes)}\n\n{self.needed()}" if sizes else NO_FEATURES
        return "\n\n".join(
            [
                self.title,
                f"head = zero-shot part + one gradient step · {verdict}\n{self.kernels()}",
                table(BY_LAYER, self.by_layer()),
                f"random features: relative error of a head's output\n\n{random}",
                f"{table(self.DEMO_HEADER, self.by_demo())}\n\n{self.sink()}",
            ]
        )

    @styled
    def heads_figure(self) -> Figure:
        made, grid = figure(columns=4, width=2.5, height=5.2)
        shown = (
            (self.mean("share"), "share of the step", "viridis", (0.0, 1.0)),
            (self.mean("cosine"), "cosine with zero-shot", "RdBu_r", (-1.0, 1.0)),
            (self.mean("span"), "directions", "viridis", (1.0, None)),
            (self.same, "same step for all queries", "viridis", (0.0, 1.0)),
        )
        for axes, (values, title, colours, limits) in zip(grid[0], shown, strict=True):
            _map(made, axes, values, title, colours, limits, "head")
        grid[0, 0].set_ylabel("layer")
        return made

    @styled
    def parts_figure(self) -> Figure:
        shown = bool(self.by_size())
        made, grid = figure(columns=1 + shown, width=4.2, height=4.2)
        parts = self.contributions
        reach = float(parts.abs().max())
        _map(made, grid[0, 0], parts, "part of the layer's step", "RdBu_r", (-reach, reach), "demonstration")
        grid[0, 0].set(ylabel="layer", xticks=range(parts.shape[1]), xticklabels=range(1, parts.shape[1] + 1))
        if not shown:
            return made
        for name, label, colour in (("random", "own keys", COLOURS[0]), ("moved", "keys moved", COLOURS[1])):
            errors = self.mean(name).flatten(1)
            low, middle, high = (errors.nanquantile(q, dim=1).tolist() for q in (0.1, 0.5, 0.9))
            band(grid[0, 1], [float(size) for size in self.sizes], middle, low, high, colour, label)
        grid[0, 1].set(xscale="log", xlabel="random features", title="relative error, median head, 10% to 90%")
        grid[0, 1].set_xticks(list(self.sizes), [str(size) for size in self.sizes])
        grid[0, 1].minorticks_off()
        grid[0, 1].set_ylim(bottom=0)
        grid[0, 1].legend()
        return made

    def write(self, folder: Path) -> None:
        """record.json, analyses.safetensors, episode.json, figures and index.html."""
        tensors = {
            field.name: torch.stack([getattr(analysis, field.name) for analysis in self.analyses]).contiguous()
            for field in fields(HeadAnalysis)
        }
        save_file(tensors, folder / "analyses.safetensors")
        write_episode(self.episode, folder / "episode.json")
        record = {
            "spec": self.spec,
            "episode_sha256": self.episode.sha256(),
            "largest_residual": float(self.residual.max()),
            "largest_kernel_residual": float(self.kernel_residual.max()),
            "axes": {"analyses.safetensors": ["query", "layer", "head"], "random": ["query", "size", "layer", "head"]},
            "sizes": list(self.sizes),
        }
        (folder / "record.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        heads, parts = self.heads_figure(), self.parts_figure()
        save(heads, folder, "heads")
        save(parts, folder, "parts")
        sections = [
            Section(
                "Every head is its zero-shot part plus one gradient step",
                f"The largest relative residual of {self.residual.numel()} heads over {len(self.analyses)} queries is "
                f"{float(self.residual.max()):.2g}; {self.kernels()}.",
                figure=heads,
            ),
            Section("By layer", READ, BY_LAYER, self.by_layer()),
            Section(
                "Demonstrations and random features",
                f"What each demonstration gives to a layer's steps; they sum to 1, and {self.sink()}. "
                f"Random features: {self.needed() or NO_FEATURES}.",
                figure=parts,
            ),
            Section("Demonstrations", "", self.DEMO_HEADER, self.by_demo()),
            *(
                [Section("Random features", "Relative error of a head's output.", self.SIZE_HEADER, self.by_size())]
                if self.by_size()
                else []
            ),
            Section("By head", "Means over queries.", *self._heads()),
        ]
        write_page(folder / "index.html", "Attention as one gradient step", self.title, sections, self.command)

    def _heads(self) -> tuple[list[str], list[list[str]]]:
        names = {"mass": "attention", "share": "share", "cosine": "cosine", "span": "directions", "rank": "rank of ΔW"}
        means, same = {name: self.mean(name) for name in names}, self.same
        rows = [
            [
                f"{layer}.{head}",
                f"{float(self.residual[layer, head]):.1e}",
                *(number(float(values[layer, head]), 2) for values in means.values()),
                number(float(same[layer, head]), 2),
            ]
            for layer in range(same.shape[0])
            for head in range(same.shape[1])
        ]
        return ["layer.head", "residual", *names.values(), "same step"], rows


def _map(
    made: Figure, axes: Axes, values: Tensor, title: str, colours: str, limits: tuple[float, float | None], across: str
) -> None:
    image = axes.imshow(values.numpy(), aspect="auto", cmap=colours, vmin=limits[0], vmax=limits[1], origin="lower")
    axes.set(title=title, xlabel=across)
    made.colorbar(image, ax=axes, location="bottom", pad=0.02)


def _short(text: str, width: int = 48) -> str:
    line = " ".join(text.split())
    return line if len(line) <= width else line[: width - 1] + "…"
