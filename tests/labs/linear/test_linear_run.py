"""What training finds, and that a study runs what is missing and nothing else."""

import numpy as np
import pytest
import torch

from iclgd.errors import Refusal
from iclgd.labs.linear.fitting import members
from iclgd.labs.linear.run import run, together
from iclgd.labs.linear.spec import TrainSpec
from iclgd.running import Where, run_study
from iclgd.small import optimum
from iclgd.small.train import Trained
from iclgd.tools import Tools

torch.set_num_threads(1)
SMALL = {"dx": 3, "k": 5, "seeds": 2, "steps": 20, "batch": 8, "episodes": 60}


def results(**given):
    return list(together(TrainSpec.of(given).cells(), Tools()))


def only(result, **labels):
    (one,) = result.select(**labels)
    return one


def losses(found, learner="trained"):
    return [float(only(result, quantity="loss", learner=learner).values) for result in found]


def cosines(found, learner):
    return [float(only(result, quantity="likeness", learner=learner).at(metric="cosine").values) for result in found]


@pytest.fixture(scope="module")
def study_of_three(tmp_path_factory):
    where = Where(tmp_path_factory.mktemp("cells"))
    return where, run_study("linear train", TrainSpec.of(SMALL | {"seeds": 3}), where)


def test_five_seeds_where_three_are_done_run_two(study_of_three):
    where, three = study_of_three
    assert three.fresh == 3
    five = run_study("linear train", TrainSpec.of(SMALL | {"seeds": 5}), where)
    assert five.fresh == 2
    assert run_study("linear train", TrainSpec.of(SMALL | {"seeds": "3,4"}), where).fresh == 0
    for seed in range(3):
        a, b = (study.arrays(quantity="loss", learner="trained", seed=seed)[0] for study in (three, five))
        assert np.array_equal(a.values, b.values)


def test_an_option_that_changes_numbers_makes_new_cells(study_of_three):
    where, _ = study_of_three
    for change in ({"noise": 0.1}, {"clip": 0.2}, {"learners": "ridge"}, {"episodes": 61}):
        assert run_study("linear train", TrainSpec.of(SMALL | {"seeds": 1} | change), where).fresh == 1


@pytest.mark.parametrize("change", [{}, {"attention": "softmax", "heads": 2}, {"layers": 2}, {"attention": "ttt"}])
def test_seeds_trained_together_have_the_numbers_of_training_apart(change):
    spec = TrainSpec.of(SMALL | {"seeds": 3} | change)
    for beside, cell in zip(together(spec.cells(), Tools()), spec.cells(), strict=True):
        apart = run(cell, Tools())
        for a, b in zip(beside.arrays, apart.arrays, strict=True):
            assert dict(a.labels) == dict(b.labels)
            assert np.allclose(a.values, b.values, rtol=1e-3, atol=1e-5, equal_nan=True), a.labels


