"""What `compare` is asked for: learners that own their options, cells, refusals before any work."""

import pytest

from iclgd.errors import Refusal
from iclgd.labs.compare.spec import CompareSpec
from iclgd.running import _job
from iclgd.tools import Tools


def spec(**given):
    return CompareSpec.of(given)


def test_two_learners_that_differ_in_an_option_have_cells_and_names_of_their_own():
    asked = spec(learners="gd,gd:trains=all", init="trained")
    assert [choice.label for choice in asked.trained] == ["gd 0.001", "gd 0.001 trains=all"]
    cells = [cell for cell in asked.cells() if "learner" in cell.labels]
    jobs = {_job(cell, Tools()).key for cell in cells}
    assert len(jobs) == len(cells) == 2


def test_rates_multiply_the_learners_that_have_one():
    asked = spec(learners="gd,lcgd", rates="1e-4,1e-2", init="trained")
    assert [choice["rate"] for choice in asked.trained] == [1e-4, 1e-2, 1e-4, 1e-2]
    assert [(a.label, b.label) for a, b in asked.pairs] == [("gd 0.0001", "lcgd 0.0001"), ("gd 0.01", "lcgd 0.01")]


def test_draws_share_a_pass_until_the_learners_of_one_fill_it():
    def groups(count):
        rates = ",".join(f"{i}e-3" for i in range(1, count + 1))
        return {cell.group for cell in spec(learners="gd", rates=rates, seeds=2, init="trained,random").cells()}

    untrained = {"random sentiment 0", "random sentiment 1"}  # whose weights change with the draw
    assert groups(7) == {"trained sentiment"} | untrained
    assert groups(8) == {"trained sentiment 0", "trained sentiment 1"} | untrained


def test_the_floor_is_of_the_first_draw_of_the_first_weights():
    asked = spec(learners="gd", seeds=2, init="trained,random", task="sentiment,kinds")
    floors = {(c.labels["init"], c.labels["task"], c.labels["seed"]) for c in asked.cells() if c.spec.floor}
    assert floors == {("trained", "sentiment", 0), ("trained", "kinds", 0)}
    assert not any(cell.spec.floor for cell in spec(floor=False, seeds=2).cells())


def test_five_seeds_have_the_cells_of_three_and_more():
    tools = Tools()
    three, five = ({_job(cell, tools).key for cell in spec(seeds=count, floor=False).cells()} for count in (3, 5))
    assert three < five
    assert len(five) * 3 == len(three) * 5


def test_what_does_not_change_a_number_does_not_change_a_key():
    tools = Tools()
    plain, moved = (
        [_job(cell, tools).key for cell in spec(device=device, position=where).cells()]
        for device, where in (("auto", "prompt"), ("cpu", "label"))
    )
    assert plain == moved


@pytest.mark.parametrize(
    "change",
    [{"k": 7}, {"queries": 3}, {"dtype": "bfloat16"}, {"separator": "eos"}, {"nulls": "random"}, {"start": "eos"}],
)
def test_what_changes_a_number_changes_every_key(change):
    tools = Tools()
    before = {_job(cell, tools).key for cell in spec(init="trained").cells() if "versus" not in cell.labels}
    after = {_job(cell, tools).key for cell in spec(init="trained", **change).cells() if "versus" not in cell.labels}
    untouched = 1 if "nulls" in change else 0  # zero-shot and icl have no nulls
    assert len(before & after) == untouched


def test_nulls_that_train_are_asked_of_the_first_initialisation_and_the_floor_of_its_first_seed():
    cells = [cell for cell in spec(seeds=2).cells() if "learner" in cell.labels and "versus" not in cell.labels]
    for cell in cells:
        first = cell.labels["init"] == "trained"
        assert any(null.name == "wrong-labels" for null in cell.spec.nulls) is first
        assert cell.spec.floor is (first and cell.labels["seed"] == 0)
        assert any(null.name == "other-query" for null in cell.spec.nulls)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"task": "e.json", "k": 7}, "leave out `k`"),
        ({"task": "e.json", "queries": 3}, "leave out `queries`"),
        ({"task": "sst2,e.json", "seeds": 3}, "leave out `seeds`"),
        ({"learners": "gdd"}, 'no learner "gdd". Did you mean gd'),
        ({"learners": "gd:rat=1"}, 'gd has no option "rat". Did you mean rate'),
        ({"learners": "gd:rate=-1"}, "gd: rate must be at least 0"),
        ({"learners": "gd:rate=x"}, "gd: rate takes a finite number"),
        ({"learners": "lcgd-paper:trains=all"}, "keys and values only"),
        ({"learners": ""}, "`learners` needs at least one"),
        ({"rates": "0.1,0.10000000001"}, "the same to six digits"),
        ({"rates": "1e400"}, "`rates`"),
        ({"seeds": "0"}, "`seeds` takes from 1 to 10000 draws"),
        ({"seeds": "99999999"}, "`seeds` takes from 1 to 10000 draws"),
        ({"seeds": "1,-2"}, "`seeds` must be at least 0"),
        ({"k": -1}, "`k` must be at least 1, not -1"),
        ({"queries": "many"}, "`queries` takes a whole number"),
        ({"init": "trainde"}, "Did you mean trained"),
        ({"dtype": "float8"}, "`dtype` takes float32"),
        ({"nulls": "nothing"}, 'no null "nothing"'),
        ({"metrics": "SimAUO"}, 'no metric "SimAUO". Did you mean SimAOU'),
        ({"kk": 3}, 'there is no field "kk"'),
        ({"model": "nonsense"}, 'no model "nonsense"'),
    ],
)
def test_a_request_that_cannot_be_met_is_refused_in_a_sentence(given, sentence):
    with pytest.raises(Refusal) as refusal:
        spec(**given)
    assert sentence in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_nulls_can_be_left_out_and_batches_change_no_key():
    assert spec(nulls="none").nulls == ()
    tools = Tools()
    keys = [[_job(cell, tools).key for cell in spec(batch_tokens=size).cells()] for size in (1024, 64)]
    assert keys[0] == keys[1]


def test_every_task_and_draw_has_untrained_weights_of_its_own_whatever_stands_beside_it():
    def seeds(**given):
        cells = spec(init="random", **given).cells()
        return {(cell.labels["task"], cell.labels["seed"]): cell.spec.model.init_seed for cell in cells}

    many = seeds(task="sentiment,kinds,sst2", seeds=3)
    assert len(set(many.values())) == len(many) == 9
    assert seeds(task="kinds", seeds="2,").items() <= many.items()
