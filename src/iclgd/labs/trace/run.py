"""One episode, asked without and with its demonstrations: everything that was captured."""

from collections.abc import Mapping
from typing import Any

from iclgd.bench import Bench
from iclgd.lab import Cell
from iclgd.labs.trace.lab import TraceCell
from iclgd.looked import looked
from iclgd.prompts import POSITIONS
from iclgd.results import Array, Result, array
from iclgd.tasks.episodes import episode_text
from iclgd.tools import Tools

AXES = {
    "scores": ("query", "label"),
    "outputs": ("query", "layer", "position", "dim"),
    "logits": ("query", "layer", "position", "head", "key"),
    "keys": ("query", "position", "key"),
    "context": ("query", "layer", "position", "token"),
    "vectors": ("query", "layer", "position", "dim"),
}


def identity(cell: Cell, tools: Tools) -> Mapping[str, Any]:
    assert isinstance(cell.spec, TraceCell)
    episode = tools.episode(cell.spec.task, cell.spec.episode)
    return {"weights": tools.weights(cell.spec.model), "episode": episode.sha256()}


def run(cell: Cell, tools: Tools) -> Result:
    spec = cell.spec
    assert isinstance(spec, TraceCell)
    episode = tools.episode(spec.task, spec.episode)
    lent, all_of_them = (tools.episode, tools.progress), len(episode.queries)
    bench = Bench(tools.subject(spec.model), episode, spec.prompt, spec.episode.seed, *lent, ranked=all_of_them)
    arrays: list[Array] = []
    for learner, trace in (("zero-shot", bench.zero), ("icl", bench.icl)):
        for quantity, axes in AXES.items():
            places = {"position": POSITIONS} if "position" in axes else {}
            values = getattr(trace, quantity)
            arrays.append(array(values, *axes, coordinates=places, quantity=quantity, learner=learner))
    looks, told = looked(bench)
    facts = bench.facts() | {
        "looked": told,
        "answers": list(bench.zero.answers),
        "episode": episode_text(episode),
        "queries_text": [episode.task.prompt(query.fields) for query in episode.queries],
    }
    return Result(facts, arrays + looks)
