"""Kinds of layers against learners, and stacks against the paths of gradient descent and Newton: labs and numbers."""

import re

import numpy as np
import pytest
import torch

from iclgd.errors import Refusal
from iclgd.lab import LABS
from iclgd.labs.linear import depth, layers
from iclgd.labs.linear.stacks import DepthSpec, LayersSpec
from iclgd.results import Result, array
from iclgd.running import Where, run_study
from iclgd.small import construct, learners, paths
from iclgd.small.models import Transformer
from iclgd.study import Study
from iclgd.tasks.regression import Episodes
from iclgd.tools import Tools

torch.set_num_threads(1)
F64 = torch.float64
SMALL = {"dx": 2, "k": 4, "steps": 3, "batch": 4, "episodes": 40, "seeds": 2}


def demonstrations(seed=0, dx=3, demos=7, queries=4):
    g = torch.Generator().manual_seed(seed)
    x, query = (torch.randn(5, n, dx, generator=g, dtype=F64) for n in (demos, queries))
    return x, torch.randn(5, demos, 1, generator=g, dtype=F64), query


def test_paths_pass_through_gradient_descent_and_newton_at_whole_steps():
    x, y, _ = demonstrations()
    top = torch.linalg.matrix_norm(x.mT @ x, 2)[:, None, None]
    for n in (1, 2, 5, 16):
        torch.testing.assert_close(paths.along(x, y, n), learners.gd(x, y, 7 / top, n), atol=1e-12, rtol=0)
    for k in (1, 2, 4):
        torch.testing.assert_close(paths.along(x, y, 2.0**k, 2), learners.newton(x, y, k), atol=1e-12, rtol=0)


@pytest.mark.parametrize(("power", "steps"), [(1, 8.0), (2, 32.0)])
def test_an_answer_on_a_path_is_found_at_its_own_time(power, steps):
    x, y, query = demonstrations()
    answer = learners.predict(paths.along(x, y, steps, power), query)
    found, distance = paths.nearest(answer, x, y, query, depth.CLOCK, power)
    assert found == pytest.approx(steps)
    assert distance < 1e-20
    assert paths.nearest(answer, x, y, query, depth.CLOCK, 3 - power)[1] > 1e-6


def test_a_stack_of_gradient_steps_moves_along_the_path_by_addition():
    """Constructed layers with a rate below 1/λ of every episode: read by layer, n grows by addition."""
    spec = DepthSpec.of(SMALL | {"dx": 3, "k": 12, "layers": 3, "episodes": 400, "law": "sphere"})
    cell = spec.cells()[-1].spec
    rate = 0.3
    built = construct.gd_layer(3, 1, rate)
    params = {name: part.expand(3, -1, -1, -1).float() for name, part in built._asdict().items()}
    g = torch.Generator().manual_seed(0)
    held, others = (cell.family.draw(400, g) for _ in range(2))
    found = {
        (one.labels["quantity"], one.labels.get("path")): one.values
        for one in depth.measured(cell, params, held, others)
    }
    steps = found["steps", "gd"]
    assert np.all(np.diff(steps) > 0)
    assert 1 < depth.growth(steps[None])[0] < 1.8  # the read-out gives the first layer more than its step
    losses = [
        float((learners.predict(learners.gd(held.x, held.y, rate, n), held.query) - held.target).square().mean() / 2)
        for n in (1, 2, 3)
    ]
    assert np.all(found["loss", None] <= 1.02 * np.array(losses))  # the best read-out is no worse than the layer's own


