"""One cell → one result: exact patches, one patch for all queries, or finetuning of the patched matrices."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import torch

from iclgd.lab import Cell
from iclgd.labs.implicit.ground import Demos, Ground, Tuned, random_like
from iclgd.labs.implicit.null import attention_alone, settling, trace_losses
from iclgd.labs.implicit.spec import ExactCell, ImplicitCell, StaticCell, TrainedCell
from iclgd.labs.implicit.weights import (
    best_step,
    between,
    cosine,
    directions,
    largest,
    overlap,
    own_contrasts,
    own_cosines,
    own_overlap,
)
from iclgd.models.faithful import generate, generate_patched, residual
from iclgd.models.mlps import matrix
from iclgd.models.patches import FORMS, patches, read
from iclgd.models.static import Static
from iclgd.models.subject import Subject
from iclgd.prompts import build_prompts
from iclgd.results import Array, Result, array
from iclgd.tasks.episodes import Episode
from iclgd.tools import Tools

DEMOS: tuple[Demos, ...] = ("right", "wrong", "other task")
SIDES = ("outputs", "inputs")
THIRDS = ("first third", "middle third", "last third")


def identity(cell: Cell, tools: Tools) -> Mapping[str, Any]:
    """What the cell's spec only points to: weights, and the examples drawn."""
    spec = _spec(cell)
    return {
        "weights": tools.weights(spec.model),
        "episode": tools.episode(spec.task, spec.episode).sha256(),
        "other": _other(spec, tools).sha256(),
    }


def run(cell: Cell, tools: Tools) -> Result:
    spec = _spec(cell)
    if isinstance(spec, ExactCell):
        return _exact(spec, tools)
    assert isinstance(spec, StaticCell | TrainedCell)
    ground = _ground(spec, tools)
    facts = {"demonstrations": len(ground.prompts["right"].demos), "queries": len(ground.queries["held"])}
    if isinstance(spec, StaticCell):
        return Result({**facts, "labels": list(ground.episode.task.labels)}, list(_static(spec, ground)))
    tuned = {demos: ground.tuned(demos, spec.rate) for demos in DEMOS}
    why = next((one.diverged for one in tuned.values() if one.diverged), None)
    return Result({**facts, "diverged": why}, list(_trained(spec, ground, tuned)))


def _spec(cell: Cell) -> ImplicitCell:
    assert isinstance(cell.spec, ImplicitCell)
    return cell.spec


def _other(spec: ImplicitCell, tools: Tools) -> Episode:
    """As many demonstrations and queries of another task."""
    return tools.episode(spec.other, spec.episode)


def _ground(spec: StaticCell | TrainedCell, tools: Tools) -> Ground:
    """The episode on its subject; cells of a group share it, with what it has computed."""

    def make() -> Ground:
        subject, episode = tools.subject(spec.model), tools.episode(spec.task, spec.episode)
        other, seed = _other(spec, tools), spec.episode.seed
        return Ground(subject, episode, other, spec.prompt, seed, spec.calibration[-1], tools.progress)

    return tools.shared(("ground", spec.model, spec.task, spec.episode, spec.prompt, spec.calibration[-1]), make)


# exact patches


def _exact(spec: ExactCell, tools: Tools) -> Result:
    subject, episode = tools.subject(spec.model), tools.episode(spec.task, spec.episode)
    wide = subject.in_precision(torch.float64) if spec.precision == "float64" else nullcontext(None)
    with wide as widening:
        tools.progress(f"exact patches in {spec.precision}", 0)
        found = _exact_arrays(spec, subject, episode)
    narrow = sorted(widening.narrow) if widening is not None else []
    normed = subject.layout.mlps()[0].norm is not None
    return Result({**found[0], "narrow": narrow, "normed": normed, "layers": subject.layout.layers}, found[1])


