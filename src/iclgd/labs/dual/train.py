"""What a cell of `dual train` computes: one softmax layer with modified attention, trained from one seed."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from iclgd.errors import Refusal
from iclgd.lab import Cell
from iclgd.labs.dual.modifications import PLAIN
from iclgd.labs.dual.small import Source, curves, find_task, gd_reference
from iclgd.labs.dual.spec import TrainCell
from iclgd.results import Array, Result, array
from iclgd.small.languages.prepare import prepare
from iclgd.tools import Tools


def together(cells: Sequence[Cell], tools: Tools) -> Iterator[Result]:
    """All seeds of an arm train as one tensor program, to the numbers of training apart (but for rounding: 1e-5)."""
    for _, group in groupby(cells, key=lambda cell: _spec(cell).model_copy(update={"seed": 0})):
        specs = [_spec(cell) for cell in group]
        members = [(spec.seed, source_of(spec, tools)) for spec in specs]
        first = specs[0]
        tools.progress(f"training {first.arm.label} on {first.task}", 0)
        found = curves(members, first.arm.make(), first.recipe)
        bad = [spec.seed for spec, curve in zip(specs, found.T, strict=True) if not curve[-1].isfinite()]
        if bad:
            seeds = ", ".join(map(str, bad))
            raise Refusal(f"{first.arm.label} diverged on {first.task} from seed {seeds}: lower `rate`.")
        for spec, (seed, source), curve in zip(specs, members, found.T, strict=True):
            loss = array(curve, "epoch", quantity="loss")
            references = reference_losses(source, seed, spec) if spec.arm == PLAIN else []
            yield Result({}, [loss, *references])


def run(cell: Cell, tools: Tools) -> Result:
    return next(together([cell], tools))


def source_of(spec: TrainCell, tools: Tools) -> Source:
    """Where a seed's episodes come from.

    Words: the seed's own split and autoencoder, tested on words, or languages, that neither code nor layer was shown.
    """
    if spec.max_length is None:
        task = find_task(spec.task, spec.dx, spec.k)
        return Source(task, task)
    data = spec.words()
    signs = spec.task != "random"
    return tools.shared(("words", data), lambda: Source(*prepare(data).tasks(spec.k, signs)[0]))


def reference_losses(source: Source, seed: int, spec: TrainCell) -> list[Array]:
    """What the layer is to be compared with, on the same test episodes: the best constant, and one gradient step."""
    constant = source.held(seed, spec.episodes).target.var(correction=0)
    step = gd_reference(source, seed, spec.episodes)
    return [
        array(constant, quantity="reference", learner="best constant"),
        array(step, quantity="reference", learner="centred gd step"),
    ]


def _spec(cell: Cell) -> TrainCell:
    assert isinstance(cell.spec, TrainCell)
    return cell.spec
