"""One cell → one result: a learner on one episode, compared with reading. No paths, no globals."""

from collections.abc import Mapping
from typing import Any

import torch

from iclgd.bench import Bench, measured
from iclgd.errors import Refusal
from iclgd.lab import Cell
from iclgd.labs.compare.spec import CompareCell
from iclgd.learners.prompted import InContext
from iclgd.metrics.compared import Metric, am_delta
from iclgd.metrics.prediction import rec2ftp
from iclgd.models.traces import Trace
from iclgd.prompts import POSITIONS
from iclgd.results import Array, Result, array
from iclgd.tools import Tools

WHERE = {"position": POSITIONS}


def identity(cell: Cell, tools: Tools) -> Mapping[str, Any]:
    """What the cell's spec only points to: weights, the examples drawn, the examples of nulls."""
    spec: CompareCell = cell.spec  # type: ignore[assignment]
    found = {
        "weights": tools.weights(spec.model),
        "episode": tools.episode(spec.task, spec.episode).sha256(),
    }
    for null in spec.nulls:
        if hasattr(thing := null.make(), "source"):
            task = tools.episode(spec.task, spec.episode).task.name
            found[f"null {null.label}"] = tools.episode(*thing.source(task, spec.episode.k, spec.episode.seed)).sha256()
    return found


def run(cell: Cell, tools: Tools) -> Result:
    """The prompted learners alone, one trained learner against icl, or two trained ones against each other."""
    spec: CompareCell = cell.spec  # type: ignore[assignment]
    bench = bench_of(spec, tools)
    if spec.learner is None:
        return _prompted(spec, bench)
    if spec.versus is not None:
        return _pair(spec, bench)
    return _learned(spec, bench)


def bench_of(spec: CompareCell, tools: Tools) -> Bench:
    """The episode on its subject; cells of a group share it, with the traces it has made."""

    def make() -> Bench:
        subject, episode = tools.subject(spec.model), tools.episode(spec.task, spec.episode)
        return Bench(subject, episode, spec.prompt, spec.episode.seed, tools.episode, tools.progress)

    return tools.shared(("bench", spec.model, spec.task, spec.episode, spec.prompt), make)


def by_layer(spec: CompareCell) -> dict[str, Metric]:
    return {choice.label: choice.make() for choice in spec.metrics if choice.make().by == "layer"}


def _prompted(spec: CompareCell, bench: Bench) -> Result:
    zero, icl = bench.zero, bench.icl
    arrays = [array(torch.tensor(zero.answers), "query", quantity="answers")]
    for name, trace in (("zero-shot", zero), ("icl", icl)):
        arrays += _scores(trace, name)
        for choice in spec.metrics:
            metric = choice.make()
            if metric.by == "query" and (metric.alone or name == "zero-shot"):
                arrays.append(array(bench.measure(metric, trace), "query", metric=choice.label, learner=name))
            elif metric.of == "trace" and name == "zero-shot":  # likeness before any training
                arrays.append(_likeness(bench.measure(metric, zero), metric=choice.label, learner=name))
    if spec.floor:
        found = bench.floor("icl", InContext(), icl, by_layer(spec))
        arrays += [_likeness(v, metric=m, floor=f, learner="icl") for (f, m), v in found.items()]
    return Result(bench.facts(), arrays)


def _learned(spec: CompareCell, bench: Bench) -> Result:
    choice = spec.learner
    assert choice is not None
    learner = choice.make()
    ran = bench.learned(choice.label, learner)
    assert ran.training is not None or ran.trace is not None
    arrays: list[Array] = []
    if ran.training is not None:
        arrays += [
            array(torch.tensor(ran.training.losses), "step", quantity="loss"),
            array(ran.training.gradient_norms, "layer", "demo", quantity="gradient norm"),
        ]
    left_out: dict[str, str] = {}
    facts = bench.facts() | {"diverged": ran.trace is None, "nulls_left_out": left_out}
    if ran.trace is None:
        return Result(facts, arrays)
    arrays += _scores(ran.trace)
    for chosen in spec.metrics:
        values = bench.measure(chosen.make(), ran.trace, ran.training)
        arrays.append(_likeness(values, metric=chosen.label))
    counts = rec2ftp(bench.zero.scores, bench.icl.scores, ran.trace.scores, torch.tensor(bench.zero.answers))
    names = ("both", "corrected", "base_both", "base_wrong")
    recall = [getattr(counts, name) for name in names]
    arrays.append(array(recall, "count", quantity="Rec2FTP", coordinates={"count": names}))
    arrays += _nulls(spec, bench, ran.trace, left_out)
    if spec.floor:
        found = bench.floor(choice.label, learner, ran.trace, by_layer(spec))
        arrays += [_likeness(v, metric=m, floor=f) for (f, m), v in found.items()]
    return Result(facts, arrays)


def _nulls(spec: CompareCell, bench: Bench, tuned: Trace, left_out: dict[str, str]) -> list[Array]:
    """Every metric by layer with a null in the learner's place; what could not be had is said in ``left_out``."""
    assert spec.learner is not None
    arrays = []
    for choice in spec.nulls:
        null = choice.make()
        try:
            trace = null.trace(bench, spec.learner.make(), tuned)
        except Refusal as refusal:  # this tokenizer or context cannot have it: one null less, and the record says so
            left_out[choice.label] = str(refusal)
            continue
        if trace is not None:
            arrays += [
                _likeness(bench.measure(metric, trace), metric=name, null=choice.label)
                for name, metric in by_layer(spec).items()
                if metric.of != "training" and (not null.only or name in null.only)
            ]
    return arrays


def _pair(spec: CompareCell, bench: Bench) -> Result:
    """SimAM_Δ between two finetuned learners: α (Deutch 2023, B.1)."""
    both = [choice for choice in (spec.learner, spec.versus) if choice is not None]
    ran = [bench.learned(choice.label, choice.make()) for choice in both]
    one, two = (run.trace for run in ran)
    if one is None or two is None:
        return Result(bench.facts())
    values = measured(am_delta, bench.zero, one, two, bench.prompts)
    return Result(bench.facts(), [_likeness(values, metric="alpha")])


def _likeness(values: torch.Tensor, **labels: str) -> Array:
    if values.ndim == 1:
        return array(values, "query", **labels)
    return array(values, "position", "query", "layer", coordinates=WHERE, **labels)


def _scores(trace: Trace, learner: str | None = None) -> list[Array]:
    labels = {} if learner is None else {"learner": learner}
    return [
        array(trace.scores, "query", "label", quantity="scores", **labels),
        array(trace.blanks, "blank", "label", quantity="blanks", **labels),
    ]