@pytest.mark.parametrize("steps, every", [(79, 1), (80, 2)])
def test_training_is_watched_forty_times_or_a_little_more_and_its_steps_are_told(steps, every):
    told = []
    spec = TrainSpec.of(SMALL | {"steps": steps})
    list(together(spec.cells(), Tools(progress=lambda *what: told.append(what))))
    assert told[0] == ("learners at their best", 0)
    assert told[1:] == [("training", every)] * (1 + steps // every)  # once before the first step


def test_a_training_that_diverges_is_refused():
    with pytest.raises(Refusal, match="training diverged"):
        results(**SMALL | {"rate": 1e9, "layers": 3, "steps": 50})


def test_where_some_seeds_diverge_they_are_refused_by_name():
    specs = [cell.spec for cell in TrainSpec.of(SMALL | {"seeds": "4,5,6", "rate": 0.03}).cells()]
    params = {"qk": torch.ones(3, 2), "pv": torch.ones(3, 2)}
    assert [one["pv"].tolist() for one in members(specs, Trained(params, torch.ones(1, 3), {}))] == [[1, 1]] * 3
    params["qk"][0, 1], params["pv"][2, 0] = torch.nan, torch.inf
    with pytest.raises(Refusal, match=r"training diverged for seeds \[4, 6\] with `rate` 0.03; lower it"):
        members(specs, Trained(params, torch.ones(1, 3), {}))


def test_one_layer_trained_is_the_optimal_gradient_step_whatever_its_seed():
    """von Oswald 2023, fig. 2, every seed: loss ≤ 1.01 optimal GD, cosine > 0.998, learned rate/N = 0.606 ± 0.02."""
    found = results(seeds=3, steps=2000, batch=128)
    pairs = zip(losses(found), losses(found, "gd ×1"), strict=True)
    for result, (loss, lowest), cosine in zip(found, pairs, cosines(found, "gd ×1"), strict=True):
        assert loss <= 1.01 * lowest
        assert cosine > 0.998
        assert abs(float(only(result, quantity="rate / N", learner="trained").values) - 0.606) < 0.02


def test_a_layer_whose_state_learns_is_held_against_its_own_learner_and_ranked_among_its_kind():
    spec = TrainSpec.of(SMALL | {"attention": "longhorn", "seeds": 1})
    assert spec.learners == ("longhorn", "gd", "ridge")
    assert TrainSpec.of(SMALL | {"attention": "longhorn", "learners": "gd"}).learners == ("gd",)
    (found,) = together(spec.cells(), Tools())
    assert {one.labels["learner"] for one in found.select(quantity="likeness")} == {
        "longhorn ×1",
        "gd ×1",
        "ridge",
        "zero",
    }
    ranked = only(found, quantity="likeness by layer").coordinates["learner"]
    assert {"gated delta rule ×1", "longhorn ×1", "ttt ×1"} <= set(ranked)


def test_a_trained_delta_layer_is_the_delta_rule_and_not_a_gradient_step():
    found = results(dx=3, k=5, seeds=2, steps=800, attention="delta", episodes=1000)
    assert all(a < 1.02 * b for a, b in zip(losses(found), losses(found, "delta rule ×1"), strict=True))
    assert min(cosines(found, "delta rule ×1")) > 0.995 > 0.97 > max(cosines(found, "gd ×1"))


@pytest.mark.slow
def test_two_shared_layers_trained_are_gdpp_and_not_gd():
    found = results(layers=2, shared=True, seeds=4, batch=256, learners=("gd", "gd++"))
    assert max(losses(found)) < 0.115  # two steps of GD have 0.157 at best, GD++ 0.1105
    assert min(cosines(found, "gd++ ×2")) > 0.99 > max(cosines(found, "gd ×2"))


@pytest.mark.slow
def test_ahns_single_layer_reaches_its_optimum():
    spec = TrainSpec.of({"task": "gaussian", "dx": 5, "k": 20, "seeds": 4, "batch": 256})
    found = list(together(spec.cells(), Tools()))
    assert 2 * optimum.one_step(spec.family)[1] == pytest.approx(1.1538, abs=1e-4)
    for loss, step, result in zip(losses(found), losses(found, "gd ×1"), found, strict=True):
        assert abs(loss / step - 1) < 0.01
        assert abs(20 * float(only(result, quantity="rate / N", learner="trained").values) - 0.769) < 0.01


@pytest.mark.slow
def test_two_layers_on_ahns_task_find_the_best_of_the_known_minima():
    """GD++ of two steps has three known minima, squared error .0594, .0864 and .103; training finds the first."""
    found = results(task="gaussian", dx=5, k=20, layers=2, seeds=4, batch=256, learners=("gd", "gd++"))
    assert max(2 * loss for loss in losses(found)) < 0.0864
    assert min(cosines(found, "gd++ ×2 untied 1")) > 0.999
    assert max(cosines(found, "gd ×2")) < 0.98


@pytest.mark.slow
def test_two_softmax_heads_come_near_gradient_descent_and_one_does_not():
    two, one = (results(attention="softmax", heads=heads, seeds=2, batch=128) for heads in (2, 1))
    assert min(cosines(two, "gd ×1")) > 0.93 > max(cosines(one, "gd ×1"))
    assert max(losses(two)) < 0.22 < min(losses(one))


@pytest.mark.slow
def test_a_transformer_with_an_mlp_learns_sine_in_context_as_well_as_gd_on_learned_features():
    found = results(task="sine", seeds=2, batch=128, steps=3000)
    assert max(losses(found)) < 0.1 * 0.05  # a tenth of half the mean square of the targets
    assert min(cosines(found, "gd ×1 on learned features")) > 0.9


def test_families_without_closed_forms_are_tuned_on_enough_episodes_for_their_parameters():
    from iclgd.labs.linear.exam import tuning_episodes
    from iclgd.tasks.families import FAMILIES

    assert tuning_episodes(FAMILIES["gaussian"](10, 1, 10, 0.0), 10) == 2000
    assert tuning_episodes(FAMILIES["tree"](10, 1, 10, 0.0), 10) == 20_000
    assert tuning_episodes(FAMILIES["tree"](2, 1, 10, 0.0), 2) == 2000
