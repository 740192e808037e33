"""Cells of the linear lab: regressions trained from scratch, and what is known of them in closed form."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from iclgd.labs.linear.run import together
from iclgd.labs.linear.spec import TrainSpec
from iclgd.metrics.functions import Likeness
from iclgd.results import Result
from iclgd.small import optimum
from iclgd.tasks.families import FAMILIES
from iclgd.tools import Tools

Arrays = dict[str, Tensor]
ALL = ("gd", "gd++", "momentum", "preconditioned", "ridge", "newton", "least-squares", "averaging", "nearest")


def numbers(values: Any) -> Tensor:
    """Nested lists of Python numbers as an array: in float32 if that holds them exactly, else in float64."""
    wide = torch.tensor(np.asarray(values, dtype=np.float64))
    narrow = wide.float()
    return narrow if torch.equal(narrow.double().nan_to_num(), wide.nan_to_num()) else wide


def linear_arrays(**given: Any) -> Arrays:
    """Everything a run gives; the columns of likeness are cosine, distance, prediction, spd, implied.

    A member's numbers change by rounding with who trains beside it: a batched product's backward pass rounds otherwise
    for one member than for many. From seeds trained one by one expect these to about 1e-6, not to the last bit, and
    behind an MLP, where training amplifies rounding, to less.
    """
    small_one: dict[str, Any] = {"dx": 4, "k": 6, "seeds": 2, "steps": 30, "batch": 16, "episodes": 100}
    results = list(together(TrainSpec(**small_one | given).cells(), Tools()))
    found: dict[str, Any] = {"loss": over_seeds(results, quantity="loss", learner="trained")}
    names = [one.labels["learner"] for one in results[0].select(quantity="likeness")]
    for name in names:
        found[f"{name}/loss"] = over_seeds(results, quantity="loss", learner=name)
        found[f"{name}/likeness"] = over_seeds(results, quantity="likeness", learner=name)
    for one in results[0].select(quantity="risk"):
        found[f"{one.labels['learner']}/risk"] = one.values
    curves = {q: over_seeds(results, 1, quantity=f"{q} by step", learner="trained") for q in ("loss",)}
    curves["step"] = results[0].select(quantity="loss by step")[0].coordinates["step"]
    alike = np.stack([over_seeds(results, 1, quantity="likeness by step", learner=name) for name in names], 2)
    curves |= {metric: alike[..., i] for i, metric in enumerate(Likeness._fields[:3])}  # [step, seed, reference]
    found |= {f"curve/{name}": values for name, values in curves.items()}
    for one in results[0].select(quantity="shifted loss"):
        kind, learner = one.labels["shift"], one.labels["learner"]
        name = f"shift/{kind}" if learner == "trained" else f"shift/{kind}/{learner}"
        found[name] = over_seeds(results, 1, quantity="shifted loss", shift=kind, learner=learner)
    for one in results[0].select(quantity="likeness by layer"):
        for i, layer in enumerate(one.coordinates["layer"]):
            for j, learner in enumerate(one.coordinates["learner"]):
                found[f"after layer {layer}/{learner}"] = one.values[i, j]
    return {name: numbers(values) for name, values in (found | linear_weights(results)).items()}


def linear_weights(results: list[Result]) -> dict[str, Any]:
    if not results[0].select(quantity="weights"):
        return {}
    found = {
        "implied rate / N": over_seeds(results, quantity="rate / N", learner="trained"),
        "optimal rate / N": only(results[0], quantity="rate / N", learner="gd ×1"),
        "half-way loss": over_seeds(results, quantity="half-way loss"),
    }
    for learner in ("gd", "preconditioned"):
        found[f"distance/{learner}"] = over_seeds(results, quantity="weight distance", learner=learner)
    for one in results[0].select(quantity="weights"):
        found[f"{one.labels['side']}/{one.labels['matrix']}"] = one.values
    return {f"weights/{name}": values for name, values in found.items()}


def only(result: Result, **labels: Any) -> np.ndarray:
    (one,) = result.select(**labels)
    return one.values


def over_seeds(results: list[Result], axis: int = 0, **labels: Any) -> np.ndarray:
    return np.stack([only(result, **labels) for result in results], axis)


def linear_optimum() -> Arrays:
    """Closed forms, and the rates that are tuned on a sample."""
    found: dict[str, Any] = {}
    for name, noise in (("linear", 0.0), ("gaussian", 0.5), ("skewed", 0.3), ("relu", 0.0)):
        task = FAMILIES[name](4, 1, 6, noise)
        sample = task.draw(100, torch.Generator().manual_seed(5), dtype=torch.float64)
        closed = {"fitted preconditioner": optimum.fitted_preconditioner(sample)}
        if name != "relu":
            closed["one step"] = optimum.one_step(task)
            closed["preconditioner"], closed["preconditioner risk"] = optimum.best_preconditioner(task)
            closed["off scale"] = optimum.one_step_off_scale(task, 1.0, 1.5)
        closed["first rate"] = optimum.first_rate(task, sample)
        closed["gd ×3"] = optimum.best_gd(task, sample, 3)
        tied = optimum.best_gdpp(task, sample, 2)
        minima = optimum.gdpp_minima(task, sample, 2)
        closed["gd++ ×2"] = [*tied[0].tolist(), *tied[1].tolist(), tied[2]]
        closed["gd++ ×2 untied"] = [[*a.tolist(), *b.tolist(), risk] for a, b, risk in minima]
        found |= {f"{name}/{key}": value for key, value in closed.items()}
    w = torch.linspace(-1, 1, 4, dtype=torch.float64)
    found["zhang"] = optimum.zhang_risk(torch.diag(torch.arange(1.0, 5)), w, 10, 20)
    found["garg"] = [optimum.garg_errors(10, demos) for demos in (5, 20)]
    return {key: value if isinstance(value, Tensor) else numbers(value) for key, value in found.items()}
