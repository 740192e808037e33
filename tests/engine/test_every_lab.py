"""Every lab of this package runs in processes, and finds what it finds in one."""

import numpy as np
import pytest

from every_lab import SPECS
from iclgd.engine.engines import Engine
from iclgd.lab import LABS
from iclgd.report.terminal import CellProgress
from iclgd.running import _job
from iclgd.store.cells import Store
from iclgd.tools import Tools
from little import little_model, little_task


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
