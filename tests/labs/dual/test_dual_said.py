"""What a run of the dual lab says while it runs, and what its figures call their axes."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch

from iclgd.lab import LABS, LabSpec
from iclgd.labs.dual.check_figures import DRAWN, heads_figure, parts_figure
from iclgd.labs.dual.spec import BoundSpec, CheckSpec, ModifySpec, TrainSpec
from iclgd.tools import Tools
from little import little_task
from tiny import tiny_subject

MODEL = {"model": "memory:tiny", "k": 3, "queries": 2}
SMALL = {"tasks": "linear", "arms": "centred", "seeds": 2, "dx": 2, "k": 4, "epochs": 1, "steps": 1, "batch": 2}


@pytest.mark.parametrize(
    ("lab", "spec", "given", "expected"),
    [
        ("dual check", CheckSpec, MODEL, {"analysing heads": 2}),
        ("dual bound", BoundSpec, {**MODEL, "held": 1}, {"bounding heads": 2}),
        (
            "dual train",
            TrainSpec,
            {**SMALL, "episodes": 3},
            {"training plain on linear": 0, "training centred on linear": 0},
        ),
    ],
)
def test_a_run_says_what_it_does_query_by_query_or_arm_by_arm(
    lab: str, spec: type[LabSpec], given: dict[str, Any], expected: dict[str, int], tmp_path: Path
) -> None:
    said: Counter[str] = Counter()
    if "model" in given:
        given = {**given, "task": str(little_task(tmp_path))}
    subject = tiny_subject("llama", dtype=torch.float64) if "model" in given else None
    tools = Tools(None, lambda what, done: said.update({what: done}), {"memory:tiny": subject} if subject else None)
    cells = spec.of(given).cells()
    if (together := LABS[lab].together) is not None:
        list(together(cells, tools))
    else:
        for cell in cells:
            LABS[lab].run(cell, tools)
    assert dict(said) == expected


def test_modified_attention_counts_the_queries_that_were_asked(tmp_path: Path) -> None:
    said: Counter[str] = Counter()
    given = {**MODEL, "task": str(little_task(tmp_path)), "modifications": "centred:beta=0.1"}
    tools = Tools(None, lambda what, done: said.update({what: done}), {"memory:tiny": tiny_subject("llama")})
    for cell in ModifySpec.of(given).cells():
        LABS["dual modify"].run(cell, tools)
    assert sorted(said.values()) == [2, 2]
    assert any("centred" in what for what in said)


def test_maps_of_heads_are_by_layer_and_head_and_parts_by_layer_and_demonstration() -> None:
    values = torch.arange(6.0).reshape(2, 3) / 10
    shown = dict.fromkeys(DRAWN, values) | {"directions": 2 + 10 * values}
    maps = heads_figure(shown).axes[: len(DRAWN)]
    assert [axes.get_ylabel() for axes in maps] == ["layer", "", "", "", ""]
    assert {axes.get_xlabel() for axes in maps} == {"head"}
    assert [axes.images[0].get_clim() for axes in maps] == [(0, 1), (-1, 1), (1, 7), (0, 1), (0, 1)]
    assert {axes.images[0].origin for axes in maps} == {"lower"}
    made = parts_figure(values, {16: {"own keys": values}, 64: {"own keys": values / 2}})
    parts, errors = made.axes[0], next(axes for axes in made.axes if axes.lines)
    assert (parts.get_xlabel(), parts.get_ylabel()) == ("demonstration", "layer")
    assert [text.get_text() for text in parts.get_xticklabels()] == ["1", "2", "3"]
    assert (errors.get_xlabel(), errors.get_xscale(), errors.get_ylim()[0]) == ("random features", "log", 0)
    assert [text.get_text() for text in errors.get_xticklabels()] == ["16", "64"]
    extent = errors.collections[0].get_paths()[0].get_extents()
    wanted = [float(values.quantile(0.1)) / 2, float(values.quantile(0.9))]
    assert [extent.ymin, extent.ymax] == pytest.approx(wanted)
    assert [text.get_text() for text in made.legends[0].get_texts()] == ["own keys"]
