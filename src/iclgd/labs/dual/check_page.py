"""The page of `dual check`: the residual of every head's dual, and what the theorem makes visible."""

import json
import math
from collections.abc import Iterator
from functools import cached_property
from itertools import combinations
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from iclgd.labs.dual import check_charts
from iclgd.labs.dual.check_figures import heads_figure, parts_figure
from iclgd.labs.dual.heads import ERROR, TOLERANCE
from iclgd.labs.dual.spec import CheckSpec
from iclgd.report.charts import OWN, Looks, Series, lines
from iclgd.report.found import Found
from iclgd.report.numbers import Number, Size, number, significant
from iclgd.report.page import Drawing, Entry, Page, Section, Table
from iclgd.study import Study

# What a quantity is called and what it says; one that is not here is shown by its own name.
NAMES = {
    "mass": "attention",
    "share": "share",
    "cosine": "cosine",
    "span": "directions",
    "rank": "rank of ΔW",
    "labels": "label words",
}
SAYS = (
    "attention: the weight on the demonstrations; share: ‖step‖ / (‖step‖ + ‖zero-shot part‖); cosine: of step and "
    "zero-shot part; directions: how many the demonstrations' contributions span (participation ratio); rank of ΔW: "
    "the same for the update in the dual's kernel space; label words: what they give of the step; flipped "
    "cosine, change: of the step with every label wrong and the step, and ‖difference‖ / ‖step‖; same step: mean "
    "cosine of two queries' steps. Means over heads and queries."
)
APART = ("own", "first", "needed", "needed_moved")  # said in sentences instead
TOLERANCES = {"float64": TOLERANCE, "float32": 1e-4}  # of `residual`, by the arithmetic of the model
LINES = (
    "By layer: the step's share of a head, the part of it that label words give, its cosine with the step of wrong "
    "labels, and with another query's step. Means over heads and queries."
)
NO_FEATURES = "none for scores that are not k·q (soft caps, biases)"


class Heads:
    """The quantities of all queries' heads: [query, layer, head, …] by name."""

    def __init__(self, study: Study):
        assert isinstance(study.spec, CheckSpec)
        self.spec = study.spec
        found = [(cell.labels["query"], result) for cell, result in study.found() if result.arrays]
        queries, (_, first) = [query for query, _ in found], found[0]
        self.values: dict[str, Tensor] = {
            str(one.labels["quantity"]): torch.from_numpy(
                study.stack("query", queries, quantity=one.labels["quantity"])
            )
            for one in first.arrays
        }
        self.axes = {str(one.labels["quantity"]): one.axes for one in first.arrays}
        self.sizes = next((list(one.coordinates["size"]) for one in first.arrays if "size" in one.axes), [])
        self.facts: dict[str, Any] = dict(first.facts)
        self.episode = {
            **first.facts["episode"],
            "queries": [query for _, result in found for query in result.facts["episode"]["queries"]],
        }

    def mean(self, name: str) -> Float[Tensor, "..."]:
        return self.values[name].nanmean(0)

    @property
    def queries(self) -> int:
        return len(self.values["residual"])

    @cached_property
    def residuals(self) -> dict[str, Float[Tensor, "layer head"]]:
        """The largest over queries."""
        return {name: value.amax(0) for name, value in self.values.items() if name.endswith("residual")}

    def tolerance(self, name: str) -> float:
        """How large a residual may be; the kernel's own is computed in float64 whatever the model's arithmetic."""
        return TOLERANCE if name == "kernel_residual" else TOLERANCES[self.spec.dtype]

    @property
    def holding(self) -> int:
        """Heads of which every residual is as small as the arithmetic allows."""
        small = [value <= self.tolerance(name) for name, value in self.residuals.items()]
        return int(torch.stack(small).all(0).sum())

    @cached_property
    def same(self) -> Float[Tensor, "layer head"]:
        """Mean cosine of two queries' steps; nan for one query."""
        pairs = [torch.cosine_similarity(a, b, dim=-1) for a, b in combinations(self.values["steps"], 2)]
        return torch.stack(pairs).mean(0) if pairs else torch.full_like(self.values["residual"][0], torch.nan)

    @cached_property
    def shown(self) -> dict[str, Float[Tensor, "layer head"]]:
        """Every quantity that is one number a head, mean over queries, as it is called on the page."""
        plain = [n for n, axes in self.axes.items() if axes == ("layer", "head") and n not in (*self.residuals, *APART)]
        return {NAMES.get(name, name.replace("_", " ")): self.mean(name) for name in plain} | {"same step": self.same}

    def weighted(self, name: str) -> Float[Tensor, "layer ..."]:
        """A part of the steps, layer by layer: along each head's step, heads and queries weighted by its length."""
        length, parts = self.values["steps"].norm(dim=-1), self.values[name]
        length = length[..., None] if parts.ndim > length.ndim else length
        return (parts * length).sum((0, 2)) / length.sum((0, 2)).clamp_min(torch.finfo(length.dtype).tiny)


