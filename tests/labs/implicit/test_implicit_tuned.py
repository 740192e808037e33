"""Training of the patched matrices in cells of `implicit`, against the learners and nulls of the package."""

import numpy as np
import pytest
import torch
from little_implicit import prompts_of, scores

from iclgd.bench import Bench
from iclgd.lab import Cell
from iclgd.labs.implicit.beside import NULLS
from iclgd.labs.implicit.ground import Ground, Tuned
from iclgd.labs.implicit.run import TRAINED, run
from iclgd.learners.descent import GradientDescent
from iclgd.models.added import Added
from iclgd.nulls.reading import Filler
from iclgd.nulls.trained import OtherDemos, ShuffledLabels
from iclgd.spec import PromptSpec
from iclgd.tools import Tools, silent
from tiny import tiny_subject


def test_demonstrations_are_those_of_the_nulls_of_compare(subject, spec, ground):
    cell, tools = spec.cells()[0].spec, Tools()
    bench = Bench(subject, ground.episode, PromptSpec(), cell.episode.seed, tools.episode, silent)
    assert ground.prompts["filler"].demos == Filler().demos(bench)
    assert ground.prompts["filler"].queries == ground.prompts["right"].queries
    (shuffled,) = ShuffledLabels().trained_on(bench, False).values()
    assert ground.prompts["shuffled"].demos == shuffled.demos
    others, wrong = OtherDemos().trained_on(bench, True).values()
    assert ground.prompts["other demos"].demos == others.demos
    assert ground.prompts["other demos, wrong"].demos == wrong.demos
    assert ground.prompts["wrong"].demos == bench.wrong.demos
    assert len({ground.prompts[demos].demos for demos in (*TRAINED, "filler")}) == len(TRAINED) + 1


def test_trainings_at_once_are_what_each_is_by_itself(ground, second):
    found = ground.tuned(TRAINED, 0.3, ("wrong",))
    for demos, one in found.items():
        torch.testing.assert_close(one.change[1], second[demos], rtol=0, atol=1e-6)
        assert bool(one.scores) == (demos == "wrong")


def test_training_the_last_maps_is_the_package_s_gradient_descent(subject, spec, results):
    prompts = prompts_of(subject, spec.cells()[0])
    with GradientDescent(rate=0.3, trains="down").learn(subject, prompts) as predictor:
        expected = predictor.trace(prompts).scores
        moved = [slot.layer for slot in predictor.slots]
    assert moved == [0, 1, 2]
    found = scores(results["trained"], patch="gd", demos="right")
    np.testing.assert_allclose(found, expected[4:], atol=1e-5)
    calibration = scores(results["trained"], patch="gd", demos="right", asked="calibration")
    np.testing.assert_allclose(calibration, expected[:4], atol=1e-5)
    assert not np.allclose(found, scores(results["static"], patch="zero-shot"), atol=1e-3)
    assert not np.allclose(found, scores(results["trained"], patch="gd", demos="wrong"), atol=1e-4)


@pytest.mark.parametrize("architecture", ["llama", "gpt2"])
def test_the_change_that_training_made_written_into_the_weights_is_training(architecture, spec):
    """Its matrices are those that are patched, outputs by inputs, whichever way a family keeps them."""
    tools, cell, trained = Tools(), spec.cells()[0].spec, tiny_subject(architecture)
    episode, other = (tools.episode(task, cell.episode) for task in (cell.task, cell.other))
    ground = Ground(trained, episode, other, PromptSpec(), 0, 4, silent)
    tuned = ground.tuned(("other task", "right"), 0.3, ("right",))["right"]
    for asked in ("held", "calibration"):
        found = ground.patched([Added(change) for change in tuned.change], asked)
        torch.testing.assert_close(found, tuned.scores[asked], atol=1e-4, rtol=0)
        assert not torch.allclose(found, ground.scores(ground.reading(None, asked)), atol=1e-3)


def test_a_null_that_diverges_is_left_out_and_said_and_no_other_is(subject, spec, monkeypatch):
    tuned = Ground.tuned

    def wild(self, which, rate, scored=()):
        found = tuned(self, which, rate, scored)
        return found | {"other demos": Tuned([], {}, (9.0,), "the loss rose")}

    monkeypatch.setattr(Ground, "tuned", wild)
    cell = next(cell for cell in spec.cells() if cell.labels["part"] == "trained")
    found = run(cell, Tools(subjects={"memory:tiny": subject}))
    assert found.facts["diverged"] is None
    assert found.facts["lost"] == ["other demos"]
    kept = {
        one.labels.get("null") for one in found.arrays if one.labels["quantity"] in ("cosine", "contrast", "overlap")
    }
    assert kept == {None, *NULLS} - {"other demos"}


def test_training_on_wrong_labels_that_diverges_is_a_fact_of_the_cell(subject, spec, monkeypatch):
    """Without it there is no contrast: nothing of the cell is compared."""
    tuned = Ground.tuned
    lost = Tuned([], {}, (9.0,), "the loss rose")
    monkeypatch.setattr(Ground, "tuned", lambda *given: tuned(*given) | {"wrong": lost})
    cell = next(cell for cell in spec.cells() if cell.labels["part"] == "trained")
    found = run(cell, Tools(subjects={"memory:tiny": subject}))
    assert found.facts["diverged"] == "the loss rose"
    assert {one.labels["quantity"] for one in found.arrays} == {"loss", "scores"}


def test_training_that_diverges_is_a_fact_and_no_number(subject, spec):
    cell = next(cell for cell in spec.cells() if cell.labels["part"] == "trained")
    wild = Cell("implicit", cell.spec.model_copy(update={"rate": 1e30}), cell.labels)
    found = run(wild, Tools(subjects={"memory:tiny": subject}))
    assert found.facts["diverged"]
    assert {one.labels["quantity"] for one in found.arrays} == {"loss"}
