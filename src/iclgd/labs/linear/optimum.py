"""The lab `linear optimum`: closed forms and tuned learners on a linear family."""

from collections.abc import Sequence
from typing import Any

import torch

from iclgd.lab import Cell
from iclgd.labs.linear.spec import OptimumCell
from iclgd.report.numbers import Size, counted, significant
from iclgd.report.page import Entry, Page, Section, Table
from iclgd.results import Array, Result, array
from iclgd.small import optimum as best
from iclgd.small.train import one_thread
from iclgd.study import Study
from iclgd.tools import Tools


def run(cell: Cell, tools: Tools) -> Result:
    spec = cell.asks(OptimumCell)
    family = spec.family
    zero = float((best.weights_of(family).moment @ family.inputs.covariance).trace()) / 2
    rate, risk = best.one_step(family)
    found = [*_row("zero", zero), *_row("gd ×1", risk, [rate])]
    found += _row("preconditioned gd ×1", best.best_preconditioner(family)[1])
    with one_thread():
        drawn = family.draw(spec.sample, torch.Generator().manual_seed(0), dtype=torch.float64)
        for steps in range(2, spec.steps + 1):
            tools.progress(f"gd ×{steps}", 0)
            rate, risk = best.best_gd(family, drawn, steps)
            found += _row(f"gd ×{steps}", risk, [rate])
        for steps in range(2, spec.steps + 1):
            tools.progress(f"gd++ ×{steps}", 0)
            rates, curvatures, risk = best.best_gdpp(family, drawn, steps)
            found += _row(f"gd++ ×{steps}", risk, rates[:1].tolist(), curvatures[:1].tolist())
            for i, (rates, curvatures, risk) in enumerate(best.gdpp_minima(family, drawn, steps), 1):
                found += _row(f"gd++ ×{steps} untied {i}", risk, rates.tolist(), curvatures[:-1].tolist())
    return Result({}, found)


def _row(learner: str, risk: float, rates: Sequence[float] = (), curvatures: Sequence[float] = ()) -> list[Array]:
    parts: dict[str, Any] = {"rate": rates, "curvature": curvatures}
    found = [array(risk, quantity="risk", learner=learner)]
    return found + [array(v, "step", quantity=name, learner=learner) for name, v in parts.items() if len(v)]


def page(study: Study) -> Page:
    spec = study.spec
    assert isinstance(spec, OptimumCell)
    risks = {str(one.labels["learner"]): float(one.values) for one in study.arrays(quantity="risk")}

    def shown(quantity: str, learner: str) -> str:
        known = study.arrays(quantity=quantity, learner=learner)
        return " ".join(significant(value) for value in known[0].values) if known else ""

    rows: list[list[Entry]] = [
        [name, Size(risk), shown("rate", name), shown("curvature", name)] for name, risk in risks.items()
    ]
    layer, step, zero = (risks[name] for name in ("preconditioned gd ×1", "gd ×1", "zero"))
    answer = (
        f"The best preconditioned step has a risk of {significant(layer)} and the best plain gradient step "
        f"{significant(step)}, where the zero predictor has {significant(zero)}."
    )
    told = (
        "Risk is ½ squared error. zero, gd ×1 and preconditioned gd ×1 are in closed form, the others tuned on the "
        f"inputs of {counted(spec.sample, 'episode')}. untied: a rate and a curvature of its own at each step, all "
        "minima found."
    )
    return Page(
        "The best on a linear family",
        f"{spec.task} · {counted(spec.dx, 'input')} · {counted(spec.k, 'demonstration')} · noise {spec.noise:g} · "
        "risk is ½ squared error",
        answer,
        [Section("Best risks", told, Table(["", "risk", "rate", "curvature"], rows), brief=True)],
    )
