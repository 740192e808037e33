"""One cell: its arrays are the metrics of the learners' traces, and it leaves the model as it was."""

import numpy as np
import pytest
import torch

from iclgd.bench import Bench
from iclgd.errors import Refusal
from iclgd.labs.compare import run
from iclgd.labs.compare.spec import CONSTANT, CompareSpec
from iclgd.learners.descent import GradientDescent
from iclgd.learners.layercausal import LayerCausal
from iclgd.learners.prompted import InContext, ZeroShot
from iclgd.metrics.likeness import sim_am, sim_am_delta, sim_aou, sim_aou_norm
from iclgd.models.budget import MOST
from iclgd.nulls import NULLS
from iclgd.prompts import build_prompts
from iclgd.results import Result
from iclgd.spec import EpisodeSpec, PromptSpec
from iclgd.tasks.episodes import load_episode
from iclgd.tools import Tools
from little import little_cell, little_result

POSITIONS, QUERIES, LAYERS = 2, 5, 3


@pytest.fixture(scope="module")
def traces(subject, task):
    """What each learner did, by itself."""
    episode = load_episode(str(task), EpisodeSpec(k=3, queries=QUERIES))
    prompts = build_prompts(subject.tokenizer, episode, PromptSpec(), subject.room)
    learners = {"zero": ZeroShot(), "icl": InContext()}
    learners |= {"gd": GradientDescent(rate=0.01), "lcgd": LayerCausal(rate=0.01)}
    found = {}
    for name, learner in learners.items():
        with learner.learn(subject, prompts) as predictor:
            found[name] = predictor.trace(prompts)
    return found


def only(result, **labels):
    (found,) = result.select(**labels)
    return found


@pytest.mark.parametrize("name", ["gd", "lcgd"])
def test_a_cells_likeness_is_the_metrics_of_its_learners_traces(subject, task, traces, name):
    found = little_result(subject, little_cell(task, f"{name}:rate=0.01"))
    for i, position in enumerate(("prompt", "label")):
        h = [traces[x].outputs[:, :, i] for x in ("zero", "icl", name)]
        m = [traces[x].logits[:, :, i] for x in ("zero", "icl", name)]
        wanted = {"SimAOU": sim_aou(*h), "SimAOU_norm": sim_aou_norm(*h), "SimAM": sim_am(*m[1:])}
        for metric, values in (wanted | {"SimAM_delta": sim_am_delta(*m)}).items():
            one = only(found, metric=metric, null=None, floor=None)
            assert one.values.shape == (POSITIONS, QUERIES, LAYERS)
            assert np.array_equal(one.at(position=position).values, values.float().numpy())
    assert np.array_equal(only(found, quantity="scores").values, traces[name].scores.numpy())


def test_alpha_is_the_likeness_of_the_two_finetuned_learners(subject, task, traces):
    cell = little_cell(task, "gd:rate=0.01", versus="lcgd:rate=0.01", nulls=())
    found = only(little_result(subject, cell), metric="alpha")
    for i, position in enumerate(("prompt", "label")):
        wanted = sim_am_delta(*(traces[name].logits[:, :, i] for name in ("zero", "gd", "lcgd")))
        assert np.array_equal(found.at(position=position).values, wanted.float().numpy())


def test_every_likeness_has_its_nulls_but_what_happened_in_training_has_none(subject, task):
    found = little_result(subject, little_cell(task, "gd:rate=0.01"))
    for null in ("random", "other-query"):
        for metric in ("SimAOU", "SimAOU_norm", "SimAM", "SimAM_delta"):
            own = only(found, metric=metric, null=None, floor=None).values
            assert not np.array_equal(only(found, metric=metric, null=null).values, own)
    assert len(found.select(null="uniform")) == 1
    assert found.select(metric="tau", null="random") == []


def test_a_cell_leaves_the_weights_as_they_were(subject, task):
    before = {name: value.clone() for name, value in subject.model.state_dict().items()}
    little_result(subject, little_cell(task, "gd:rate=0.5", nulls=("random", "wrong-labels")))
    assert all(torch.equal(value, before[name]) for name, value in subject.model.state_dict().items())


