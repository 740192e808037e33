"""One episode in many orders: what each learner does behind every one of them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from iclgd.bench import Bench, trains_together
from iclgd.errors import Refusal
from iclgd.lab import Cell
from iclgd.labs.order.anchors import anchors
from iclgd.labs.order.full_batch import FullBatch
from iclgd.labs.order.measures import overlap, spread
from iclgd.labs.order.spec import OrderCell, enough_orders
from iclgd.learners import Learner
from iclgd.learners.descent import GradientDescent
from iclgd.learners.prompted import InContext, ZeroShot
from iclgd.learners.together import Job, train_together
from iclgd.models.traces import Predictor
from iclgd.prompts import Prompts
from iclgd.results import Array, Result, array
from iclgd.tools import Tools

Seen = tuple[Float[Tensor, "query label"], Float[Tensor, "query layer dim"], Int[Tensor, "query top"]]


def identity(cell: Cell, tools: Tools) -> Mapping[str, Any]:
    spec = cell.asks(OrderCell)
    return {"weights": tools.weights(spec.model), "episode": tools.episode(spec.task, spec.episode).sha256()}


def run(cell: Cell, tools: Tools) -> Result:
    spec = cell.asks(OrderCell)
    subject, episode = tools.subject(spec.model), tools.episode(spec.task, spec.episode)
    bench = Bench(subject, episode, spec.prompt, spec.episode.seed, tools.episode, tools.progress)
    orders = permutations(len(bench.prompts.demos), spec.orders, spec.episode.seed)
    zero = next(_each(bench, ZeroShot(), [bench.prompts], spec.top))
    mixed = [replace(bench.prompts, demos=tuple(bench.prompts.demos[i] for i in order)) for order in orders]
    answers = torch.tensor(bench.prompts.answers)
    read = _seen(bench, "icl", InContext(), mixed, spec.top)
    arrays = measured("icl", read, zero, answers)
    for choice in spec.learners:
        learner = choice.make()
        named = {choice.label: learner}
        if type(learner) is GradientDescent:
            named[f"{choice.label}, all at once"] = FullBatch(learner)
        for label, one in named.items():
            found = _seen(bench, label, one, mixed, spec.top)
            arrays += measured(label, found, zero, answers)
            shared = torch.stack([overlap(a, b) for a, b in zip(found[2], read[2], strict=True)]).mean(0)
            arrays.append(array(shared, "query", quantity="overlap with icl", learner=label))
    unread = overlap(read[2], zero[2][None]).mean(0)
    arrays.append(array(unread, "query", quantity="overlap with icl", learner="zero-shot"))
    arrays.append(array(_right(zero[0][None], answers)[0], "query", quantity="zero-shot p"))
    arrays += [array(value, quantity="anchor", layer=name) for name, value in anchors(spec.orders, 0).items()]
    return Result(bench.facts() | {"model": subject.name, "orders": len(orders)}, arrays)


def permutations(count: int, orders: int, seed: int) -> list[tuple[int, ...]]:
    """So many different orders, the given one first."""
    enough_orders(count, orders)
    rng, found = np.random.default_rng(seed), {tuple(range(count)): None}
    while len(found) < orders:
        found[tuple(map(int, rng.permutation(count)))] = None
    return list(found)


def _seen(bench: Bench, label: str, learner: Learner, mixed: Sequence[Prompts], top: int) -> Any:
    """Label probabilities, outputs and likeliest tokens behind every order, stacked."""
    bench.progress(label, 0)
    return tuple(map(torch.stack, zip(*_each(bench, learner, mixed, top), strict=True)))


def _each(bench: Bench, learner: Learner, mixed: Sequence[Prompts], top: int) -> Iterator[Seen]:
    """What a learner does behind each order; those that can be are trained at once."""
    if trains_together(learner):
        jobs = [Job(learner, prompts, vectors=False) for prompts in mixed]  # type: ignore[arg-type]  # it descends
        for trained in train_together(bench.subject, jobs, lambda what: bench.progress(what, 0)):
            if trained.training.diverged:
                raise Refusal(f"training diverged: {trained.training.diverged}; lower `rates`.")
            with trained.installed() as predictor:
                yield _asked(bench, predictor, top)
        return
    for prompts in mixed:
        with learner.learn(bench.subject, prompts) as predictor:
            yield _asked(bench, predictor, top)


def _asked(bench: Bench, predictor: Predictor, top: int) -> Seen:
    trace = predictor.trace(replace(bench.prompts, blanks=()), ranked=0)  # nobody asks for calibrated answers here
    bench.progress("asking", len(bench.prompts.queries))
    with torch.no_grad():
        hidden = trace.blocks[:, -1, 0].to(bench.subject.device, bench.subject.dtype)
        likeliest = bench.subject.unembed(hidden).topk(top).indices
    return trace.scores.softmax(-1).cpu(), trace.outputs[:, :, 0].cpu(), likeliest.cpu()


def measured(label: str, found: Any, zero: Seen, answers: Tensor) -> list[Array]:
    """Of one learner: p of the right label, the updates' spread and the overlap of likeliest tokens over orders."""
    scores, outputs, likeliest = found
    pairs = list(combinations(range(len(scores)), 2))
    same = torch.stack([overlap(likeliest[i], likeliest[j]) for i, j in pairs]).mean(0)
    return [
        array(_right(scores, answers), "order", "query", quantity="p", learner=label),
        array(spread(outputs - zero[1]), "query", "layer", quantity="spread", learner=label),
        array(same, "query", quantity="overlap", learner=label),
    ]


def _right(scores: Float[Tensor, "order query label"], answers: Tensor) -> Float[Tensor, "order query"]:
    """p of the right label among the label words."""
    return scores.gather(-1, answers.expand(len(scores), -1)[..., None])[..., 0]
