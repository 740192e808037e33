"""The plain engine runs what is missing, once, and loads each model once."""

import pytest

from iclgd.engine import serial
from iclgd.errors import Refusal
from iclgd.run import CellResult
from iclgd.spec import ModelSpec, StudySpec
from iclgd.store.cells import Store

STUDY = StudySpec(model=ModelSpec(name="a"), tasks=("x", "y"), seeds=(0, 1), inits=("trained", "random"))


class FakeSubject:
    device = "cpu"


@pytest.fixture
def log(monkeypatch):
    """What was loaded and run, with nothing loaded and nothing run."""
    seen = {"loaded": [], "run": []}

    def load(spec):
        seen["loaded"].append((spec.init, spec.init_seed))
        return FakeSubject()

    def run(subject, cell, data, report):
        seen["run"].append(cell.key())
        return CellResult({}, {})

    monkeypatch.setattr(serial, "load_subject", load)
    monkeypatch.setattr(serial, "run_cell", run)
    return seen


def go(tmp_path):
    return serial.run_cells(STUDY.cells(), Store(tmp_path), None, lambda _what: None)


def test_each_cell_is_run_once_and_each_model_loaded_once(tmp_path, log):
    assert go(tmp_path) == 8
    assert log["run"] == [cell.key() for cell in STUDY.cells()]
    assert log["loaded"] == [("trained", 0), ("random", 0), ("random", 1)]


def test_finished_cells_are_not_run_again_nor_their_models_loaded(tmp_path, log):
    for cell in STUDY.cells()[:5]:
        Store(tmp_path).write(cell, CellResult({}, {}), 0.0, "cpu")
    assert go(tmp_path) == 3
    assert log["run"] == [cell.key() for cell in STUDY.cells()[5:]]
    assert ("trained", 0) not in log["loaded"]
    assert go(tmp_path) == 0
    assert len(log["run"]) == 3


def test_what_was_finished_before_a_failure_is_kept(tmp_path, log, monkeypatch):
    def run(subject, cell, data, report):
        if cell.task == "y":
            raise Refusal("no.")
        return CellResult({}, {})

    monkeypatch.setattr(serial, "run_cell", run)
    with pytest.raises(Refusal):
        go(tmp_path)
    assert [Store(tmp_path).has(cell) for cell in STUDY.cells()] == [True] + [False] * 7


def test_costly_nulls_and_the_noise_floor_are_asked_of_the_first_seed_of_the_first_initialisation():
    for cell in STUDY.cells():
        first = cell.model.init == "trained" and cell.episode.seed == 0
        assert cell.floor is first
        assert cell.trained_nulls is first


def test_an_untrained_models_weights_change_with_the_seed_and_a_trained_ones_do_not():
    seeds = {(cell.model.init, cell.episode.seed): cell.model.init_seed for cell in STUDY.cells()}
    assert seeds == {("trained", 0): 0, ("trained", 1): 0, ("random", 0): 0, ("random", 1): 1}
