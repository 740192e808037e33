"""One cell → one result: a learner on one episode, compared with reading. No paths, no globals."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from iclgd.ahead import Wanted, forget, portions, train_ahead
from iclgd.bench import WRONG, Bench, Run, measured
from iclgd.errors import Refusal
from iclgd.lab import Cell
from iclgd.labs.compare.spec import CONSTANT, WHOLE, CompareCell
from iclgd.learners.prompted import InContext
from iclgd.looked import looked, looked_after
from iclgd.metrics.compared import Compared, Metric, am_delta
from iclgd.metrics.prediction import rec2ftp
from iclgd.models.budget import MOST
from iclgd.models.changes import change_cosines, change_norms
from iclgd.models.traces import Trace
from iclgd.prompts import POSITIONS
from iclgd.results import Array, Result, array
from iclgd.tools import Tools

WHERE = {"position": POSITIONS}


def identity(cell: Cell, tools: Tools) -> Mapping[str, Any]:
    """What the cell's spec only points to: weights, the examples drawn, the examples of nulls."""
    spec = cell.asks(CompareCell)
    found = {
        "weights": tools.weights(spec.model),
        "episode": tools.episode(spec.task, spec.episode).sha256(),
    }
    episode = tools.episode(spec.task, spec.episode)
    for null in spec.nulls:
        thing = null.make()
        if hasattr(thing, "source"):
            drawn = tools.episode(*thing.source(episode.task.name, len(episode.demos), spec.episode.seed))
            found[f"null {null.label}"] = drawn.sha256()
        elif hasattr(thing, "others") and episode.redraw is not None:
            found[f"null {null.label}"] = thing.others(episode, spec.episode.seed).sha256()
    return found


def together(cells: Sequence[Cell], tools: Tools) -> Iterator[Result]:
    """The trainings that the cells will need, as many at once as memory holds; then each cell's result."""
    specs = [cell.asks(CompareCell) for cell in cells]
    benches = [bench_of(spec, tools) for spec in specs]
    all_wanted = [(bench, list(wanted(spec, bench))) for spec, bench in zip(specs, benches, strict=True)]
    for portion in portions(all_wanted):
        train_ahead([one for i in portion for one in all_wanted[i][1]])
        for i in portion:
            result = _result(specs[i], benches[i])
            forget(all_wanted, i)
            yield result


def run(cell: Cell, tools: Tools) -> Result:
    return next(together([cell], tools))


def _result(spec: CompareCell, bench: Bench) -> Result:
    """The prompted learners alone, one trained learner against icl, or two trained ones against each other."""
    if spec.learner is None:
        return _prompted(spec, bench)
    if spec.versus is not None:
        return _pair(spec, bench)
    return _learned(spec, bench)


def wanted(spec: CompareCell, bench: Bench) -> Iterator[Wanted]:
    """The trainings of a cell: learners on the demonstrations themselves, with wrong labels, and those of nulls."""
    for choice in (spec.learner, spec.versus):
        if choice is not None:
            yield Wanted(bench, choice.label, choice.make(), bench.prompts, floor=spec.floor)
    if spec.learner is None or spec.versus is not None:
        return
    contrast = spec.contrast and any(metric.contrast for metric in metrics_of(spec).values())
    others = {WRONG: bench.wrong} if contrast else {}
    for chosen in spec.nulls:
        try:
            null = chosen.make()
            others |= null.trained_on(bench, contrast) if hasattr(null, "trained_on") else {}
        except Refusal:  # said where the null is asked for its trace
            continue
    for what, demos in others.items():
        floor = spec.floor and what == WRONG and contrasts(spec) != {}
        yield Wanted(bench, spec.learner.label, spec.learner.make(), demos, what, floor)


def bench_of(spec: CompareCell, tools: Tools) -> Bench:
    """The episode on its subject; cells of a group share it, with the traces it has made."""

    def make() -> Bench:
        subject, episode = tools.subject(spec.model), tools.episode(spec.task, spec.episode)
        short = tools.budget < 1 and spec.batch_tokens is None  # memory ran out before, at what was found by itself
        batch = MOST.get(subject.device.type, MOST["cpu"]) if short else spec.batch_tokens
        lent = (tools.episode, tools.progress, None if batch is None else tools.within(batch))
        return Bench(subject, episode, spec.prompt, spec.episode.seed, *lent)

    return tools.shared(("bench", spec.model, spec.task, spec.episode, spec.prompt), make)


def metrics_of(spec: CompareCell) -> dict[str, Metric]:
    return {choice.label: choice.make() for choice in spec.metrics}


