"""The arithmetic of a cell, counted before it is run, beside what the run multiplied."""

import pytest

from counting import Counter, Tokens
from iclgd.lab import LABS
from iclgd.labs.implicit import cost
from iclgd.labs.implicit.spec import ExactCell, ImplicitSpec
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


def test_a_fit_reads_its_texts_and_puts_every_token_and_its_solution_through_the_last_maps():
    texts = [(1, 2, 3), (4, 5)]
    assert cost._read(Tokens(), texts) == pytest.approx(5.002)
    assert cost._read(Tokens(), texts, 10) == pytest.approx(5.502)
    assert cost._fit(Tokens(), texts) == pytest.approx(5.002 + 2 * 10 * (2 + 5))


@pytest.mark.parametrize("settling", [False, True])
def test_patches_of_one_query_cost_every_form_the_generation_and_where_asked_the_settling(settling):
    spec, context, queries = ExactCell.model_construct(tokens=2, settling=settling), (1,) * 10, [(5, 6), (7,)]
    parts = [
        10 + (3 * 1.1 + 0.002) + 5.002,  # the context, the queries behind it and alone, from bos
        3 * (5.002 + 20 * (2 + 5)) + 4 * 5.002,  # three forms, asked, and once without
        2 * (10 + 5 * 1.1 + 0.002),  # two and three tokens behind the context, as they are and patched
        (7.002 + 20 * (2 + 7)) + 7.002,
    ]
    if settling:  # contexts of 2, 4 and 8 tokens, each with one query and its patch, and one token more
        parts += [2 * (size + 2 * (1 + size / 100) + 0.001 + 3.001 + 20 * (1 + 3)) for size in (2, 4, 8)]
    assert list(cost._exact(spec, Tokens(), (1,), context, queries)) == pytest.approx(parts)
