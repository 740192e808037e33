"""The tables of `linear layers` and `linear depth`, from results in which no two places hold the same number."""

import math
from collections import Counter

import numpy as np
import pytest

from iclgd.labs.linear import depth, layers
from iclgd.labs.linear.stacks import DepthSpec, LayersSpec
from iclgd.report.numbers import Size
from iclgd.results import Result, array
from iclgd.study import Study
from iclgd.tools import Tools

SMALL = {"dx": 2, "k": 4, "steps": 3, "batch": 4, "episodes": 40}


def study_of(lab, spec, result) -> Study:
    cells = spec.cells()
    keys = [str(i) for i in range(len(cells))]
    return Study(lab, spec, cells, keys, {key: result(cell) for key, cell in zip(keys, cells, strict=True)}, "")


def stacks(layers: int = 3, seeds: str = "1,2") -> Study:
    """At layer l (from 1) of n: loss .1 n + .011 l, 2^l steps of gd, 2^(l + 1) of Newton's path; untrained × 10."""

    def result(cell) -> Result:
        n = cell.labels["layers"]
        at = np.arange(1.0, n + 1)
        arrays = []
        for more, times in (({}, 1.0), ({"init": "random"}, 10.0)):
            arrays.append(array(times * (0.1 * n + 0.011 * at), "layer", quantity="loss", **more))
            for path, extra, far in (("gd", 0, 0.5), ("newton", 1, 0.25)):
                steps = times * 2 ** (at + extra)
                arrays.append(array(steps, "layer", quantity="steps", path=path, **more))
                arrays.append(array(times * far * at, "layer", quantity="distance", path=path, **more))
        return Result({}, arrays)

    return study_of("linear depth", DepthSpec.of(SMALL | {"layers": layers, "seeds": seeds}), result)


def middles(table) -> list[list[str]]:
    return [[str(row[0]), *(str(entry).split(" ")[0] for entry in row[1:])] for row in table.rows]


def test_every_layer_of_the_deepest_stack_has_its_place_on_both_paths():
    shown = depth.page(stacks())
    assert middles(shown.table("Layer by layer")) == [
        ["1", ".311", "2", ".5", "2", ".25"],
        ["2", ".322", "4", "1", "3", ".5"],
        ["3", ".333", "8", "1.5", "4", ".75"],
        ["null: untrained", "3.33", "80", "15", "7.32", "7.5"],  # log₂ 160
    ]


def test_stacks_of_every_depth_are_shown_by_their_last_layers():
    shown = depth.page(stacks())
    assert middles(shown.table("Stack by stack")) == [
        ["1", ".111", "2", ".5", "2", ".25"],
        ["2", ".222", "4", "1", "3", ".5"],
        ["3", ".333", "8", "1.5", "4", ".75"],
        ["null: untrained", "3.33", "80", "15", "7.32", "7.5"],
    ]
    assert [section.brief for section in shown.sections] == [True, True]
    assert shown.subtitle == (
        "gaussian · 2 → 1 · k = 4 · noise 0 · up to 3 layers of linear attention · 2 seeds × 3 steps of 4"
    )


def test_doubling_is_as_fast_as_newton_and_one_layer_has_no_growth():
    assert depth.page(stacks()).answer == (
        "After its layers the stack stands where gradient descent stands after 2, 4, 8 steps: × 2 [2 2] a layer, where "
        "one step a layer has × 1.73 and one of Newton's iterations × 2; it grows faster than gradient descent does "
        "with one step a layer, and at least as fast as Newton's iteration."
    )
    assert depth.page(stacks(layers=1)).answer == (
        "One layer stands where gradient descent stands after 2 steps; more layers say how that grows."
    )


@pytest.mark.parametrize(
    "times, says",
    [
        (1.74, "with one step a layer."),
        (1.72, "it grows more slowly than Newton's iteration."),
        (2.1, "at least as fast"),
    ],
)
def test_growth_is_held_against_one_step_a_layer_and_against_doubling(times, says):
    study = stacks()
    for result in study.results.values():
        for one in result.select(quantity="steps", path="gd"):
            one.values[:] = times ** np.arange(1.0, len(one.values) + 1)
    assert says in depth.answer(study)