def updates(spec: CompareCell) -> dict[str, Metric]:
    """The metrics of whole updates, layer by layer, that nulls and floors have too."""
    return {n: m for n, m in metrics_of(spec).items() if m.by == "layer" and not m.contrast and m.of != "training"}


def contrasts(spec: CompareCell) -> dict[str, Metric]:
    """The likenesses of what labels change, that nulls and floors have too; none where it was not asked for."""
    return {n: m for n, m in metrics_of(spec).items() if spec.contrast and m.contrast and n != "label-share"}


def _prompted(spec: CompareCell, bench: Bench) -> Result:
    """Zero-shot and icl: their answers and, with the contrast, what labels change in reading."""
    zero, icl = bench.zero, bench.icl
    arrays = [array(torch.tensor(zero.answers), "query", quantity="answers")]
    for name, trace in (("zero-shot", zero), ("icl", icl)):
        arrays += _scores(trace, learner=name)
        for kind, metric in metrics_of(spec).items():
            if metric.by == "query" and (metric.alone or name == "zero-shot"):
                arrays.append(_array(metric, bench.compared(trace), metric=kind, learner=name))
            elif metric.of == "trace" and name == "zero-shot":  # likeness before any training
                arrays.append(_array(metric, bench.compared(zero), metric=kind, learner=name))
    arrays += _constant(spec, bench)
    for kind, metric in metrics_of(spec).items():
        if metric.whole is not None:
            arrays.append(array(metric.whole(bench.compared(icl)), "query", quantity=WHOLE.format(kind), learner="icl"))
    if spec.contrast:
        arrays += _read_wrong(spec, bench)
    facts = bench.facts()
    if spec.model.init == "trained":
        looks, facts["looked"] = looked(bench)
        arrays += looks
    if spec.floor:
        wrong = bench.icl_wrong if contrasts(spec) else None
        found, facts["floor"] = bench.floor("icl", InContext(), icl, updates(spec) | contrasts(spec), wrong)
        arrays += [_layers(v, metric=m, floor=f, learner="icl") for (f, m), v in found.items()]
    return Result(facts, arrays)


def _constant(spec: CompareCell, bench: Bench) -> Iterator[Array]:
    """Reading's answers taken together, one for all queries: what a likeness of answers is without telling queries."""
    alike = bench.icl.scores.mean(0, keepdim=True).expand_as(bench.icl.scores)
    seen = bench.compared(replace(bench.zero, scores=alike))
    for kind, metric in metrics_of(spec).items():
        if metric.by == "query" and not metric.alone:
            yield _array(metric, seen, metric=kind, learner=CONSTANT)


def _read_wrong(spec: CompareCell, bench: Bench) -> Iterator[Array]:
    """Reading with wrong labels beside reading with right ones."""
    for kind, metric in metrics_of(spec).items():
        if metric.alone:
            labels = {"metric": kind, "learner": "icl", "null": "wrong-labels"}
            yield _array(metric, bench.compared(bench.icl_wrong), **labels)
        elif kind == "label-share":
            yield _array(metric, bench.compared(bench.icl, wrong=bench.icl_wrong), metric=kind, learner="icl")


def _learned(spec: CompareCell, bench: Bench) -> Result:
    choice = spec.learner
    assert choice is not None
    learner = choice.make()
    ran = bench.learned(choice.label, learner)
    left_out: dict[str, str] = {}
    facts = bench.facts() | {"diverged": _why(ran), "nulls_left_out": left_out}
    arrays = _training(ran, bench.subject.layout.layers)
    if ran.training is not None:
        facts["moved"] = ran.training.moved
    if ran.trace is None:
        return Result(facts, arrays)
    arrays += _scores(ran.trace)
    if spec.model.init == "trained":
        arrays.append(looked_after(bench, ran.trace))
    for name, metric in metrics_of(spec).items():
        if not metric.contrast:
            arrays.append(_array(metric, bench.compared(ran.trace, ran.training), metric=name))
    arrays.append(_recall(bench, ran.trace))
    arrays += _nulls(spec, bench, ran, left_out)
    arrays += _contrast(spec, bench, ran.trace, left_out)
    if spec.floor:
        wrong = bench.learned_wrong(choice.label, learner).trace if contrasts(spec) else None
        metrics = updates(spec) | contrasts(spec)
        found, facts["floor"] = bench.floor(choice.label, learner, ran.trace, metrics, wrong)
        arrays += [_layers(v, metric=m, floor=f) for (f, m), v in found.items()]
    return Result(facts, arrays)


def _why(ran: Run) -> str | None:
    """Why there is nothing to measure, where there is not."""
    return (ran.training.diverged if ran.training is not None else None) or (None if ran.trace else "it diverged")


