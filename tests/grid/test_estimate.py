"""What is left to do, guessed from its arithmetic where nothing like it was run."""

import pytest
import torch

from iclgd.engine.work import Job
from iclgd.grid import estimate
from iclgd.grid.estimate import EFFICIENCY, by_arithmetic, costs, foretold, pace
from iclgd.lab import LABS
from iclgd.labs.compare.spec import CompareSpec
from iclgd.report.pace import Guess
from iclgd.store.cells import Store
from iclgd.tools import Tools
from little import little_model, little_task


@pytest.fixture(autouse=True)
def speed(monkeypatch):
    monkeypatch.setattr(estimate, "speed", lambda: 2e9)


def cells_of(tmp_path, learners):
    given = {"k": 3, "queries": 4, "task": str(little_task(tmp_path)), "model": str(little_model(tmp_path / "model"))}
    return CompareSpec.of({**given, "learners": learners, "init": "trained", "device": "cpu"}).cells()


def test_seconds_are_a_cell_s_arithmetic_at_a_share_of_this_machine_s_speed(tmp_path):
    reading, learned = cells_of(tmp_path, "gd")
    flops = [LABS["compare"].flops(cell, Tools()) for cell in (reading, learned)]
    jobs = [Job(str(i), cell, {}) for i, cell in enumerate((reading, learned, learned))]
    found = costs(jobs, [], by_arithmetic(Tools()))
    assert found.seconds == pytest.approx((flops[0] + 2 * flops[1]) / (EFFICIENCY * 2e9))
    assert (found.guessed, found.unknown) == (3, 0)


def test_what_a_lab_cannot_count_is_unknown_and_not_nothing(tmp_path):
    rival = cells_of(tmp_path, "task-vector")[1]
    found = costs([Job("a", rival, {})], [], by_arithmetic(Tools()))
    assert (found.seconds, found.guessed, found.unknown) == (0, 0, 1)


def test_the_speed_is_of_this_machine_and_a_gpu_is_named_where_there_is_one(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert pace() == "40% of the 0.002 TFLOP/s of this processor just now"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "NVIDIA X1")
    assert pace() == "40% of the 0.002 TFLOP/s of NVIDIA X1 just now"


def test_a_run_is_told_what_the_plan_knows_of_every_cell(tmp_path):
    reading, rival = cells_of(tmp_path, "task-vector")
    jobs, store = [Job("a", reading, {}), Job("b", rival, {})], Store(tmp_path / "cells")
    known = foretold(jobs, store, Tools(), alone=True)
    assert known == {
        "a": Guess("compare", costs(jobs[:1], [], by_arithmetic(Tools())).seconds),
        "b": Guess("compare", None),
    }


def test_workers_keep_their_gpus_from_a_driver_that_would_time_them(tmp_path, monkeypatch):
    jobs = [Job("a", cells_of(tmp_path, "gd")[0], {})]
    monkeypatch.setattr(estimate, "visible_gpus", lambda: ["0"])
    assert foretold(jobs, Store(tmp_path / "cells"), Tools(), alone=False)["a"].seconds is None
    assert foretold(jobs, Store(tmp_path / "cells"), Tools(), alone=True)["a"].seconds > 0