def _exact_arrays(spec: ExactCell, subject: Subject, episode: Episode) -> tuple[dict[str, Any], list[Array]]:
    """Residuals of every form, of another query's patch, sizes and directions; generation; settling."""
    prompts = build_prompts(subject.tokenizer, episode, spec.prompt, subject.room)
    queries = [prompts.bos + query for query in prompts.queries]
    target = read(subject, prompts.queries, subject.encode(prompts.context))
    plain = read(subject, queries, None)
    arrays = []
    for form in FORMS:
        own = patches(subject, queries, target, form)
        for who, shift in (("own", 0), ("another query's", 1))[: 2 if form == "C" else 1]:
            places = [(i + shift) % len(queries) for i in range(len(queries))]
            left = [
                residual(subject, query, target.of([i]), [layer.of(place) for layer in own], plain.of([i]))
                for i, (query, place) in enumerate(zip(queries, places, strict=True))
            ]
            labels = {"form": form, "patch": who}
            blocks = torch.stack([one.blocks for one in left])
            arrays.append(array(blocks, "query", "layer", quantity="block", **labels))
            arrays.append(array([one.logits for one in left], "query", quantity="logits", **labels))
            arrays.append(array([one.gap for one in left], "query", quantity="gap", **labels))
    weights = [matrix(mlp.last).detach() for mlp in subject.layout.mlps()]  # own is of form C now
    lasts = [layer.last for layer in own if layer.last is not None]
    sizes = [last.norms.double() / largest(w) for last, w in zip(lasts, weights, strict=True)]
    turns = [own_cosines(last, w) for last, w in zip(lasts, weights, strict=True)]
    arrays.append(array(torch.stack(sizes, 1), "query", "layer", quantity="size"))
    arrays.append(array(torch.stack(turns, 1), "query", "layer", quantity="along W"))
    arrays.append(array([between(last) for last in lasts], "layer", quantity="between queries"))
    if spec.settling:
        counts, moved = settling(subject, prompts.bos, prompts.context, prompts.queries[0])
        arrays.append(array(moved, "size", "layer", quantity="settling", coordinates={"size": counts}))
    given = (subject, prompts.context, prompts.queries[0], spec.tokens)
    behind = generate(*given)
    alone = generate_patched(subject, prompts.bos, *given[1:], form="C")
    path = torch.randn(6, 24, 16, generator=torch.Generator().manual_seed(spec.episode.seed), dtype=torch.float64)
    same = sum(a == b for a, b in zip(behind, alone, strict=True))
    facts = {"random_path": trace_losses(path), "attention_alone": attention_alone(spec.episode.seed)}
    return {"tokens": spec.tokens, "same_tokens": same, **facts}, arrays


# one patch for all queries


