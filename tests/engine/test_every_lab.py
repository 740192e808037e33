"""Every lab of this package runs in processes, and finds what it finds in one."""

import numpy as np
import pytest

from iclgd.engine.engines import Engine
from iclgd.lab import LABS
from iclgd.report.terminal import CellProgress
from iclgd.running import _job
from iclgd.store.cells import Store
from iclgd.tools import Tools
from little import little_model, little_task

MODEL = {"k": 3, "queries": 2}
SMALL = {"seeds": 2, "batch": 8, "episodes": 20, "k": 6}
SPECS = {
    "compare": {**MODEL, "seeds": 2, "learners": "gd", "nulls": "random", "floor": False, "contrast": False},
    "trace": MODEL,
    "dual check": MODEL,
    "dual bound": {**MODEL, "held": 1},
    "dual modify": {**MODEL, "modifications": "regularised:alpha=0.1"},
    "dual train": {**SMALL, "tasks": "linear", "arms": "regularised:alpha=0.1", "dx": 3, "epochs": 1, "steps": 2},
    "languages run": {**SMALL, "encoder": "pca", "steps": 4, "dims": 3, "max_length": 6},
    "languages all": {"seeds": 1, "shrink": 500},
    "languages sample": {"language": "a*bc*"},
    "languages list": {},
    "linear train": {**SMALL, "dx": 3, "steps": 4, "learners": "gd"},
    "linear layers": {**SMALL, "dx": 3, "steps": 4, "kinds": "linear,ttt"},
    "linear depth": {**SMALL, "dx": 3, "steps": 4, "layers": 2},
    "implicit": {"k": 2, "queries": 2, "init": "trained", "calibration": "1,2", "exact": 2, "tokens": 2},
    "causal": {"k": 2, "queries": 2, "init": "trained", "heads": 1, "sets": 2},
    "identities": {"names": "any-path-is-descent", "seeds": 2},
    "order": {**MODEL, "seeds": 2, "orders": 3, "learners": "gd"},
    "exits": MODEL,
    "linear optimum": {"task": "gaussian", "dx": 3, "steps": 1},
}


def test_the_list_has_every_lab():
    assert set(SPECS) == {name for name in LABS if LABS[name].spec.__module__.startswith("iclgd.")}


@pytest.mark.slow
def test_two_processes_give_the_cells_of_every_lab_to_rounding(tmp_path):
    model = {"model": str(little_model(tmp_path / "model")), "task": str(little_task(tmp_path)), "device": "cpu"}
    jobs = {}
    for name, given in SPECS.items():
        spec = LABS[name].spec.of(given | (model if "model" in LABS[name].spec.model_fields else {}))
        jobs |= {job.key: job for job in (_job(cell, Tools()) for cell in spec.cells()[:4])}
    assert {job.cell.lab for job in jobs.values()} >= set(SPECS) - {"languages all"}
    one, two = Store(tmp_path / "one"), Store(tmp_path / "two")
    Engine().run(list(jobs.values()), one, Tools(), CellProgress())
    Engine(jobs=2).run(list(jobs.values()), two, Tools(), CellProgress())
    for key, job in jobs.items():
        ours, theirs = one.read(key), two.read(key)
        assert [a.labels for a in ours.arrays] == [a.labels for a in theirs.arrays]
        for a, b in zip(ours.arrays, theirs.arrays, strict=True):
            np.testing.assert_allclose(a.values, b.values, rtol=1e-5, atol=1e-7, err_msg=f"{job.cell.lab} {a.labels}")