def test_a_layer_that_answers_as_newton_or_as_gradient_descent_is_placed_on_that_path(monkeypatch):
    """Two of Newton's iterations, and eight steps of gradient descent."""
    monkeypatch.setattr(Transformer, "states", lambda self, params, episodes: [episodes.query, episodes.target])
    cell = DepthSpec.of(SMALL | {"dx": 3, "k": 7, "layers": 1}).cells()[0].spec
    x, y, query = demonstrations()
    top = torch.linalg.matrix_norm(x.mT @ x, 2)[:, None, None]
    newton = learners.predict(learners.newton(x, y, 2), query)
    descent = learners.predict(learners.gd(x, y, 7 / top, 8), query)

    def measured(answer):
        episodes = Episodes(x, y, query, answer)
        found = depth.measured(cell, {}, episodes, episodes)
        return {(one.labels["quantity"], one.labels.get("path")): float(one.values[0]) for one in found}

    on_newton, on_descent = measured(newton), measured(descent)
    assert (on_newton["steps", "newton"], on_descent["steps", "gd"]) == pytest.approx((4, 8))
    assert max(on_newton["distance", "newton"], on_descent["distance", "gd"]) < 1e-20
    assert min(on_newton["distance", "gd"], on_descent["distance", "newton"]) > 1e-6


def test_growth_of_doubling_is_two_and_of_adding_is_less():
    assert depth.growth(np.array([[1.0, 2.0, 4.0, 8.0]]))[0] == pytest.approx(2)
    assert 1.5 < depth.growth(np.array([[1.0, 2.0, 3.0, 4.0]]))[0] < 1.7


def planted_depth(*by_seed):
    spec = DepthSpec.of(SMALL | {"layers": len(by_seed[0]), "seeds": len(by_seed)})
    cells, results = spec.cells(), []
    for cell in cells:
        n = cell.labels["layers"]
        steps = by_seed[cell.labels["seed"]][:n]
        arrays = []
        for more in ({}, {"init": "random"}):
            arrays.append(array([0.5] * n, "layer", quantity="loss", **more))
            for path in depth.PATHS:
                arrays.append(array(steps, "layer", quantity="steps", path=path, **more))
                arrays.append(array([0.1] * n, "layer", quantity="distance", path=path, **more))
        results.append(Result({}, arrays))
    keys = [str(i) for i in range(len(cells))]
    return Study("linear depth", spec, cells, keys, dict(zip(keys, results, strict=True)), "")


def test_the_answer_on_depth_is_no_surer_than_its_interval():
    fast = planted_depth([1, 4, 16], [1, 4, 16.5], [1, 4.1, 16]).answer
    assert "after 1, 4, 16 steps" in fast
    assert "at least as fast as Newton's iteration" in fast
    assert "more slowly than Newton's" in planted_depth([1, 1.5, 2], [1, 1.5, 2.1], [1, 1.5, 2.05]).answer
    assert "is not shown" in planted_depth([1, 4, 16], [1, 1.1, 1.2], [1, 2, 4]).answer
    assert "more layers say" in planted_depth([2.0], [2.1]).answer


def planted_layers(spd, kinds=("linear", "delta")):
    """Distances by kind, learner and seed; gd is linear's learner, delta delta's own."""
    spec = LayersSpec.of(SMALL | {"kinds": kinds, "seeds": 3})
    cells, results = spec.cells(), []
    for cell in cells:
        kind, seed = cell.labels["attention"], cell.labels["seed"]
        arrays = [array(0.1, quantity="loss", learner="trained")]
        for name in ("gd", "delta", "zero"):
            labels = {"learner": f"{name} ×1", "name": name}
            arrays.append(array(0.2, quantity="loss", **labels))
            arrays.append(array(spd[kind][name][seed], quantity="spd", **labels))
            arrays.append(array(0.9, quantity="untrained spd", **labels))
        results.append(Result({}, arrays))
    keys = [str(i) for i in range(len(cells))]
    return Study("linear layers", spec, cells, keys, dict(zip(keys, results, strict=True)), "")


NEAR, FAR, LEVEL = [0.01, 0.011, 0.012], [0.5, 0.51, 0.52], [0.01, 0.012, 0.011]