def test_a_learner_that_diverges_has_its_losses_and_nothing_else(subject, task):
    found = little_result(subject, little_cell(task, "gd:rate=3e38"))
    assert found.facts["diverged"]
    assert {one.labels.get("quantity") for one in found.arrays} <= {"loss", "gradient norm", "weight change"}


def test_a_rate_of_zero_has_no_likeness_of_updates_but_one_of_maps(subject, task, traces):
    found = little_result(subject, little_cell(task, "gd:rate=0"))
    for metric in ("SimAOU", "SimAOU_norm", "SimAM_delta"):
        assert np.isnan(only(found, metric=metric, null=None).values).all()
    assert np.isfinite(only(found, metric="SimAM", null=None).values).all()
    assert np.array_equal(only(found, quantity="scores").values, traces["zero"].scores.numpy())


def test_without_demonstrations_nothing_changes_and_nothing_is_measured(subject, task):
    found = little_result(subject, little_cell(task, "gd:rate=0.01", episode=EpisodeSpec(k=0, queries=2)))
    assert np.isnan(only(found, metric="SimAOU", null=None).values).all()


def test_one_query_has_no_other_query_to_compare_with(subject, task):
    found = little_result(subject, little_cell(task, "gd:rate=0.01", episode=EpisodeSpec(k=2, queries=1)))
    assert np.isfinite(only(found, metric="SimAOU", null=None).values).all()
    assert np.isnan(only(found, metric="SimAM", null="other-query").values).all()


@pytest.mark.parametrize("contrast", [True, False])
def test_wrong_labels_are_read_for_the_contrast_alone(subject, task, contrast):
    found = little_result(subject, little_cell(task, contrast=contrast))
    assert bool(found.select(learner="icl", null="wrong-labels")) == contrast
    assert bool(found.select(learner="icl", metric="label-share")) == contrast
    assert found.select(learner="icl", metric="accuracy", null=None)


def test_a_null_whose_training_diverged_is_said_and_one_that_has_a_contrast_only_is_not(subject, task, monkeypatch):
    monkeypatch.setattr(NULLS["other-demos"], "trace", lambda *_what: None)
    cell = little_cell(task, "gd:rate=0.01", nulls=("other-demos", "two-wrongs"))
    assert little_result(subject, cell).facts["nulls_left_out"] == {"other-demos": "it diverged"}


def test_a_null_whose_contrast_diverged_is_said(subject, task, monkeypatch):
    monkeypatch.setattr(NULLS["other-demos"], "contrast", lambda *_what: None)
    cell = little_cell(task, "gd:rate=0.01", nulls=("other-demos",), contrast=True)
    assert little_result(subject, cell).facts["nulls_left_out"] == {"other-demos, contrast": "it diverged"}


def test_an_episode_is_forgotten_when_its_last_cell_is_done(monkeypatch):
    """Cells of two episodes, the first in the first and third place."""
    forgotten = []

    class Kept(Bench):
        def __init__(self, name):
            self.name = name

        def clear(self):
            forgotten.append(self.name)

        def forget(self, keys):
            assert list(keys) == []  # nothing is wanted here

    monkeypatch.setattr(run, "wanted", lambda _spec, _bench: [])
    monkeypatch.setattr(run, "portions", lambda every: [range(len(every))])
    monkeypatch.setattr(run, "train_ahead", lambda _wanted: None)
    monkeypatch.setattr(run, "_result", lambda _spec, _bench: Result({}, []))
    cells = CompareSpec.of({"seeds": 3, "init": "trained"}).cells()[:3]

    def seen(benches):
        forgotten.clear()
        given = iter(benches)
        monkeypatch.setattr(run, "bench_of", lambda _spec, _tools: next(given))
        return [list(forgotten) for _ in run.together(cells[: len(benches)], Tools())] + [list(forgotten)]

    one, two = Kept("one"), Kept("two")
    assert seen([one, two, one]) == [[], ["two"], ["two", "one"], ["two", "one"]]
    assert seen([one, two]) == [["one"], ["one", "two"], ["one", "two"]]
    assert seen([one]) == [[], []]  # a cell that runs alone may be followed by another of its episode


