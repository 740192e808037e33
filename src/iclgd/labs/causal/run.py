"""One cell → one result: layers exchanged between runs, or heads put in and taken out."""

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from iclgd.lab import Cell
from iclgd.labs.causal.ground import SWAPS, WHERE, Ground, Run, Seen, other_query, random_update
from iclgd.labs.causal.sets import ablations, head_scores, put_in
from iclgd.labs.causal.spec import CausalCell, ExchangeCell, HeadsCell, SwapCell
from iclgd.models.last_token import LastToken
from iclgd.prompts import build_prompts
from iclgd.results import Array, Result, array
from iclgd.tools import Tools

Ready = tuple[list[LastToken], Seen]


def identity(cell: Cell, tools: Tools) -> Mapping[str, Any]:
    """What the cell's spec only points to: weights, and the examples drawn."""
    spec = _spec(cell)
    found = {"weights": tools.weights(spec.model), "episode": tools.episode(spec.task, spec.episode).sha256()}
    if isinstance(spec, HeadsCell):
        found["other"] = tools.episode(spec.other, spec.episode).sha256()
    return found


def run(cell: Cell, tools: Tools) -> Result:
    spec = _spec(cell)
    ground = _ground(spec, tools)
    facts = {"demonstrations": len(ground.prompts.demos), "queries": len(ground.prompts.queries)}
    if isinstance(spec, SwapCell):
        return _swaps(spec, ground, facts)
    if isinstance(spec, ExchangeCell):
        return _exchanged(spec, ground, facts)
    assert isinstance(spec, HeadsCell)
    return _heads(spec, ground, facts, tools)


def _spec(cell: Cell) -> CausalCell:
    assert isinstance(cell.spec, CausalCell)
    return cell.spec


def _ground(spec: CausalCell, tools: Tools) -> Ground:
    """The episode on its subject; cells of a group share it, with what it has read."""

    def make() -> Ground:
        subject, episode = tools.subject(spec.model), tools.episode(spec.task, spec.episode)
        return Ground(subject, episode, spec.prompt, spec.episode.seed, tools.progress)

    return tools.shared(("ground", spec.model, spec.task, spec.episode, spec.prompt), make)


# layers


def _swaps(spec: SwapCell, ground: Ground, facts: dict[str, Any]) -> Result:
    """Scores of every run, and of every run with another's layers in it, one at a time and all together."""
    ready: dict[Run, Ready] = {"zero-shot": ground.read("zero-shot"), "icl": ground.read("icl")}
    arrays: list[Array] = [array(torch.tensor(ground.prompts.answers), "query", quantity="answers")]
    with ground.trained(spec.rate) as (training, lasts, seen):
        if seen is not None:
            ready["gd"] = (lasts, seen)
            arrays += _into(ground, "gd", ready)
    for into in ("zero-shot", "icl"):
        arrays += _into(ground, into, ready)
    if spec.heads and "gd" in ready:
        arrays += _trained_heads(ground, ready["gd"][1])
    arrays += [array(seen.scores, "query", "label", quantity="scores", run=name) for name, (_, seen) in ready.items()]
    return Result({**facts, "diverged": training.diverged, "layers": ground.subject.layout.layers}, arrays)


def _into(ground: Ground, into: Run, ready: Mapping[Run, Ready]) -> Iterator[Array]:
    """What other runs' layers do in one; updates that are another query's or random ones go into the zero-shot run."""
    lasts, own = ready[into]
    sources = [source for source, target in SWAPS if target == into and source in ready]
    for site in WHERE:
        ours, values = getattr(own, site), dict[tuple[Run, str | None], Tensor]()
        for source in sources:
            theirs = getattr(ready[source][1], site)
            values[source, None] = theirs
            if into == "zero-shot":
                values[source, "other query"] = other_query(ours, theirs)
                values[source, "random"] = random_update(ours, theirs, ground.seed)
        found = ground.swapped(f"layers into {into}, {site}", lasts, list(values.values()), site)
        for (source, null), one in zip(values, found, strict=True):
            labels = {"source": source, "into": into, "site": site} | ({} if null is None else {"null": null})
            yield array(one[:-1], "layer", "query", "label", quantity="scores", **labels)
            yield array(one[-1], "query", "label", quantity="scores", layers="all", **labels)


