"""Numbers that rounding moves are near; another seed, rate, sign, metric or order is different, however small."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import iclgd
from iclgd.grid.near import Floors, change
from iclgd.results import Array, Result, array
from little import little_task
from tiny import tiny_model, tiny_tokenizer

pytestmark = pytest.mark.usefixtures("without_shape_checks")


def result(*values, **labels) -> Result:
    return Result({}, [array(np.array(values), "x", **labels)])


@pytest.mark.parametrize(
    "other, verdict, largest, beyond",
    [
        (result(1.0, np.nan, 4.0, quantity="q"), "equal to the bit", 0, 0),
        (result(1.0, np.nan, 4.0 + 2e-3, quantity="q"), "within tolerance", 2.5e-4, 0),
        (result(1.0, np.nan, 4.0 + 8e-3, quantity="q"), "different", 1e-3, 1 / 2),
        (result(1.0, 2.0, 4.0, quantity="q"), "different", 0, 1 / 3),
        (result(1.0, np.nan, quantity="q"), "different", np.inf, 1),
        (result(1.0, np.nan, 4.0, quantity="r"), "different", np.inf, 1),
    ],
    ids=["same", "near", "far", "a number for none", "another shape", "another array"],
)
def test_results_are_equal_near_or_different(other, verdict, largest, beyond):
    found = change(result(1.0, np.nan, 4.0, quantity="q"), other)
    assert (found.verdict, found.beyond) == (verdict, pytest.approx(beyond))
    assert found.largest == pytest.approx(largest)


def test_an_array_that_a_later_version_adds_is_counted_and_one_that_it_lost_is_a_difference():
    few = result(1.0, quantity="q")
    many = Result({}, [*few.arrays, array(np.ones(2), "x", quantity="r")])
    assert (change(few, many).verdict, change(few, many).more) == ("equal to the bit", 1)
    assert (change(many, few).verdict, change(many, few).where) == ("different", 'only the first has {"quantity":"r"}')


def test_a_few_elements_may_be_off_and_are_counted_but_not_many_and_not_the_mean():
    draw = np.random.default_rng(0)
    values = draw.standard_normal((2, 100))
    labels = {"coordinates": {"position": ("prompt", "label")}, "metric": "m"}
    one = Result({}, [array(values, "position", "query", **labels)])

    def other(changes) -> Result:
        again = values.copy()
        for (position, query), by in changes.items():
            again[position, query] += by
        return Result({}, [array(again, "position", "query", **labels)])

    few = change(one, other({(0, 3): 0.05, (0, 4): -0.05}))
    assert (few.verdict, few.beyond) == ("within tolerance", pytest.approx(0.01))
    assert change(one, other({(0, i): 0.05 * (-1) ** i for i in range(12)})).verdict == "different"  # 6% of them
    assert change(one, other({(0, i): 0.2 for i in range(3)})).verdict == "different"  # the mean at `prompt`
    assert change(one, other({(0, 3): 0.3, (1, 3): -0.3})).verdict == "different"  # no mean is over places with names
    turned = Result(
        {}, [array(values[:, ::-1], "position", "query", **labels)]
    )  # another order: the means are the same
    assert change(one, turned).verdict == "different"


# floors


def floor(values, **labels) -> Array:
    return array(np.array(values), "query", "layer", metric="m", floor="other precision", **labels)


NOISE, CLEAN = [[0.2, 1.0], [0.0, 1.0]], [[1.0, 1.0], [1.0, 1.0]]


def room(floors: Floors, cell, **labels) -> list[float]:
    return np.ravel(floors.room(cell, array(np.zeros((5, 2)), "query", "layer", **labels))).tolist()


def test_the_room_is_the_angle_by_which_updates_turn_when_they_are_computed_again():
    floors = Floors([({"seed": 0}, Result({}, [floor(NOISE)]))])
    assert room(floors, {"seed": 3}, metric="m") == pytest.approx([2 * np.sqrt(2 * 0.9), 0])
    assert room(floors, {"seed": 3}, metric="m", null="random") == pytest.approx([2 * np.sqrt(2 * 0.9), 0])
    assert room(floors, {"seed": 3}, metric="another of the same updates") == pytest.approx([2 * np.sqrt(2 * 0.9), 0])
    assert room(floors, {"seed": 3}, quantity="loss") == [0]
    assert np.ravel(floors.room({}, array(np.zeros((5, 3)), "query", "layer", metric="m"))).tolist() == [0]
    assert np.ravel(floors.room({}, array(np.zeros(5), "query", metric="m"))).tolist() == [0]


def test_a_floor_is_that_of_the_cells_own_learner_and_of_reading_on_whatever_draw_it_was_measured():
    a, b = 2 * np.sqrt(2 * 0.9), 2 * np.sqrt(2 * 0.02)
    cells = [
        ({"task": "t", "seed": 0}, Result({}, [floor([[0.98, 1.0]], learner="icl")])),
        ({"task": "t", "seed": 0, "learner": "gd"}, Result({}, [floor(NOISE)])),
        ({"task": "t", "seed": 0, "learner": "lcgd"}, Result({}, [floor(CLEAN)])),
        ({"task": "u", "seed": 0, "learner": "lcgd"}, Result({}, [floor(NOISE)])),
    ]
    floors = Floors(cells)
    assert room(floors, {"task": "t", "seed": 1}, metric="m") == pytest.approx([b, 0])
    assert room(floors, {"task": "t", "seed": 1, "learner": "gd"}, metric="m") == pytest.approx([a + b, 0])
    assert room(floors, {"task": "t", "seed": 1, "learner": "lcgd"}, metric="m") == pytest.approx([b, 0])
    assert room(floors, {"task": "v", "seed": 1, "learner": "lcgd"}, metric="m") == [0]


# a real study of a little model


def study(folder, model, **given):
    asked = {"seeds": 2, "k": 4, "queries": 12, "learners": "gd:rate=0.01,lcgd:rate=0.01", "init": "trained"}
    asked |= {"nulls": "random,other-query,wrong-labels,other-demos"}
    task = folder / "mine.yaml"
    return iclgd.compare(
        model=(model, tiny_tokenizer()), task=str(task), store=folder / "cells", **{**asked, **given}, device="cpu"
    )


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("place")
    little_task(folder)
    return folder


@pytest.fixture(scope="module")
def kept(place):
    return study(place, tiny_model("llama"))


def elsewhere(seed: int = 0):
    """The model on another machine: every weight off by a rounding error, and hence every product."""
    model, draw = tiny_model("llama"), torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(1 + 6e-8 * torch.randn(weight.shape, generator=draw))
    return model


def changes(kept, again, floors=True) -> dict[str, list]:
    """Verdicts by learner: of the cells of one study against those of another that come in the same order."""
    known = Floors([(cell.labels, found) for cell, found in kept.found()]) if floors else None
    verdicts = {}
    for (cell, before), (_, after) in zip(kept.found(), again.found(), strict=True):
        found = change(before, after, floors=known, cell=cell.labels)
        name = "pair" if "versus" in cell.labels else str(cell.labels.get("learner", "read"))
        verdicts.setdefault(name, []).append(found)
    return verdicts


def verdicts(kept, again, **how) -> dict[str, set[str]]:
    return {name: {one.verdict for one in found} for name, found in changes(kept, again, **how).items()}


@pytest.mark.parametrize("seed", range(3))
def test_rounding_errors_of_another_machine_are_within_tolerance(place, kept, seed):
    again = study(place, elsewhere(seed))
    assert set().union(*verdicts(kept, again).values()) == {"within tolerance"}, changes(kept, again)


def test_without_the_floors_that_cells_measured_rounding_would_look_like_a_difference(place, kept):
    assert "different" in set().union(*verdicts(kept, study(place, elsewhere()), floors=False).values())


@pytest.mark.parametrize(
    "fault",
    [
        {"learners": "gd:rate=0.0101,lcgd:rate=0.0101"},
        {"learners": "gd:rate=0.01:target=label,lcgd:rate=0.01:target=label"},
        {"seeds": "2,3"},
        {"query_seed": 5},
        {"learners": "lcgd:rate=0.01,gd:rate=0.01"},
    ],
    ids=["rate off by a hundredth", "another target", "another draw", "other queries", "another learner"],
)
def test_another_study_under_the_same_name_is_different(place, kept, fault):
    again = study(place, elsewhere(), **fault)
    found = verdicts(kept, again)
    assert found.pop("read") == {"within tolerance" if "learners" in fault else "different"}
    found.pop("pair")  # two learners that change places are as alike as before
    assert set().union(*found.values()) == {"different"}


def test_a_learner_that_goes_uphill_is_different(place, kept, monkeypatch):
    from iclgd.learners import together

    own = together.train_together

    def uphill(subject, jobs, *more):
        jobs = [replace(job, learner=replace(job.learner, rate=-job.learner.rate)) for job in jobs]
        return own(subject, jobs, *more)

    for module in ("iclgd.ahead", "iclgd.bench"):
        monkeypatch.setattr(f"{module}.train_together", uphill)
    again = study(place, elsewhere(7))
    monkeypatch.undo()
    found = verdicts(kept, again)
    assert found.pop("read") == {"within tolerance"}
    assert set().union(*found.values()) == {"different"}


@pytest.mark.parametrize("one, other", [("SimAOU", "SimAOU_norm"), ("SimAM", "SimAM_delta"), ("SimAM_delta", "tau")])
def test_one_metric_in_the_place_of_another_is_different(place, kept, one, other):
    again = study(place, elsewhere())
    for (cell, before), (_, after) in zip(kept.found(), again.found(), strict=True):
        if "learner" not in cell.labels or "versus" in cell.labels:
            continue  # cells of reading, and of two learners against each other
        taken = after.select(metric=other, null=None, floor=None)[0]
        arrays = [
            Array(a.labels, a.axes, taken.values, a.coordinates) if a.labels == {"metric": one} else a
            for a in after.arrays
        ]
        known = Floors([(cell.labels, found) for cell, found in kept.found()])
        assert change(before, Result(after.facts, arrays), floors=known, cell=cell.labels).verdict == "different"
