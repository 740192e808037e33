"""The arithmetic of a cell, counted before it is run, beside what the run multiplied."""

from dataclasses import replace

import pytest

from counting import Counter, Tokens
from iclgd.lab import LABS
from iclgd.labs.compare.cost import _trace
from iclgd.labs.compare.spec import CompareSpec
from iclgd.prompts import Prompts
from iclgd.tools import Tools
from little import little_model, little_task

LAB = LABS["compare"]
EVERY = "random,other-query,weight-noise,wrong-labels,shuffled-labels,other-demos,other-task"


def asked(tmp_path, **more):
    given = {"k": 6, "queries": 6, "task": str(little_task(tmp_path)), "model": str(little_model(tmp_path / "model"))}
    return CompareSpec.of({**given, "device": "cpu", "init": "trained", **more}).cells()


@pytest.mark.parametrize("floor", [False, True])
def test_the_cells_of_an_episode_cost_what_torch_counts(tmp_path, floor):
    """Together, as they run: what is trained at once is not told apart by cells."""
    cells, tools = asked(tmp_path, floor=floor, nulls=EVERY), Tools()
    said = sum(LAB.flops(cell, tools) for cell in cells)
    tools.forget()
    with Counter() as counter:
        list(LAB.together(cells, tools))
    assert said == pytest.approx(counter.flops, rel=0.25)


def test_more_demonstrations_nulls_and_the_contrast_cost_more(tmp_path):
    def cost(**more):
        plain = {"k": 2, "learners": "gd", "nulls": "none", "contrast": False, "floor": False}
        return LAB.flops(asked(tmp_path, **{**plain, **more})[1], Tools())

    plain = cost()
    assert cost(k=6) > plain
    assert cost(queries=8) > plain
    assert cost(floor=True) > plain
    assert cost(learners="lcgd") > plain
    assert cost(contrast=True) == 2 * plain
    assert cost(nulls="random,other-query") == plain  # nothing is trained or traced for them
    assert cost(nulls="wrong-labels") == 2 * plain
    assert cost(nulls="wrong-labels", contrast=True) == 2 * plain  # the same training


def test_two_learners_against_each_other_cost_nothing_more(tmp_path):
    cells = asked(tmp_path)
    assert [LAB.flops(cell, Tools()) for cell in cells if "versus" in cell.labels] == [0]


def test_what_is_not_trained_step_by_step_is_not_counted(tmp_path):
    assert LAB.flops(asked(tmp_path, learners="static-patch")[1], Tools()) is None


def test_a_trace_asks_every_query_with_a_label_and_once_more_for_each_beginning_of_longer_labels():
    short = Prompts((1,), (), (2,), ((5, 6), (7,)), ((8,), (9,)), (0, 1))
    assert _trace(Tokens(), short) == pytest.approx(5 * 1.01 + 0.002)  # behind bos
    assert _trace(Tokens(), short, queries=1) == pytest.approx(3 * 1.01 + 0.001)
    assert _trace(Tokens(), short, context=10) == pytest.approx(5 * 1.1 + 0.002)
    assert _trace(Tokens(), replace(short, blanks=((4,),))) == pytest.approx(7 * 1.01 + 0.003)
    long = replace(short, labels=((8,), (9, 10)))
    beginnings = (3 * 1.01 + 0.004) + (5 * 1.01 + 0.004)  # none, and 9, each with two rows a query
    assert _trace(Tokens(), long) == pytest.approx(5 * 1.01 + 0.002 + beginnings)
