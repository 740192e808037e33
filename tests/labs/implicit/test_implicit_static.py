"""One patch for all queries in cells of `implicit`, against the learners of the package and fits by themselves."""

import numpy as np
import pytest
import torch
from little_implicit import SEED, prompts_of, scores

from iclgd.errors import Refusal
from iclgd.labs.implicit.ground import Ground, random_like
from iclgd.labs.implicit.run import depths, run
from iclgd.learners.prompted import InContext, ZeroShot
from iclgd.models.added import Added
from iclgd.models.static import Static
from iclgd.prompts import build_prompts
from iclgd.spec import PromptSpec
from iclgd.tools import Tools, silent
from tiny import tiny_subject


def test_scores_without_and_behind_demonstrations_are_those_of_the_package_s_learners(subject, spec, results):
    prompts = prompts_of(subject, spec.cells()[0])
    assert len(prompts.queries) == 9
    for name, learner in (("zero-shot", ZeroShot()), ("icl", InContext())):
        with learner.learn(subject, prompts) as predictor:
            expected = predictor.trace(prompts).scores
        np.testing.assert_allclose(scores(results["static"], patch=name), expected[4:], atol=1e-5)
        calibration = scores(results["static"], patch=name, asked="calibration")
        np.testing.assert_allclose(calibration, expected[:4], atol=1e-5)
    episode = Tools().episode(spec.cells()[0].spec.task, spec.cells()[0].spec.episode).with_wrong_labels(SEED)
    wrong = build_prompts(subject.tokenizer, episode, PromptSpec(), subject.room)
    with InContext().learn(subject, wrong) as predictor:
        expected = predictor.trace(wrong).scores[4:]
    np.testing.assert_allclose(scores(results["static"], patch="icl, wrong labels"), expected, atol=1e-5)


def test_every_patch_of_the_curve_is_there_and_no_rank_above_its_queries(results):
    found = [one.labels for one in results["static"].arrays if one.labels.get("asked") == "held"]
    kinds = {(one["patch"], one["fitted"]) for one in found if "fitted" in one}
    assert kinds == {("vector", 1), ("matrix", 1), ("vector", 4), ("rank 1", 4), ("rank 2", 4), ("matrix", 4)}
    assert {one.get("null") for one in found} == {None, "wrong labels", "other task", "filler", "random"}
    parts = {(one["layers"], one["first"], one["last"]) for one in found if "layers" in one}
    assert parts == {(layers, i, i) for layers in ("alone", "up to") for i in range(3)}  # the model has three layers


def test_other_queries_other_labels_and_other_depths_give_other_numbers(results):
    whole = {"patch": "matrix", "fitted": 4}
    base = scores(results["static"], **whole)
    last = {"layers": "alone", "first": 2, "last": 2}
    for change in (*({"null": null} for null in ("wrong labels", "other task", "filler", "random")), last):
        assert not np.allclose(scores(results["static"], **whole, **change), base, atol=1e-4)
    assert scores(results["static"], **whole, asked="others").shape == (9, 2)


def test_a_part_of_the_layers_is_that_part_and_all_up_to_a_layer_are_fitted_so(ground, spec, results):
    """Up to a layer is the first part of the whole patch, here beside a fit of these layers by themselves."""
    ridge = spec.cells()[0].spec.ridge
    for layer in range(3):
        for layers, some in (("alone", [layer]), ("up to", range(layer + 1))):
            expected = ground.patched(ground.static("right", Static(ridge=ridge), 4, some))
            found = scores(results["static"], patch="matrix", fitted=4, layers=layers, first=layer, last=layer)
            np.testing.assert_allclose(found, expected, atol=1e-5)
    whole = scores(results["static"], patch="matrix", fitted=4)
    last = scores(results["static"], patch="matrix", fitted=4, layers="up to", first=2, last=2)
    np.testing.assert_allclose(last, whole, atol=1e-6)
    for null, demos in (("wrong labels", "wrong"), ("other task", "other task"), ("filler", "filler")):
        expected = ground.patched(ground.static(demos, Static(ridge=ridge), 4))
        np.testing.assert_allclose(scores(results["static"], patch="matrix", fitted=4, null=null), expected, atol=1e-5)


@pytest.mark.parametrize("layers", [1, 3, 6, 7, 18, 30])
def test_depths_cover_the_stack_once_in_six_parts_or_layer_by_layer(layers):
    parts = depths(layers)
    assert len(parts) == min(6, layers)
    assert [layer for part in parts for layer in part] == list(range(layers))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_random_matrices_are_as_long_as_those_they_stand_in_for_and_of_their_seed_and_layer():
    given = [torch.full((3, 4), 2.0), torch.ones(3, 4), torch.ones(3, 4)]
    found = random_like(given, 0)
    for one, other in zip(given, found, strict=True):
        torch.testing.assert_close(one.norm(), other.norm())
        assert not torch.allclose(one, other)
    assert not torch.allclose(found[1], found[2])
    assert not torch.allclose(found[1], random_like(given, 1)[1])
    torch.testing.assert_close(found, random_like(given, 0), rtol=0, atol=0)


def test_the_random_null_has_nothing_that_was_fitted_behind_a_norm_either(spec):
    """Gemma's patches change the norm's gain, too: a random matrix beside a fitted gain would be partly fitted."""
    subject, tools, cell = tiny_subject("gemma3"), Tools(), spec.cells()[0]
    episode, other = (tools.episode(task, cell.spec.episode) for task in (cell.spec.task, cell.spec.other))
    ground = Ground(subject, episode, other, PromptSpec(), SEED, 4, silent)
    fitted = ground.static("right", Static(ridge=cell.spec.ridge), 4)
    noise = random_like([one.last for one in fitted], SEED)
    found = scores(run(cell, Tools(subjects={"memory:tiny": subject})), patch="matrix", fitted=4, null="random")
    np.testing.assert_allclose(found, ground.patched([Added(last=one) for one in noise]), atol=1e-5)
    partly = [Added(last=one, gain=two.gain) for one, two in zip(noise, fitted, strict=True)]
    assert np.abs(found - ground.patched(partly).numpy()).max() > 1e-3


def test_a_fit_is_computed_once_for_all_cells_of_an_episode(ground):
    assert ground.static("right", Static(), 4) is ground.static("right", Static(), 4)
    assert ground.static("right", Static(), 4) is not ground.static("wrong", Static(), 4)
    assert ground.static("right", Static(), 4, range(1))[2].last is None


def test_too_few_queries_to_hold_any_out_are_refused(subject, spec):
    tools, cell = Tools(), spec.cells()[0].spec
    episode, other = (tools.episode(task, cell.episode) for task in (cell.task, cell.other))
    with pytest.raises(Refusal, match="too few to calibrate on 8.*lower `calibration`"):
        Ground(subject, episode, other, PromptSpec(), 0, 8, silent)
