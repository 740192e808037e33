"""Cells of `causal` on a tiny model and two little tasks."""

import numpy as np

from iclgd.labs.causal.ground import Ground
from iclgd.labs.causal.run import run
from iclgd.labs.causal.spec import CausalSpec
from iclgd.spec import PromptSpec
from iclgd.tools import Tools, silent

SEED = 3  # of the draw: nothing that is drawn by a seed is drawn by another one


def asked(tasks, **more) -> CausalSpec:
    task, other = map(str, tasks)
    given = {"model": "memory:tiny", "task": task, "other": other, "device": "cpu", "init": "trained"}
    return CausalSpec.of(given | {"k": 4, "queries": 5, "rates": 0.3, "heads": 2, "sets": 3, "seeds": (SEED,)} | more)


def ran(subject, tasks, part, **more):
    cell = next(one for one in asked(tasks, **more).cells() if one.labels["part"] == part)
    return run(cell, Tools(subjects={"memory:tiny": subject}))


def ground_of(subject, tasks) -> Ground:
    spec, tools = asked(tasks).cells()[0].spec, Tools()
    return Ground(subject, tools.episode(spec.task, spec.episode), PromptSpec(), SEED, silent)


def scores(result, **labels) -> np.ndarray:
    (found,) = result.select(quantity="scores", **{"null": None, "layers": None, "score": None, "draw": None} | labels)
    return found.values