# heads


def _trained_heads(ground: Ground, tuned: Seen) -> Iterator[Array]:
    """Training's heads in the zero-shot run one by one; another query's update of each, and a random one as long."""
    ours, theirs = ground.read("zero-shot")[1].heads, tuned.heads
    values: dict[str | None, Tensor] = {
        None: theirs,
        "other query": other_query(ours, theirs),
        "random": random_update(ours, theirs, ground.seed, ground.subject.layout.heads),
    }
    for null, one in values.items():
        found = put_in(ground, f"heads of gd into zero-shot, {null or 'its own'}", ground.read("zero-shot")[0], one)
        labels = {"source": "gd", "into": "zero-shot", "site": "heads"} | ({} if null is None else {"null": null})
        yield array(found, "layer", "head", "query", "label", quantity="scores", **labels)


def _exchanged(spec: ExchangeCell, ground: Ground, facts: dict[str, Any]) -> Result:
    """Single heads between reading and the finetuned model: what goes into that model runs on its weights."""
    ready: dict[str, Ready] = {"icl": ground.read("icl")}
    arrays: list[Array] = [array(torch.tensor(ground.prompts.answers), "query", quantity="answers")]

    def put(into: str) -> Iterator[Array]:
        for source, target in spec.exchanged:
            if target == into:
                lasts, values = ready[into][0], ready[source][1].heads
                found = put_in(ground, f"heads of {source} into {into}", lasts, values)
                labels = {"source": source, "into": into, "site": "heads"}
                yield array(found, "layer", "head", "query", "label", quantity="scores", **labels)

    with ground.trained(spec.rate) as (training, lasts, seen):
        if seen is not None:
            ready["gd"] = (lasts, seen)
            arrays += put("gd")
    if "gd" in ready:
        arrays += put("icl")
    arrays += [array(seen.scores, "query", "label", quantity="scores", run=name) for name, (_, seen) in ready.items()]
    return Result({**facts, "diverged": training.diverged}, arrays)


def _heads(spec: HeadsCell, ground: Ground, facts: dict[str, Any], tools: Tools) -> Result:
    """Each head's scores, reading's heads in the zero-shot run one by one, and sets of heads taken out."""
    arrays = [array(torch.tensor(ground.prompts.answers), "query", quantity="answers")]
    for run_ in ("zero-shot", "icl"):
        seen = ground.read(run_)[1]
        arrays.append(array(seen.scores, "query", "label", quantity="scores", run=run_))
    carried = put_in(ground, "heads of icl into zero-shot", ground.read("zero-shot")[0], ground.read("icl")[1].heads)
    arrays.append(array(carried, "layer", "head", "query", "label", quantity="scores", by="head"))
    found = head_scores(ground)
    arrays += [array(one, "layer", "head", quantity="head score", score=name) for name, one in found.items()]
    other = tools.episode(spec.other, spec.episode)
    text = build_prompts(ground.subject.tokenizer, other, spec.prompt, ground.subject.room).context
    for labels, chosen, scores in ablations(ground, found, text, spec.heads, spec.sets):
        places = [[int(layer), int(head)] for layer, head in chosen.nonzero()]
        arrays.append(array(places, "place", "which", quantity="heads", **labels))
        for run_, one in scores.items():
            arrays.append(array(one, "query", "label", quantity="scores", run=run_, **labels))
    heads = ground.subject.layout.heads
    return Result({**facts, "layers": ground.subject.layout.layers, "heads": heads, "text": len(text)}, arrays)
