"""Cells on what is trained from scratch or known in closed form: regressions, regular languages, modified attention."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from iclgd.labs.dual import small
from iclgd.labs.languages import run as languages
from iclgd.labs.linear import run as linear
from iclgd.metrics.nulls import noise_score
from iclgd.small import optimum
from iclgd.small.languages.prepare import Data, prepare
from iclgd.tasks.regression import FAMILIES

Arrays = dict[str, Tensor]


def numbers(values: Any) -> Tensor:
    """Nested lists of Python numbers as an array: in float32 if that holds them exactly, else in float64."""
    wide = torch.tensor(np.asarray(values, dtype=np.float64))
    narrow = wide.float()
    return narrow if torch.equal(narrow.double().nan_to_num(), wide.nan_to_num()) else wide


# linear


def linear_arrays(**given: Any) -> Arrays:
    """Everything a run gives; the columns of likeness are cosine, distance, prediction, spd, implied.

    A member's numbers change by rounding with who trains beside it: a batched product's backward pass rounds otherwise
    for one member than for many. From seeds trained one by one expect these to about 1e-6, not to the last bit, and
    behind an MLP, where training amplifies rounding, to less.

    Behind an MLP the reference "gd ×1 on learned features" is trained from the seed ``seeds``, one that no member
    uses: its numbers change with the number of seeds.
    """
    small_one: dict[str, Any] = {"dx": 4, "demos": 6, "seeds": 2, "steps": 30, "batch": 16, "episodes": 100}
    result = linear.run(linear.Experiment(**small_one | given))
    found = {"loss": result.loss}
    for name, row in result.references.items():
        found[f"{name}/loss"] = row["loss"]
        found[f"{name}/likeness"] = [list(alike.values()) for alike in row["likeness"]]
        if "risk" in row:
            found[f"{name}/risk"] = row["risk"]
    found |= {f"curve/{name}": values for name, values in result.curves.items()}
    for kind, shift in result.shifts.items():
        found[f"shift/{kind}"] = shift["model"]
        found |= {f"shift/{kind}/{name}": losses for name, losses in shift["references"].items()}
    for layer, table in result.layers.items():
        found |= {f"after layer {layer}/{name}": list(alike.values()) for name, alike in table.items()}
    return {name: numbers(values) for name, values in (found | flat("weights", result.weights)).items()}


def flat(name: str, tree: Any) -> dict[str, Any]:
    """Nested dicts as one, names joined by a slash."""
    if not isinstance(tree, dict):
        return {name: tree}
    return {key: value for part, inner in tree.items() for key, value in flat(f"{name}/{part}", inner).items()}


ALL = ("gd", "gd++", "momentum", "preconditioned", "ridge", "newton", "least-squares", "averaging", "nearest")


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


# dual and claims


def dual_trained() -> Arrays:
    """Test losses by epoch and seed: all arms on one regression, the plain one on others and on words."""
    recipe = small.Recipe(epochs=3, steps=8, batch=16, test=64)

    def on(sources: Sequence[small.Source], arm: small.Arm) -> Tensor:
        return small.curves(sources, arm, recipe)

    tasks = {name: small.find_task(name, 4, 6) for name in (*small.LINKS, "relu")}
    sources = {name: [small.Source(task, task)] * 3 for name, task in tasks.items()}
    words = prepare(Data(language="((a|b)c)*", encoder="pca", max_length=6, dims=4, k=6, seeds=3))
    sources["((a|b)c)*"] = [small.Source(*pair) for pair in words.tasks(6, True)]
    found = {f"{name}/normal": on(source, small.NORMAL) for name, source in sources.items()}
    found |= {f"trigonometric/{arm.panel} {arm.name}": on(sources["trigonometric"], arm) for arm in small.ARMS}
    return found


def noise() -> Arrays:
    """Scores of random updates, which the first claims are about."""
    return {m: noise_score(m, 3**0.5, dim=64, draws=20, seed=1) for m in ("SimAOU", "SimAOU_norm")}
