"""A study of trained layers whose numbers are planted."""

import numpy as np

from iclgd.labs.linear.spec import TrainSpec
from iclgd.metrics.functions import Likeness
from iclgd.results import Result, array
from iclgd.study import Study

METRICS = {"metric": Likeness._fields}


STEPS = {"step": (0, 10, 20)}


SHIFTS = {"input scale": (0.5, 2.0), "label scale": (1.0, 5.0), "law": ("normal", "sphere"), "random labels": (0, 3)}


def planted(seed, spd=(0.1, 0.5), losses=(0.30, 0.29, 0.35, 0.5)):
    """One seed's result; ``spd`` are the distances to gd ×1 and ridge, ``losses`` of trained, gd ×1, ridge, zero."""
    wobble = 0.01 * (seed - 1)
    trained, *others = losses
    arrays = [array(trained + wobble, quantity="loss", learner="trained")]
    arrays.append(
        array(
            [0.9 + wobble, 0.6, trained + wobble], "step", coordinates=STEPS, quantity="loss by step", learner="trained"
        )
    )
    for i, (name, own) in enumerate(zip(("gd ×1", "ridge", "zero"), others, strict=True)):
        distance = (*spd, 0.9)[i] + wobble
        alike = [0.99 - 0.1 * i + wobble, 1.0 + i, 2.0 + i, distance, 3.0 + i]
        arrays += [
            array(own, quantity="loss", learner=name),
            array(alike, "metric", coordinates=METRICS, quantity="likeness", learner=name),
            array(
                [[0.01 + 0.4 * i + wobble, 1, 4.0], [0.5, 1, 3.0], [0.9, 1, 2.0]],
                "step",
                "metric",
                coordinates=STEPS | {"metric": Likeness._fields[:3]},
                quantity="likeness by step",
                learner=name,
            ),
        ]
    arrays.append(array(0.2875, quantity="risk", learner="gd ×1"))
    for j, (kind, values) in enumerate(SHIFTS.items()):
        for i, name in enumerate(("trained", "gd ×1", "ridge", "zero")):
            shifted = [1.0 + j + 10 * i + wobble * (i == 0), 2.0 + j + 10 * i]
            arrays.append(
                array(
                    shifted, "value", coordinates={"value": values}, quantity="shifted loss", shift=kind, learner=name
                )
            )
    arrays += [
        array(0.6 + wobble, quantity="rate / N", learner="trained"),
        array(0.61, quantity="rate / N", learner="gd ×1"),
        array(0.05 + wobble, quantity="weight distance", learner="gd"),
        array(0.04 + wobble, quantity="weight distance", learner="preconditioned"),
        array(0.295 + wobble, quantity="half-way loss"),
    ]
    for side, value in (("learned", 1.5 + seed), ("constructed", 1.0)):
        for matrix, scale in (("qk", 1), ("pv", -6)):
            arrays.append(
                array(value * scale * np.eye(3), "row", "column", quantity="weights", side=side, matrix=matrix)
            )
    layers = np.zeros((2, 4, 5))
    layers[0, :, 3] = [4.0, 1.0 + wobble, 3.0, 2.0]
    layers[1, :, 3] = [0.5 + wobble, 1.0, 5.0, 2.0]
    places = {"layer": (1, 2), "learner": ("a", "b", "c", "d")} | METRICS
    arrays.append(array(layers, "layer", "learner", "metric", coordinates=places, quantity="likeness by layer"))
    return Result({}, arrays)


def study(seeds=3, **change):
    spec = TrainSpec.of({"dx": 2, "k": 4, "learners": "gd,ridge", "seeds": seeds})
    cells = spec.cells()
    keys = [str(cell.spec.seed) for cell in cells]
    return Study("linear train", spec, cells, keys, {key: planted(int(key), **change) for key in keys})


def replaced(of, quantity, **changes):
    """The same study with the values of one quantity set, learner by learner."""
    for result in of.results.values():
        for one in result.select(quantity=quantity):
            if (name := str(one.labels["learner"])) in changes:
                one.values[...] = changes[name]
    return of
