"""The noise floor: updates and what labels change, each against itself in other batches and in a wider format."""

import numpy as np
import pytest
import torch
from planted_compare import likeness, planted
from planted_world import FIELDS, world

from iclgd.bench import WRONG, Bench, Run
from iclgd.labs.compare import run
from iclgd.labs.compare.evidence import Evidence
from iclgd.learners.descent import GradientDescent
from iclgd.learners.prompted import InContext
from iclgd.metrics.likeness import cosine
from iclgd.prompts import build_prompts
from iclgd.spec import EpisodeSpec, PromptSpec
from iclgd.tasks.episodes import load_episode
from little import little_cell, little_result, little_tools
from tiny import tiny_subject

LEARNERS = {None: InContext(), "gd:rate=0.01": GradientDescent(rate=0.01)}
FLOORS = ("other batch", "other precision")


def floors(result, learner: str | None) -> dict[tuple[str, str], np.ndarray]:
    found = [one for one in result.arrays if "floor" in one.labels and one.labels.get("learner") in (None, "icl")]
    return {(str(one.labels["metric"]), str(one.labels["floor"])): one.values for one in found}


def cell(task, learner=None, **changes):
    return little_cell(task, learner, **{"floor": True, "contrast": True, "nulls": (), **changes})


@pytest.mark.parametrize("learner", LEARNERS)
def test_what_labels_change_is_held_against_itself_computed_again_with_right_labels_and_wrong_ones(task, learner):
    """Here by hand: the trace with right labels less that with wrong ones, in bfloat16 and in float32."""
    subject = tiny_subject("llama", dtype=torch.bfloat16)
    found = floors(little_result(subject, cell(task, learner)), learner)
    episode = load_episode(str(task), EpisodeSpec(k=3, queries=5))
    prompts, wrong = (
        build_prompts(subject.tokenizer, one, PromptSpec(), subject.room)
        for one in (episode, episode.with_wrong_labels(0))
    )

    def contrast() -> torch.Tensor:
        traces = []
        for demos in (prompts, wrong):
            with LEARNERS[learner].learn(subject, demos) as predictor:
                traces.append(predictor.trace(prompts).outputs.double())
        return traces[0] - traces[1]

    narrow = contrast()
    with subject.in_precision(torch.float32):
        wide = contrast()
    for i in range(2):
        wanted = cosine(narrow[:, :, i], wide[:, :, i]).float().numpy()
        np.testing.assert_allclose(found["contrast-AOU", "other precision"][i], wanted, atol=1e-6)
    own = found["contrast-AOU", "other precision"]
    assert 0.2 < np.nanmean(own) < 0.999  # not as sure as it looks


@pytest.mark.parametrize("learner", LEARNERS)
def test_every_likeness_of_what_labels_change_has_both_floors_and_labels_share_has_none(subject, task, learner):
    found = floors(little_result(subject, cell(task, learner)), learner)
    named = {metric for metric, _ in found if metric.startswith(("contrast", "label"))}
    assert named == set(run.contrasts(cell(task).spec))
    assert "label-share" not in named
    assert {floor for _, floor in found} == set(FLOORS)
    plain = floors(little_result(subject, cell(task, learner, contrast=False)), learner)
    assert not [metric for metric, _ in plain if metric.startswith("contrast")]


def test_floors_of_updates_are_the_same_to_the_bit_beside_those_of_what_labels_change(subject, task):
    results = [little_result(subject, cell(task, "gd:rate=0.01", contrast=on)) for on in (True, False)]
    both, plain = (floors(result, "gd") for result in results)
    assert all(np.array_equal(both[name], values, equal_nan=True) for name, values in plain.items())
    assert len(both) > len(plain) > 0


def test_a_training_on_wrong_labels_that_diverges_in_the_wider_format_leaves_the_floors_of_updates(
    subject, task, monkeypatch
):
    whole = Bench.run

    def diverging(self, what, *args, **more):
        return Run(None) if what.endswith(f"{WRONG}, wider") else whole(self, what, *args, **more)

    monkeypatch.setattr(Bench, "run", diverging)
    result = little_result(subject, cell(task, "gd:rate=0.01"))
    found = floors(result, "gd")
    assert result.facts["floor"] == "on wrong labels it diverged there"
    assert ("SimAOU", "other precision") in found
    assert ("contrast-AOU", "other batch") in found
    assert ("contrast-AOU", "other precision") not in found


def test_nothing_is_trained_twice_for_the_floors(subject, task, monkeypatch):
    """Right labels and wrong ones once as they are, and once wider; the other batches ask what was trained."""
    trained = []
    learn = run.bench_of

    def counting(spec, tools):
        bench = learn(spec, tools)
        take = bench.take
        monkeypatch.setattr(bench, "take", lambda *one: trained.append(one[:2]) or take(*one))
        return bench

    monkeypatch.setattr(run, "bench_of", counting)
    monkeypatch.setattr(GradientDescent, "learn", lambda *_: pytest.fail("trained anew"))
    run.run(cell(task, "gd:rate=0.01"), little_tools(subject))
    assert trained == [("gd 0.01", ""), ("gd 0.01", WRONG)]


def test_the_table_of_what_labels_change_has_its_floor_below_reading_and_each_learner_where_there_is_one():
    whole = world()

    def plant(cell, random):
        who = {} if "learner" in cell.labels else {"learner": "icl"}
        level = 0.99 if who else 0.9
        floor = likeness(level, random, spread=0, metric="contrast-AOU", floor="other precision", **who)
        return [*whole(cell, random), *([floor] if cell.labels["seed"] == 0 else [])]

    fields = {**FIELDS, "init": "trained", "floor": True}
    found, old = (Evidence(planted(one, **fields), "prompt").labels(["sentiment"]).texts() for one in (plant, whole))
    column = [line[0] for line in found].index
    assert [line[0] for line in found] == [
        "icl",
        "  computed again, other precision",
        "gd 0.001",
        "  another query's update",
        "  computed again, other precision",
    ]
    assert column("gd 0.001") == 2
    place = list(Evidence(planted(plant, **fields), "prompt").labels(["sentiment"]).header).index("contrast, outputs")
    assert found[1][place].startswith(".990")
    assert found[4][place].startswith(".900")
    assert [line[0] for line in old] == ["icl", "gd 0.001", "  another query's update"]
