"""What a cell of `compare` costs before any was run: the passes that it will make, in multiplications and additions."""

from collections.abc import Iterator
from typing import Any

from iclgd.bench import FLOOR_QUERIES, Bench, trains_together
from iclgd.lab import Cell
from iclgd.labs.compare.run import contrasts, wanted
from iclgd.labs.compare.spec import CompareCell
from iclgd.learners.course import Trainable
from iclgd.models.arithmetic import WIDE, Arithmetic, Unloaded
from iclgd.prompts import Prompts
from iclgd.tools import Tools, silent


def flops(cell: Cell, tools: Tools) -> float | None:
    """Of reading, or of a learner with the trainings of its nulls and its contrast, and the traces behind them.

    None of a learner that is not trained step by step: what it does is its own business. What all learners of an
    episode share (zero-shot, reading) is counted with reading.
    """
    spec = cell.asks(CompareCell)
    bench, cost = _bench(spec, tools)
    asked = bench.prompts
    if spec.learner is None:
        return sum(_reading(spec, bench, cost))
    if spec.versus is not None:
        return 0.0  # both were traced for their own cells
    learner = spec.learner.make()
    if not trains_together(learner):
        return None
    what = ("wanted", *_place(spec), spec.nulls, spec.metrics, spec.contrast)
    courses: list[Prompts] = tools.shared(what, lambda: [one.demos for one in wanted(spec, bench)])
    training = [_training(cost, learner, bench, demos) for demos in courses]
    noise = sum(null.name == "weight-noise" for null in spec.nulls)
    total = sum(training) + (len(courses) + noise) * _trace(cost, asked)
    if spec.floor:  # traced in other batches; trained and traced once more, wider
        again = _trace(cost, asked) + WIDE * (training[0] + _trace(cost, asked, FLOOR_QUERIES))
        total += again * _times(spec)
    return total


def _place(spec: CompareCell) -> tuple[Any, ...]:
    return spec.model.name, spec.task, spec.episode, spec.prompt


def _bench(spec: CompareCell, tools: Tools) -> tuple[Bench, Arithmetic]:
    """The episode in tokens, on a model that is not loaded: it can be asked what is to be trained on, and no more."""
    held = tools.shared(("unloaded", spec.model.name), lambda: Unloaded(spec.model))

    def make() -> Bench:
        episode = tools.episode(spec.task, spec.episode)
        return Bench(held, episode, spec.prompt, spec.episode.seed, tools.episode, silent)

    return tools.shared(("unloaded bench", *_place(spec)), make), held.cost


def _trace(cost: Arithmetic, prompts: Prompts, queries: int | None = None, context: int | None = None) -> float:
    """Queries, each with a label word behind it, behind a context; longer label words are read once each."""
    behind = len(prompts.bos) if context is None else context
    asked = prompts.queries[:queries] + prompts.blanks
    longest = max(map(len, prompts.labels))
    found = cost.read((len(query) + len(prompts.labels[0]) for query in asked), behind, rows=len(asked))
    if longest > 1:
        for start in {label[:-1] for label in prompts.labels}:
            found += cost.read((len(query) + len(start) for query in asked), behind, rows=longest * len(asked))
    return found


def _reading(spec: CompareCell, bench: Bench, cost: Arithmetic) -> Iterator[float]:
    """Asked alone, behind right labels and behind wrong ones; the floor once more, and wider."""
    prompts, length = bench.prompts, len(bench.prompts.context)
    behind = cost.read([length]) + _trace(cost, prompts, context=length)
    yield _trace(cost, prompts) + behind * (1 + spec.contrast + spec.floor * _times(spec))
    if spec.floor:
        few = _trace(cost, prompts, FLOOR_QUERIES)
        yield WIDE * (few + _times(spec) * (cost.read([length]) + _trace(cost, prompts, FLOOR_QUERIES, length)))


def _times(spec: CompareCell) -> int:
    """How often a noise floor learns: what labels change takes right and wrong ones."""
    return 2 if contrasts(spec) else 1


def _training(cost: Arithmetic, learner: Trainable, bench: Bench, demos: Prompts) -> float:
    part, predictions = learner.trains, learner.predictions(bench.subject)
    return sum(cost.train(part, len(step.ids), len(step.targets), predictions) for step in learner.course(demos))
