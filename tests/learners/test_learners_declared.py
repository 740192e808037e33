"""What the learners of the package are when nothing is said: part of every cell's key, and of what pages compare."""

import pytest

from iclgd.choices import parse_one
from iclgd.errors import Refusal
from iclgd.learners import LEARNERS
from iclgd.learners.prompted import InContext, ZeroShot

DESCENT = {"trains": "kv", "epochs": 1, "clip": None, "target": "all", "order": None, "dropped_too": False}
# a version rises when the same options give other weights, and then results of before are not found again
DECLARED = {
    "gd": (2, {"rate": 1e-3, **DESCENT}),
    "lcgd": (2, {"rate": 1e-3, **DESCENT}),
    "lcgd-paper": (2, {"rate": 1e-3, **DESCENT}),
    "static-patch": (2, {"kind": "matrix", "rank": None, "ridge": 0.1}),
    "task-vector": (1, {"layer": None}),
    "function-vector": (1, {"heads": 10, "layer": None, "prompts": 8}),
    "in-context-vector": (1, {"strength": 0.1}),
}


def test_every_learner_is_declared_here():
    ours = {name for name in LEARNERS if LEARNERS[name].__module__.startswith("iclgd.")}  # not those of other tests
    assert ours == set(DECLARED)


@pytest.mark.parametrize("name", DECLARED)
def test_a_learner_has_its_version_and_its_options_their_defaults(name):
    assert (LEARNERS[name].version, dict(parse_one(name, LEARNERS).options)) == DECLARED[name]


@pytest.mark.parametrize("name", ["zero-shot", "icl", *DECLARED])
def test_learners_of_one_description_are_one_learner(name):
    kind = {"zero-shot": ZeroShot, "icl": InContext}.get(name) or LEARNERS[name]
    assert kind() == kind()
    assert len({kind(), kind()}) == 1


# the smallest value taken; a smaller one is refused
SMALLEST = {
    **{(name, "rate"): (0, -0.1) for name in ("gd", "lcgd", "lcgd-paper")},
    **{(name, "epochs"): (1, 0) for name in ("gd", "lcgd", "lcgd-paper")},
    **{(name, "clip"): (1e-9, 0) for name in ("gd", "lcgd", "lcgd-paper")},
    **{(name, "order"): (0, -1) for name in ("gd", "lcgd", "lcgd-paper")},
    ("static-patch", "rank"): (1, 0),
    ("static-patch", "ridge"): (0, -0.1),
    ("task-vector", "layer"): (0, -1),
    ("function-vector", "heads"): (1, 0),
    ("function-vector", "layer"): (0, -1),
    ("function-vector", "prompts"): (1, 0),
    ("in-context-vector", "strength"): (0, -0.1),
}


@pytest.mark.parametrize("name, option", SMALLEST)
def test_the_smallest_value_of_an_option_is_taken_and_a_smaller_one_refused(name, option):
    taken, refused = SMALLEST[name, option]
    assert parse_one(f"{name}:{option}={taken}", LEARNERS)[option] == taken
    with pytest.raises(Refusal, match=option):
        parse_one(f"{name}:{option}={refused}", LEARNERS)
