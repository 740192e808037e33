"""The arithmetic of a cell, counted before it is run, beside what the run multiplied."""

import pytest

from counting import Counter
from iclgd.lab import LABS
from iclgd.labs.implicit.spec import ImplicitSpec
from iclgd.tools import Tools
from little import little_model, little_task

LAB = LABS["implicit"]
ASKED = {"k": 4, "queries": 4, "calibration": (1, 4), "ranks": (1,), "rates": (0.3,), "tokens": 1}


def test_every_cell_of_an_episode_costs_what_torch_counts(tmp_path, monkeypatch):
    monkeypatch.setattr("iclgd.labs.implicit.run.attention_alone", lambda _seed: -1.0)  # next to a tiny model, a lot
    task, other = little_task(tmp_path), little_task(tmp_path, "theirs", ("Group", "Word"))
    given = {"model": str(little_model(tmp_path / "model")), "task": str(task), "other": str(other), "device": "cpu"}
    cells = ImplicitSpec.of({**given, "init": "trained", "precisions": "float32", **ASKED}).cells()
    tools, unrun, said, found = Tools(), Tools(), {}, {}
    for cell in cells:
        name = f"{cell.labels['part']} {cell.labels.get('precision', '')}".strip()
        said[name] = LAB.flops(cell, unrun)
        with Counter() as counter:
            LAB.run(cell, tools)
        found[name] = counter.flops
    assert set(said) == {"static", "trained", "exact float32"}
    for name in said:
        assert said[name] == pytest.approx(found[name], rel=0.4), name