def page(study: Study) -> Page:
    heads = Heads(study)
    subtitle = heads.spec.what(heads.facts, heads.queries)
    parts, sizes = heads.weighted("contributions"), features(heads)
    given = f"What each demonstration gives to a layer's steps; the parts sum to 1, and {sink(heads)}."
    needs = f"Relative error of a head's output; {needed(heads) or NO_FEATURES}."
    step, shares = (
        Drawing("heads", lambda: heads_figure(heads.shown)),
        Drawing("parts", lambda: parts_figure(parts, sizes)),
    )
    sections = [
        Section("The step", SAYS, summary(heads), step, True, check_charts.heads(heads.shown)),
        Section("Demonstrations", given, by_demo(heads), shares, True, check_charts.parts(parts)),
        Section("By layer", f"{kernels(heads)}. {SAYS}", by_layer(heads)),
        Section("Random features", needs, by_size(heads), widget=check_charts.errors(sizes)),
        Section("By head", "Means over queries; the residuals are the largest.", by_head(heads)),
    ]
    drawn = lines(lambda: list(by_layers(heads)), range(len(heads.same)), Looks(colour="name", x="layer"), LINES)
    files = {"episode.json": json.dumps(heads.episode, indent=1, ensure_ascii=False) + "\n"}
    title, told = "Attention as one gradient step", answer(heads)
    return Page(title, subtitle, told, sections, files=files, picture=drawn, found=found(heads))


def by_layers(heads: Heads) -> Iterator[Series]:
    """What the answer says of the step, layer by layer."""
    parts = {name: heads.shown[name].nanmean(1) for name in ("share", "flipped cosine", "same step")}
    for name, values in (parts | {"label words": heads.weighted("labels")}).items():
        if values.isfinite().any():
            yield Series({"name": name, "role": OWN}, values.numpy())


def answer(heads: Heads) -> str:
    worst = ", ".join(
        f"{name.replace('_', ' ')} {significant(float(v.max()), 2)}" for name, v in heads.residuals.items()
    )
    count, holding = heads.same.numel(), heads.holding
    who = f"All {count} heads are" if holding == count else f"Only {holding} of {count} heads are"
    share = heads.shown["share"].nanmean(1)
    size = (
        f"The step is {number(float(share.mean()), 2)} of a head on average, from {number(float(share.min()), 2)} "
        f"(layer {int(share.argmin())}) to {number(float(share.max()), 2)} (layer {int(share.argmax())})"
    )
    return (
        f"{who} their zero-shot part plus one gradient step on a kernel model (largest {worst}). {size}{turn(heads)}."
    )


def found(heads: Heads) -> list[Found]:
    who = "all heads are" if heads.holding == heads.same.numel() else "not all heads are"
    size = Number(float(heads.shown["share"].nanmean(1).mean()), digits=2)
    return [Found("share of a head that is its step", size, f"{who} a zero-shot part plus one gradient step")]


def turn(heads: Heads) -> str:
    """What the step depends on: labels and, where there are two queries, the query."""
    labels, flipped = float(heads.weighted("labels").mean()), float(heads.shown["flipped cosine"].nanmean())
    says = f", {number(labels, 2)} of it from label words (cosine {number(flipped, 2)} with the step of wrong labels)"
    same = float(heads.same.nanmean())
    if not math.isfinite(same):
        return says
    how = "hardly depends" if same >= 0.9 else "depends"
    return f"{says}, and {how} on the query (cosine {number(same, 2)} between two queries' steps)"