def test_the_answer_on_layers_names_what_is_near_and_what_cannot_be_told():
    own = {"gd": NEAR, "delta": FAR, "zero": FAR}
    both = planted_layers({"linear": own, "delta": {"gd": FAR, "delta": NEAR, "zero": FAR}}).answer
    assert "2 are nearest to it after training (linear, delta)." in both
    swapped = planted_layers({"linear": own, "delta": own}).answer
    assert "1 is nearest to it after training (linear). A delta layer is nearest to gd ×1." in swapped
    level = planted_layers({"linear": own, "delta": {"gd": LEVEL, "delta": NEAR, "zero": FAR}}).answer
    assert re.search(
        r"A delta layer is nearest to (gd ×1 or delta|delta ×1 or gd) ×1, which of them is not shown", level
    )


def test_of_more_than_three_learners_that_are_as_near_the_answer_says_how_many():
    assert layers._either(["a", "b", "c"]) == "a or b or c"
    assert layers._either(["a", "b", "c", "d"]) == "one of 4 learners"


def test_kinds_run_together_have_the_numbers_of_each_alone():
    spec = LayersSpec.of(SMALL | {"kinds": "linear,longhorn", "seeds": 1})
    for beside, cell in zip(layers.together(spec.cells(), Tools()), spec.cells(), strict=True):
        alone = layers.run(cell, Tools())
        for a, b in zip(beside.arrays, alone.arrays, strict=True):
            assert dict(a.labels) == dict(b.labels)
            np.testing.assert_allclose(a.values, b.values, rtol=1e-4, atol=1e-7)


def test_stacks_run_together_have_the_numbers_of_each_alone():
    spec = DepthSpec.of(SMALL | {"layers": 2, "seeds": 1})
    for beside, cell in zip(depth.together(spec.cells(), Tools()), spec.cells(), strict=True):
        alone = depth.run(cell, Tools())
        for a, b in zip(beside.arrays, alone.arrays, strict=True):
            assert dict(a.labels) == dict(b.labels)
            np.testing.assert_allclose(a.values, b.values, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("lab", ["linear layers", "linear depth"])
def test_a_study_runs_once_and_shows_a_page(lab, tmp_path):
    more = {"kinds": "linear,softmax,gated-delta"} if lab == "linear layers" else {"layers": 2}
    spec = LABS[lab].spec.of(SMALL | more)
    first = run_study(lab, spec, Where(tmp_path / "cells", tmp_path / "page"))
    assert first.fresh == len(spec.cells())
    assert run_study(lab, spec, Where(tmp_path / "cells")).fresh == 0
    text = first.page.text(full=True)
    assert "null: untrained" in text
    assert (tmp_path / "page" / "index.html").exists()


@pytest.mark.parametrize(
    ("kind", "given", "said"),
    [
        (LayersSpec, {"kinds": "delta,mesaa"}, 'no attention "mesaa". Did you mean mesa'),
        (LayersSpec, {"task": "quadratic"}, "no linear part"),
        (LayersSpec, {"task": "sine", "dx": 1}, "no linear part"),
        (DepthSpec, {"k": 3}, "`k` has to be at least dx = 5"),
        (DepthSpec, {"task": "relu"}, "linear"),
        (DepthSpec, {"task": "sine", "dx": 1}, "least squares does not solve sine"),
        (DepthSpec, {"layers": 0}, "`layers` must be at least 1"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_a_sentence(kind, given, said):
    with pytest.raises(Refusal, match=said.replace("(", r"\(")):
        kind.of(given)


def test_a_training_that_diverges_is_refused():
    with pytest.raises(Refusal, match="diverged"):
        list(depth.together(DepthSpec.of(SMALL | {"rate": 1e12, "layers": 3, "steps": 30}).cells()[-2:], Tools()))


@pytest.mark.slow
def test_three_trained_layers_run_ahead_of_three_gradient_steps(tmp_path):
    study = run_study("linear depth", DepthSpec.of({"seeds": 2}), Where(tmp_path / "cells"))
    assert depth.growth(depth.of_layers(study, 3, "gd", "steps")).min() > 3
