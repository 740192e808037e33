"""What a grid counts of a comparison."""

import numpy as np
import pytest
from planted_compare import planted
from planted_world import FIELDS, world

from iclgd.lab import Cell
from iclgd.labs.compare.answer import answer, found
from iclgd.labs.compare.view import Comparison


def test_what_a_grid_counts_is_no_stronger_than_the_answer():
    labels, whole = found(planted(world(), **FIELDS))
    assert (labels.what, whole.what) == ("cosine of what labels change", "SimAOU of whole updates")
    assert labels.verdict.startswith("what labels change is more alike in reading and training than in every null")
    assert f"cosine {labels.number}" in answer(planted(world(), **FIELDS))
    level, rivals = found(planted(world(contrast=0.02, null=0.02, untrained=0.6), **FIELDS))
    assert level.verdict == "what labels change is not shown to be alike in reading and training"
    assert rivals.verdict == "SimAOU of whole updates is not shown above its nearest rival"
    alone = found(planted(world(), **{**FIELDS, "seeds": 1}))
    assert {one.verdict for one in alone} == {"nothing is decided, with 1 seed"}


def test_what_a_grid_counts_has_the_number_of_the_most_alike_learner():
    def plant(cell: Cell, random: np.random.Generator):
        gd = str(cell.labels.get("learner", "")).startswith("gd")
        return world(contrast=0.2 if gd else 0.5, own=0.6 if gd else 0.4)(cell, random)

    labels, whole = found(planted(plant, **{**FIELDS, "learners": "gd,lcgd"}))
    assert labels.number.value == pytest.approx(0.5, abs=0.02)
    assert whole.number.value == pytest.approx(0.6, abs=0.02)


def test_one_draw_of_each_of_several_tasks_is_no_lone_draw_to_a_grid():
    several = {**FIELDS, "seeds": 1, "task": "sentiment,kinds,continents,sst2"}
    assert {one.verdict.startswith("nothing is decided") for one in found(planted(world(), **several))} == {False}


def test_what_a_grid_counts_says_of_whom_it_is_true_and_what_was_chosen():
    """Of two learners with different verdicts neither is said of both; the answer's caveats go with its verdict."""
    alike, level = world(), world(contrast=0.02, null=0.02)

    def plant(one: Cell, random: np.random.Generator):
        return (level if "lcgd" in str(one.labels.get("learner", "")) else alike)(one, random)

    labels, _ = found(planted(plant, **{**FIELDS, "learners": "gd,lcgd"}))
    assert labels.verdict == (
        "what labels change is more alike in reading and training than in every null that was run (gd) and what labels "
        "change is not shown to be alike in reading and training (lcgd)"
    )
    several = planted(world(), **{**FIELDS, "rates": [0.1, 0.001]})
    assert all(one.verdict.endswith("that was run, at the most favourable of several rates") for one in found(several))
    assert "Of several rates" in answer(several)
    for one, result in several.study.found():
        if one.labels.get("learner") == "gd 0.1":
            result.facts["diverged"] = "the loss is not a finite number"
    left = found(Comparison(several.study))
    assert all(one.verdict.endswith("that was run, without what diverged") for one in left)
