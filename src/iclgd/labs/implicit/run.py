"""One cell → one result: exact patches, one patch for all queries, or finetuning of the patched matrices."""

from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from typing import Any

import torch

from iclgd.lab import Cell
from iclgd.labs.implicit.alike import alike
from iclgd.labs.implicit.ground import Asked, Demos, Ground, Tuned, other_demos, random_like, refuse_few
from iclgd.labs.implicit.null import attention_alone, settling, trace_losses
from iclgd.labs.implicit.spec import ExactCell, ImplicitCell, StaticCell, TrainedCell
from iclgd.labs.implicit.weights import between, by_layer, largest, own_cosines
from iclgd.models.added import Added
from iclgd.models.faithful import generate, generate_patched, residual
from iclgd.models.mlps import matrix
from iclgd.models.patches import FORMS, patches, read
from iclgd.models.static import Static
from iclgd.models.subject import Subject
from iclgd.prompts import build_prompts
from iclgd.results import Array, Result, array
from iclgd.tasks.episodes import Episode
from iclgd.tools import Tools

TRAINED: tuple[Demos, ...] = ("right", "wrong", "shuffled", "other demos", "other demos, wrong", "other task")
SCORED: tuple[Demos, ...] = ("right", "wrong", "other demos", "other task")  # training is asked held-out queries
NULLS_READ: dict[str, Demos] = {"wrong labels": "wrong", "other task": "other task", "filler": "filler"}
READINGS: tuple[tuple[str, Demos | None, Asked], ...] = (
    ("zero-shot", None, "held"),
    ("icl", "right", "held"),
    ("icl, wrong labels", "wrong", "held"),
    ("zero-shot", None, "calibration"),
    ("icl", "right", "calibration"),
    ("zero-shot", None, "others"),
    ("icl", "right", "others"),
)
DEPTHS = 6  # parts of the stack, in each of which alone, and in all of which up to it, a patch is written


def identity(cell: Cell, tools: Tools) -> Mapping[str, Any]:
    """What the cell's spec only points to: weights, and the examples drawn."""
    spec = _spec(cell)
    episode = tools.episode(spec.task, spec.episode)
    if isinstance(spec, StaticCell | TrainedCell):
        refuse_few(episode, spec.calibration[-1])
    found = {
        "weights": tools.weights(spec.model),
        "episode": episode.sha256(),
        "other": _other(spec, tools).sha256(),
    }
    if isinstance(spec, TrainedCell):
        found["other demos"] = other_demos(episode, spec.episode.seed).sha256()
    return found


def run(cell: Cell, tools: Tools) -> Result:
    spec = _spec(cell)
    if isinstance(spec, ExactCell):
        return _exact(spec, tools)
    assert isinstance(spec, StaticCell | TrainedCell)
    ground = _ground(spec, tools)
    facts = {"demonstrations": len(ground.prompts["right"].demos), "queries": len(ground.queries["held"])}
    if isinstance(spec, StaticCell):
        return Result({**facts, "labels": list(ground.episode.task.labels)}, list(_static(spec, ground)))
    tuned = ground.tuned(TRAINED, spec.rate, SCORED)
    lost = [demos for demos, one in tuned.items() if one.diverged]
    return Result({**facts, "diverged": _diverged(tuned), "lost": lost}, list(_trained(spec, ground, tuned)))


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
    arrays.append(array(by_layer(sizes), "query", "layer", quantity="size"))
    arrays.append(array(by_layer(turns), "query", "layer", quantity="along W"))
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
    for name, demos, asked in READINGS:
        yield _scores(ground.scores(ground.reading(demos, asked)), patch=name, asked=asked)
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
    labels = {"patch": whole.label, "fitted": most, **held}
    for null, read_instead in NULLS_READ.items():
        yield _scores(ground.patched(ground.static(read_instead, whole, most)), null=null, **labels)
    found = ground.static("right", whole, most)
    noise = random_like([one.last for one in found], spec.episode.seed)  # type: ignore[misc]  # whole matrices
    random = [Added(last=last) for last in noise]  # without the gain that was fitted behind a norm
    yield _scores(ground.patched(random), null="random", **labels)
    if spec.depth:
        yield from _by_depth(ground, whole, most, labels)


def depths(layers: int) -> list[range]:
    """The stack in six parts, or layer by layer where it has fewer."""
    parts = min(DEPTHS, layers)
    return [range(layers * place // parts, layers * (place + 1) // parts) for place in range(parts)]


def _by_depth(ground: Ground, static: Static, most: int, labels: Mapping[str, Any]) -> Iterator[Array]:
    """A patch in one part of the layers alone, and in all layers up to that part's last one.

    A block is fitted for what the patched blocks before it give, and knows nothing of those behind it: the patch up
    to a layer is the first part of the whole one, and in the first part both are the same.
    """
    whole = ground.static("right", static, most)
    for part in depths(len(whole)):
        upto = ground.patched([one if layer < part.stop else Added() for layer, one in enumerate(whole)])
        alone = ground.patched(ground.static("right", static, most, part)) if part.start else upto
        for where, scores in (("alone", alone), ("up to", upto)):
            yield _scores(scores, layers=where, first=part.start, last=part.stop - 1, **labels)


def _scores(scores: torch.Tensor, **labels: Any) -> Array:
    return array(scores, "query", "label", quantity="scores", **labels)


# finetuning of the patched matrices


def _trained(spec: TrainedCell, ground: Ground, tuned: dict[Demos, Tuned]) -> Iterator[Array]:
    """What training made of the matrices and of the answers, and how alike that is to the patches."""
    for demos, one in tuned.items():
        yield array(torch.tensor(one.losses), "step", quantity="loss", demos=demos)
        for asked, scores in one.scores.items():
            yield _scores(scores, patch="gd", asked=asked, demos=demos)
    if not _diverged(tuned):
        changes = {demos: one.change for demos, one in tuned.items() if not one.diverged}
        yield from alike(ground, changes, spec)


def _diverged(tuned: dict[Demos, Tuned]) -> str | None:
    """Why there is no likeness: without the changes of right and of wrong labels there is nothing to compare."""
    return tuned["right"].diverged or tuned["wrong"].diverged
