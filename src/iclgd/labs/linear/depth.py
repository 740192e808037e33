"""The lab `linear depth`: how far along the paths of gradient descent and Newton's iteration a stack's layers are."""

import math
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import torch
from torch import Tensor

from iclgd.lab import Cell
from iclgd.labs.linear.exam import evaluation
from iclgd.labs.linear.fitting import fitted
from iclgd.labs.linear.page import estimate
from iclgd.labs.linear.stacks import DepthCell, DepthSpec
from iclgd.metrics.functions import half_square
from iclgd.report.numbers import Size, counted
from iclgd.report.page import Entry, Page, Section, Table
from iclgd.results import Array, Label, Result, array
from iclgd.small.paths import nearest
from iclgd.small.train import Params, one_thread
from iclgd.study import Study
from iclgd.tasks.regression import Episodes
from iclgd.tools import Tools

CLOCK = 2 ** torch.linspace(-2, 12, 141, dtype=torch.float64)  # steps of gradient descent, or 2^iterations
PATHS = {"gd": 1, "newton": 2}


def run(cell: Cell, tools: Tools) -> Result:
    return next(together([cell], tools))


def together(cells: Sequence[Cell], tools: Tools) -> Iterator[Result]:
    specs = [cell.asks(DepthCell) for cell in cells]
    with one_thread():
        for _, some in groupby(specs, key=lambda spec: spec.layers):
            seeds = list(some)
            tools.progress(f"training {counted(seeds[0].layers, 'layer')}", 0)
            for spec, params in zip(seeds, fitted(seeds), strict=True):
                start, fresh = spec.model.init(spec.seed), evaluation(spec.seed)
                held, other = (spec.family.draw(spec.episodes, fresh) for _ in range(2))
                arrays = [*measured(spec, params, held, other), *measured(spec, start, held, other, init="random")]
                yield Result({"task": spec.task, "layers": spec.layers, "seed": spec.seed}, arrays)


def measured(cell: DepthCell, params: Params, held: Episodes, others: Episodes, **labels: Label) -> list[Array]:
    """For each layer the place of its answer on both paths, its distance to them, and its loss.

    A layer is read by the linear map from the query's token to the label that is best on other episodes (Fu 2023).
    """
    places: dict[str, list[tuple[float, float]]] = {name: [] for name in PATHS}
    losses = []
    x, y, query = (part.double() for part in (held.x, held.y, held.query))
    for own, other in zip(cell.model.states(params, held)[1:], cell.model.states(params, others)[1:], strict=True):
        answer = own.double() @ read_out(other, others.target)
        losses.append(float(half_square(answer, held.target.double())))
        for name, power in PATHS.items():
            places[name].append(nearest(answer, x, y, query, CLOCK, power))
    layers: dict[str, tuple[Label, ...]] = {"layer": tuple(range(1, cell.layers + 1))}
    arrays = [array(losses, "layer", coordinates=layers, quantity="loss", **labels)]
    for name, found in places.items():
        for i, quantity in enumerate(("steps", "distance")):
            values = [place[i] for place in found]
            arrays.append(array(values, "layer", coordinates=layers, quantity=quantity, path=name, **labels))
    return arrays


def read_out(state: Tensor, target: Tensor) -> Tensor:
    return torch.linalg.lstsq(state.double().flatten(0, -2), target.double().flatten(0, -2)).solution


# the page


def of_layers(study: Study, layers: int, path: str, quantity: str, init: str | None = None) -> np.ndarray:
    """[seed, layer] of the stack of that depth."""
    labels: dict[str, Any] = {"layers": layers, "quantity": quantity, "path": path or None, "init": init}
    return np.stack([one.values for one in study.arrays(**labels)])


def growth(steps: np.ndarray) -> np.ndarray:
    """By seed, how many times as far along gradient descent's path each layer is as the one before: least squares."""
    return 2 ** np.polyfit(np.arange(steps.shape[1]), np.log2(steps).T, 1)[0]


def page(study: Study) -> Page:
    spec = study.spec
    assert isinstance(spec, DepthSpec)
    told = (
        "Where on the path of gradient descent (from 0, rate 1/λ of the largest direction) the answer is nearest, to a "
        "tenth of a doubling, and its mean squared distance from there; the same for Newton's iterations from αS. Both "
        f"begin at {float(CLOCK[0]):g} of a step, which is what stands beside an answer that is on neither; an "
        "interval without width says that all seeds are at one tenth. A layer is read by the best linear map from its "
        "token; brackets are 95% over seeds, each judged on episodes of its own, Student's t."
    )
    each = Section("Layer by layer", told, _table(study, [(spec.layers, i) for i in range(spec.layers)]), brief=True)
    last = [(depth, depth - 1) for depth in range(1, spec.layers + 1)]
    whole = Section("Stack by stack", "The last layer of stacks of each depth.", _table(study, last), brief=True)
    what = (
        f"{spec.task} · {spec.dx} → 1 · k = {spec.k} · noise {spec.noise:g} · up to {counted(spec.layers, 'layer')} of "
        f"linear attention · {counted(len(spec.seeds), 'seed')} × {spec.steps} steps of {spec.batch}"
    )
    return Page("Gradient descent or Newton, by depth", what, answer(study), [each, whole])


def _table(study: Study, rows: Sequence[tuple[int, int]]) -> Table:
    shown: list[list[Entry]] = []
    for init in (None, "random"):
        for depth, layer in rows if init is None else rows[-1:]:

            def sized(path: str, quantity: str, d: int = depth, at: int = layer, init: str | None = init) -> Size:
                return Size(*_estimate(of_layers(study, d, path, quantity, init)[:, at]), digits=3)

            iterations = np.log2(of_layers(study, depth, "newton", "steps", init)[:, layer])
            newton = Size(*_estimate(iterations, -math.inf), digits=3)
            name = str(layer + 1) if init is None else "null: untrained"
            numbers = [sized("", "loss"), sized("gd", "steps"), sized("gd", "distance")]
            shown.append([name, *numbers, newton, sized("newton", "distance")])
    return Table(
        ["layer", "loss", "steps of gd", "distance from gd", "Newton's iterations", "distance from Newton"], shown
    )


def _estimate(values: np.ndarray, low: float = 0.0) -> tuple[float, float, float]:
    found = estimate(values, low)
    return found.value, found.low, found.high


def answer(study: Study) -> str:
    """By how much each layer multiplies the steps, beside what one gradient step and one iteration a layer would do."""
    assert isinstance(study.spec, DepthSpec)
    depth = study.spec.layers
    steps = of_layers(study, depth, "gd", "steps")
    means = ", ".join(str(Size(float(x), digits=2)) for x in steps.mean(0))
    if depth == 1:
        return f"One layer stands where gradient descent stands after {means} steps; more layers say how that grows."
    times, added = estimate(growth(steps)), float(growth(np.arange(1.0, depth + 1)[None])[0])
    return (
        f"After its layers the stack stands where gradient descent stands after {means} steps: "
        f"× {Size(times.value, times.low, times.high, digits=3)} a layer, where one step a layer has "
        f"× {Size(added, digits=3)} and one of Newton's iterations × 2; {_verdict(times, added)}."
    )


def _verdict(times: Size, added: float) -> str:
    """Which of the two it follows, no surer than the interval; ``added``: the growth of one gradient step a layer."""
    if times.low > added:
        return "it grows faster than gradient descent does with one step a layer" + (
            ", and at least as fast as Newton's iteration" if times.low >= 2 else ""
        )
    if times.high < 2:
        return "it grows more slowly than Newton's iteration"
    return "which of the two it follows is not shown"