@pytest.mark.parametrize(
    ("budget", "asked", "batch"), [(1.0, None, None), (0.5, None, MOST["cpu"] // 2), (0.5, 40, 20)]
)
def test_where_memory_ran_out_batches_are_half_of_the_usual_ones_or_of_those_asked_for(
    subject, task, monkeypatch, budget, asked, batch
):
    tools = Tools()
    tools.budget = budget
    monkeypatch.setattr(tools, "subject", lambda _spec: subject)
    spec = little_cell(task, "gd").spec.model_copy(update={"batch_tokens": asked})
    assert run.bench_of(spec, tools).batch == batch


def test_the_contrast_stands_beside_that_of_every_null_that_has_one(subject, task):
    """Of nulls whose training ended well; labels' share is a share of reading's update, and no likeness."""
    nulls = ("random", "uniform", "other-query", "other-demos", "wrong-labels")
    found = little_result(subject, little_cell(task, "gd:rate=0.1", nulls=nulls, contrast=True))
    contrasts = {name for name, metric in run.metrics_of(little_cell(task).spec).items() if metric.contrast}
    beside = {(one.labels["metric"], one.labels.get("null")) for one in found.arrays if "metric" in one.labels}
    assert {name for name, null in beside if null is None and name in contrasts} == contrasts
    for null in ("random", "other-query", "other-demos"):
        assert {name for name, other in beside if other == null and name in contrasts} == contrasts - {"label-share"}
    assert not {null for name, null in beside if name in contrasts} & {"uniform", "wrong-labels"}
    own, null = (found.select(metric="contrast-AOU", null=one)[0].values for one in (None, "other-query"))
    assert np.abs(own - null).max() > 1e-3


def test_one_answer_for_all_queries_is_readings_mean_and_stands_where_answers_are_compared(subject, task, traces):
    found = little_result(subject, little_cell(task))
    asked = {one.labels["metric"] for one in found.arrays if one.labels.get("learner") == CONSTANT}
    assert asked == {"agreement", "KL", "margins-missed", "margins-recovered", "margins-recovered-centred"}
    scores = traces["icl"].scores.double()
    chosen = int(scores.mean(0).argmax())
    agrees = [int(row.argmax()) == chosen for row in scores]
    assert only(found, metric="agreement", learner=CONSTANT).values.tolist() == agrees
    own, alike = scores.log_softmax(-1), scores.mean(0).log_softmax(-1)
    apart = (own.exp() * (own - alike)).sum(-1)
    np.testing.assert_allclose(only(found, metric="KL", learner=CONSTANT).values, apart, rtol=1e-3, atol=1e-6)
    apart = [
        t.scores.double() @ torch.tensor([-1.0, 1.0], dtype=torch.float64) for t in (traces["zero"], traces["icl"])
    ]
    before, after = (one - one.mean() for one in apart)  # the same for all is nothing, but it undoes what was there
    missed = float((after**2).sum() / ((after - before) ** 2).sum())
    assert only(found, metric="margins-missed", learner=CONSTANT).values.mean() == pytest.approx(missed, rel=1e-4)


def test_nulls_that_train_answer_beside_reading_too(subject, task):
    cell = little_cell(task, "gd:rate=0.01", nulls=("random", "wrong-labels", "filler"))
    found = little_result(subject, cell)
    answered = {
        one.labels["null"] for one in found.arrays if one.labels.get("metric") == "agreement" if "null" in one.labels
    }
    assert answered == {"wrong-labels"}
    own, wrong = (
        only(found, metric="margins-missed", **labels).values for labels in ({"null": None}, {"null": "wrong-labels"})
    )
    assert own.shape == wrong.shape == (QUERIES,)
    assert not np.allclose(own, wrong)


def test_a_null_that_is_refused_or_diverged_keeps_no_other_from_being_measured(subject, task, monkeypatch):
    def refused(self, *_):
        raise Refusal("there is no room for it")

    monkeypatch.setattr(NULLS["random"], "trace", refused)
    monkeypatch.setattr(NULLS["uniform"], "trace", lambda self, *_: None)
    found = little_result(subject, little_cell(task, "gd", nulls=("random", "uniform", "other-query")))
    assert found.facts["nulls_left_out"] == {"random": "there is no room for it", "uniform": "it diverged"}
    assert {one.labels["null"] for one in found.arrays if "null" in one.labels} == {"other-query"}