def kernels(heads: Heads) -> str:
    own, count = int(heads.mean("own").eq(1).sum()), heads.same.numel()
    rest = "" if own == count else f", {count - own} another one (scores that are not k·q, or keys too long)"
    return f"{own} of {count} heads have the kernel exp(k·k') of their own keys{rest}"


def summary(heads: Heads) -> Table:
    """Each quantity's mean, and the layers where it is smallest and largest."""
    rows: list[list[Entry]] = []
    for name, values in heads.shown.items():
        layers = values.nanmean(1)
        if not layers.isfinite().any():
            continue
        low, high = int(layers.nan_to_num(math.inf).argmin()), int(layers.nan_to_num(-math.inf).argmax())
        ends = (Number(float(layers[i]), digits=2, note=f"(layer {i})") for i in (low, high))
        rows.append([name, Number(float(layers.nanmean()), digits=2), *ends])
    return Table(["", "mean", "smallest", "largest"], rows)


def by_layer(heads: Heads) -> Table:
    share = heads.shown["share"]
    rows: list[list[Entry]] = []
    for layer in range(len(share)):
        most = int(share[layer].nan_to_num(-1).argmax())
        rows.append(
            [
                str(layer),
                *(Size(float(value[layer].max()), digits=2) for value in heads.residuals.values()),
                *(Number(float(value[layer].nanmean()), digits=2) for value in heads.shown.values()),
                Number(float(share[layer, most]), digits=2, note=f"(head {most})"),
            ]
        )
    return Table(["layer", *_residual_names(heads), *heads.shown, "largest share"], rows)


def by_head(heads: Heads) -> Table:
    layers, count = heads.same.shape
    rows: list[list[Entry]] = [
        [
            f"{layer}.{head}",
            *(Size(float(value[layer, head]), digits=2) for value in heads.residuals.values()),
            *(Number(float(value[layer, head]), digits=2) for value in heads.shown.values()),
        ]
        for layer in range(layers)
        for head in range(count)
    ]
    return Table(["layer.head", *_residual_names(heads), *heads.shown], rows)


def _residual_names(heads: Heads) -> list[str]:
    return [name.replace("_", " ") for name in heads.residuals]


def by_demo(heads: Heads) -> Table:
    parts = heads.weighted("contributions")
    third = -(-len(parts) // 3)
    rows: list[list[Entry]] = [
        [
            str(index + 1),
            demo["label"],
            *(Number(float(part[:, index].mean())) for part in (parts, parts[:third], parts[-third:])),
            _short(demo["text"]),
        ]
        for index, demo in enumerate(heads.facts["demonstrations"])
    ]
    return Table(["", "label", "part of the step", "first third of layers", "last third", "demonstration"], rows)


def sink(heads: Heads) -> str:
    """The part of the first token, which heads attend to whatever it says."""
    return f"of the first one's part {number(float(heads.weighted('first').mean()))} is its first token"


# random features


def features(heads: Heads) -> dict[int, dict[str, Tensor]]:
    """Relative error of the heads' outputs by number of features; nothing where scores are not k·q."""
    own, moved = (heads.mean(name).flatten(1) for name in ("random", "moved"))  # size layer·head
    if not own.isfinite().any():
        return {}
    return {int(size): {"own keys": own[i], "keys moved": moved[i]} for i, size in enumerate(heads.sizes)}


def by_size(heads: Heads) -> Table:
    rows: list[list[Entry]] = [
        [
            str(size),
            *(Number(float(errors.nanquantile(q)), digits=2) for errors in of.values() for q in (0.5, 0.1, 0.9)),
        ]
        for size, of in features(heads).items()
    ]
    header = ["features", "own keys: median error", "10%", "90%", "keys moved: median error", "10%", "90%"]
    return Table(header, rows)


def needed(heads: Heads) -> str:
    """How many random features it takes, in words; nothing where scores are not k·q."""
    own, moved = (float(heads.mean(name).nanquantile(0.5)) for name in ("needed", "needed_moved"))
    if not math.isfinite(own):
        return ""
    return (
        f"for {ERROR:.0%} on the kernel value of the token attended most the median head needs 10^{own:.0f} features "
        f"with its own keys, and 10^{moved:.0f} with the keys moved by one vector, on which no weight depends"
    )


def _short(text: str, width: int = 32) -> str:
    line = " ".join(text.split())
    return line if len(line) <= width else line[: width - 1] + "…"