@pytest.mark.parametrize(
    "low, high, says",
    [
        (2.0, 2.5, "it grows faster than gradient descent does with one step a layer, and at least as fast as Newton"),
        (1.9, 2.5, "it grows faster than gradient descent does with one step a layer"),
        (1.7, 2.5, "which of the two it follows is not shown"),
        (1.7, 2.0, "which of the two it follows is not shown"),
        (1.5, 1.9, "it grows more slowly than Newton's iteration"),
        (math.nan, math.nan, "which of the two it follows is not shown"),
    ],
)
def test_what_is_said_of_growth_is_what_its_whole_interval_says(low, high, says):
    said = depth._verdict(Size(2.0, low, high), added=1.7)
    assert said.startswith(says)
    assert ("Newton" in said) == ("Newton" in says)


def kinds(seeds: str = "1,2,3") -> Study:
    """A layer's distance to a learner is .1, .2, … by learner, nearest to its own; seeds .001 apart."""
    order = {"linear": ["gd", "delta", "zero"], "delta": ["delta", "zero", "gd"]}

    def result(cell) -> Result:
        kind, seed = cell.labels["attention"], cell.labels["seed"]
        arrays = [array(0.3 + 0.1 * (kind == "delta"), quantity="loss", learner="trained")]
        for place, name in enumerate(("gd", "delta", "zero")):
            labels = {"learner": f"{name} ×1", "name": name}
            arrays.append(array(0.512 + 0.1 * place, quantity="loss", **labels))
            arrays.append(array(0.1 + 0.1 * order[kind].index(name) + 0.001 * seed, quantity="spd", **labels))
            arrays.append(array(0.7 + 0.1 * place, quantity="untrained spd", **labels))
        return Result({}, arrays)

    return study_of("linear layers", LayersSpec.of(SMALL | {"kinds": "linear,delta", "seeds": seeds}), result)


def test_kinds_of_layers_stand_beside_every_learner_with_its_loss_and_what_is_untrained():
    shown = layers.page(kinds())
    table = shown.table()
    assert list(table.header) == ["", "loss", "nearest", "gd ×1", "delta ×1", "zero ×1"]
    assert [[str(entry).split(" [")[0] for entry in row] for row in table.rows] == [
        ["linear", ".3", "gd ×1", ".1", ".2", ".3"],
        ["delta", ".4", "delta ×1", ".3", ".1", ".2"],
        ["(its own loss)", "", "", ".512", ".612", ".712"],
        ["null: untrained", "", "", "", "", ".9"],
    ]
    assert [section.brief for section in shown.sections] == [True]
    assert shown.subtitle == "linear · 2 → 1 · k = 4 · noise 0.2 · 1 layer each · 3 seeds × 3 steps of 4"


def test_no_kind_that_is_nearest_to_its_learner_is_said_to_be_none():
    study = kinds()
    for cell, result in study.found():
        for one in result.select(quantity="spd"):
            one.values[...] = 0.01 if one.labels["name"] == "zero" else 0.5 + 0.001 * cell.labels["seed"]
    assert layers.answer(study) == (
        "Of 2 kinds of layer that are a learner by construction, none is nearest to it after training. A linear layer "
        "is nearest to zero ×1. A delta layer is nearest to zero ×1."
    )


@pytest.mark.parametrize("lab", [layers, depth])
def test_trainings_are_said_kind_by_kind_and_depth_by_depth(lab):
    said: Counter[str] = Counter()
    spec = LayersSpec.of(SMALL | {"kinds": "linear,delta", "seeds": 2}) if lab is layers else None
    spec = spec or DepthSpec.of(SMALL | {"layers": 2, "seeds": 2})
    list(lab.together(spec.cells(), Tools(progress=lambda what, done: said.update({what: done + 1}))))
    expected = {"learners at their best": 1, "training linear": 1, "training delta": 1}
    assert dict(said) == (expected if lab is layers else {"training 1 layer": 1, "training 2 layers": 1})