def _training(ran: Run, layers: int) -> list[Array]:
    """Losses, gradients, and how far the weights went."""
    if ran.training is None:
        return []
    found = [
        array(torch.tensor(ran.training.losses), "step", quantity="loss"),
        array(ran.training.gradient_norms, "layer", "demo", quantity="gradient norm"),
    ]
    return found + ([array(change_norms(ran.change, layers), "layer", quantity="weight change")] if ran.change else [])


def _recall(bench: Bench, tuned: Trace) -> Array:
    counts = rec2ftp(bench.zero.scores, bench.icl.scores, tuned.scores, torch.tensor(bench.zero.answers))
    names = ("both", "corrected", "base_both", "base_wrong")
    values = [getattr(counts, name) for name in names]
    return array(values, "count", quantity="Rec2FTP", coordinates={"count": names})


def _nulls(spec: CompareCell, bench: Bench, ran: Run, left_out: dict[str, str]) -> list[Array]:
    """Every metric of updates with a null in the learner's place or in reading's; what could not be had is said."""
    choice, arrays = spec.learner, list[Array]()
    assert choice is not None
    for chosen in spec.nulls:
        null = chosen.make()
        try:
            trace = null.trace(bench, choice.label, choice.make(), ran)
        except Refusal as refusal:  # this tokenizer or context cannot have it: one null less, and the record says so
            left_out[chosen.label] = str(refusal)
            continue
        if trace is None:
            if not hasattr(null, "contrast") or null.only != ("no update",):
                left_out[chosen.label] = "it diverged"
            continue
        seen = bench.compared(trace)
        if null.side == "reading":
            assert ran.trace is not None
            seen = replace(bench.compared(ran.trace), icl=trace)
        for name, metric in metrics_of(spec).items():
            wanted = name in updates(spec) or (metric.by == "query" and null.trains and null.side == "learner")
            if wanted and (not null.only or name in null.only):
                arrays.append(_array(metric, seen, metric=name, null=chosen.label))
    return arrays


def _contrast(spec: CompareCell, bench: Bench, tuned: Trace, left_out: dict[str, str]) -> list[Array]:
    """What right and wrong labels make different, in reading and in training, with nulls of its own."""
    choice, metrics = spec.learner, {n: m for n, m in metrics_of(spec).items() if m.contrast}
    assert choice is not None
    if not metrics or not spec.contrast:
        return []
    learner = choice.make()
    wrong = bench.learned_wrong(choice.label, learner)
    if wrong.trace is None:
        left_out["contrast"] = "training on wrong labels diverged"
        return []
    arrays = [_array(metric, bench.compared(tuned, wrong=wrong.trace), metric=n) for n, metric in metrics.items()]
    own = bench.learned(choice.label, learner)
    if own.change and wrong.change:
        cosines = change_cosines(own.change, wrong.change, bench.subject.layout.layers)
        arrays.append(array(cosines, "layer", quantity="weight change, right and wrong labels"))
    for chosen in spec.nulls:
        null = chosen.make()
        if not hasattr(null, "contrast"):
            continue
        try:
            seen = null.contrast(bench, choice.label, learner, tuned, wrong.trace)
        except Refusal as refusal:
            left_out[f"{chosen.label}, contrast"] = str(refusal)
            continue
        if seen is None:
            left_out[f"{chosen.label}, contrast"] = "it diverged"
        else:
            arrays += [_array(metric, seen, metric=n, null=chosen.label) for n, metric in contrasts(spec).items()]
    return arrays


def _pair(spec: CompareCell, bench: Bench) -> Result:
    """SimAM_Δ between two finetuned learners: α (Deutch 2023, B.1)."""
    both = [choice for choice in (spec.learner, spec.versus) if choice is not None]
    one, two = (bench.learned(choice.label, choice.make()).trace for choice in both)
    if one is None or two is None:
        return Result(bench.facts())
    seen = Compared(bench.zero, one, two, bench.prompts)
    return Result(bench.facts(), [_array(am_delta, seen, metric="alpha")])


def _array(by: Metric, seen: Compared, /, **labels: str) -> Array:
    values = measured(by, seen)
    return array(values, "query", **labels) if by.by == "query" else _layers(values, **labels)


def _layers(values: torch.Tensor, **labels: str) -> Array:
    return array(values, "position", "query", "layer", coordinates=WHERE, **labels)


def _scores(trace: Trace, **labels: str) -> list[Array]:
    return [
        array(trace.scores, "query", "label", quantity="scores", **labels),
        array(trace.blanks, "blank", "label", quantity="blanks", **labels),
    ]