def _static(spec: StaticCell, ground: Ground) -> Iterator[Array]:
    """Label scores without and behind demonstrations, and with every patch in the weights."""
    held = {"asked": "held"}
    yield array(torch.tensor(ground.answers), "query", quantity="answers")
    for name, demos in (("zero-shot", None), ("icl", "right"), ("icl, wrong labels", "wrong")):
        yield _scores(ground.scores(ground.reading(demos, "held")), patch=name, **held)  # type: ignore[arg-type]
    for asked in ("calibration", "others"):
        for name, demos in (("zero-shot", None), ("icl", "right")):
            yield _scores(ground.scores(ground.reading(demos, asked)), patch=name, asked=asked)  # type: ignore[arg-type]
    vector, whole = Static("vector"), Static(ridge=spec.ridge)
    most = spec.calibration[-1]
    for count in spec.calibration:
        ranks = [Static(rank=rank, ridge=spec.ridge) for rank in spec.ranks if rank < count]
        for static in (vector, *ranks, whole):
            found = ground.static("right", static, count)
            yield _scores(ground.patched(found), patch=static.label, fitted=count, **held)
    for static in (vector, whole):
        found = ground.static("right", static, most)
        yield _scores(ground.patched(found, "others"), patch=static.label, fitted=most, asked="others")
    wrong, other = (ground.static(demos, whole, most) for demos in ("wrong", "other task"))
    labels = {"patch": whole.label, "fitted": most, **held}
    yield _scores(ground.patched(wrong), null="wrong labels", **labels)
    yield _scores(ground.patched(other), null="other task", **labels)
    noise = random_like(ground.static("right", whole, most), spec.episode.seed)
    yield _scores(ground.patched(noise), null="random", **labels)
    if spec.depth:
        layers = ground.subject.layout.layers
        for place, third in enumerate(THIRDS):
            some = range(layers * place // 3, layers * (place + 1) // 3)
            found = ground.static("right", whole, most, some)
            yield _scores(ground.patched(found), depth=third, **labels)


def _scores(scores: torch.Tensor, **labels: Any) -> Array:
    return array(scores, "query", "label", quantity="scores", **labels)


# finetuning of the patched matrices


def _trained(spec: TrainedCell, ground: Ground, tuned: dict[Demos, Tuned]) -> Iterator[Array]:
    """What training made of the matrices and of the answers, and how alike that is to the patches."""
    for demos, one in tuned.items():
        yield array(torch.tensor(one.losses), "step", quantity="loss", demos=demos)
        for asked, scores in one.scores.items():
            yield _scores(scores, patch="gd", asked=asked, demos=demos)
    if any(one.diverged for one in tuned.values()):
        return
    static, most = Static(ridge=spec.ridge), spec.calibration[-1]
    yield from _likeness(ground, tuned, static, most)
    yield from _overlaps(ground, tuned, static, spec)


def _likeness(ground: Ground, tuned: dict[Demos, Tuned], static: Static, most: int) -> Iterator[Array]:
    """Cosines by layer: the patches of right labels with training on right, wrong and another task's; contrasts."""
    own = {demos: [layer.last for layer in layers] for demos, layers in ground.owned.items()}
    fits = {demos: [one.last for one in ground.static(demos, static, most)] for demos in ("right", "wrong")}
    for demos, one in tuned.items():
        labels = {} if demos == "right" else {"null": demos}
        found = [own_cosines(last, change) for last, change in zip(own["right"], one.change, strict=True)]  # type: ignore[arg-type]
        yield array(torch.stack(found, 1), "query", "layer", quantity="cosine", patch="own", **labels)
        values = [cosine(fit, change) for fit, change in zip(fits["right"], one.change, strict=True)]  # type: ignore[arg-type]
        yield array([values], "query", "layer", quantity="cosine", patch="matrix", **labels)
    labels_made = [right - wrong for right, wrong in zip(tuned["right"].change, tuned["wrong"].change, strict=True)]
    twice = zip(own["right"], own["wrong"], labels_made, strict=True)
    found = [own_contrasts(right, wrong, change) for right, wrong, change in twice]  # type: ignore[arg-type]
    yield array(torch.stack(found, 1), "query", "layer", quantity="contrast", patch="own")
    made = [right - wrong for right, wrong in zip(fits["right"], fits["wrong"], strict=True)]  # type: ignore[operator]
    values = [cosine(a, b) for a, b in zip(made, labels_made, strict=True)]
    yield array([values], "query", "layer", quantity="contrast", patch="matrix")


def _overlaps(ground: Ground, tuned: dict[Demos, Tuned], static: Static, spec: TrainedCell) -> Iterator[Array]:
    """Subspaces by rank, sizes beside the weights, and the step that training would have to be scaled by."""
    fits = {demos: [one.last for one in ground.static(demos, static, spec.calibration[-1])] for demos in DEMOS[:2]}
    changes, most = {demos: one.change for demos, one in tuned.items()}, spec.ranks[-1]
    patched = [directions(fit, most) for fit in fits["right"]]  # type: ignore[arg-type]
    own = [layer.last for layer in ground.owned["right"]]
    for demos in DEMOS[::2]:
        labels = {} if demos == "right" else {"null": demos}
        moved = [directions(change, most) for change in changes[demos]]
        yield _shared(overlap, patched, moved, spec.ranks, **labels)
        yield _shared(own_overlap, own, moved, spec.ranks, patch="own", **labels)
    pairs = (fits["right"], fits["wrong"]), (changes["right"], changes["wrong"])
    made = [[directions(a - b, most) for a, b in zip(*pair, strict=True)] for pair in pairs]
    yield _shared(overlap, made[0], made[1], spec.ranks, patch="labels")
    shape = fits["right"][0].shape  # type: ignore[union-attr]
    chance = [[min(1.0, rank / size) for size in shape] for rank in spec.ranks]
    places = {"rank": spec.ranks, "side": SIDES}
    yield array(chance, "rank", "side", quantity="chance", coordinates=places)
    both = list(zip(fits["right"], changes["right"], strict=True))
    yield array([best_step(a, b) for a, b in both], "layer", quantity="step")  # type: ignore[arg-type]
    weights = [matrix(mlp.last) for mlp in ground.subject.layout.mlps()]
    for name, parts in (("matrix", fits["right"]), ("gd", changes["right"])):
        sizes = [float(a.norm() / w.norm()) for a, w in zip(parts, weights, strict=True)]  # type: ignore[union-attr]
        yield array(sizes, "layer", quantity="length", patch=name)


def _shared(measure: Any, ours: Sequence[Any], theirs: Sequence[Any], ranks: Sequence[int], **labels: Any) -> Array:
    """An overlap by rank, layer and side."""
    found = [[measure(a, b, rank) for a, b in zip(ours, theirs, strict=True)] for rank in ranks]
    places = {"rank": ranks, "side": SIDES}
    return array(torch.tensor(found), "rank", "layer", "side", quantity="overlap", coordinates=places, **labels)
